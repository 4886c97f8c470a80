"""Code coverage: statements that ran, by method, class and assembly."""

from collections.abc import Callable
from dataclasses import dataclass

from perfuse.analysis.profiles import UNSELECTED, RuntimeProfile, read_selected


@dataclass(frozen=True, slots=True)
class Covered:
    """An assembly, a class or a method.

    Attributes:
        assembly: The assembly.
        class_name: The class; None for an assembly.
        method: The method with its signature; None for an assembly or a class.
        num_methods: Methods with statements.
        num_whole: Of them, those of which all statements ran.
        num_partial: Of them, those of which some statements ran.
        num_statements: Statements.
        num_run: Of them, those that ran.
        missed_line: First line of a method that did not run; None where all lines ran, and for classes and assemblies.
        path: Source file of a method.
    """

    assembly: str
    class_name: str | None
    method: str | None
    num_methods: int
    num_whole: int
    num_partial: int
    num_statements: int
    num_run: int
    missed_line: int | None
    path: str | None


@dataclass(frozen=True, slots=True)
class Coverage:
    """Coverage of assemblies, classes and methods, those with the most statements that did not run first."""

    assemblies: list[Covered]
    classes: list[Covered]
    methods: list[Covered]


def coverage(profile: RuntimeProfile) -> Coverage:
    """The coverage of a profile."""
    methods = _methods(profile)
    return Coverage(
        assemblies=_covered(methods, lambda key: (key[0], None, None)),
        classes=_covered(methods, lambda key: (key[0], key[1], None)),
        methods=_covered(methods, lambda key: (key[0], key[1], f"{key[2]} ({key[3]})")),
    )


_MethodKey = tuple[str, str, str, str, int]
"""Assembly, class, method, signature, token."""


@dataclass(slots=True)
class _CoverageSums:
    path: str | None = None
    num_methods: int = 0
    num_whole: int = 0
    num_partial: int = 0
    num_statements: int = 0
    num_run: int = 0
    missed_line: int | None = None

    def miss(self, line: int | None) -> None:
        if line is not None:
            self.missed_line = line if self.missed_line is None else min(self.missed_line, line)


def _methods(profile: RuntimeProfile) -> dict[_MethodKey, _CoverageSums]:
    columns = ("assembly", "class", "method", "signature", "token", "path", "il_offset", "line", "num_runs")
    found: dict[_MethodKey, _CoverageSums] = {}
    for *key, path, il_offset, line, num_runs in read_selected(profile, "coverage", *columns, **UNSELECTED):
        sums = found.setdefault(tuple(key), _CoverageSums())
        sums.path = path if sums.path is None else sums.path
        sums.num_statements += il_offset is not None
        if num_runs:
            sums.num_run += 1
        elif num_runs == 0:
            sums.miss(line)
    return found


def _covered(
    methods: dict[_MethodKey, _CoverageSums], group: Callable[[_MethodKey], tuple[str, str | None, str | None]]
) -> list[Covered]:
    found: dict[tuple[str, str | None, str | None], _CoverageSums] = {}
    for key, one in methods.items():
        sums = found.setdefault(group(key), _CoverageSums())
        sums.path = one.path if sums.path is None else sums.path
        sums.num_methods += one.num_statements > 0
        sums.num_whole += 0 < one.num_statements == one.num_run
        sums.num_partial += 0 < one.num_run < one.num_statements
        sums.num_statements += one.num_statements
        sums.num_run += one.num_run
        sums.miss(one.missed_line)
    rows = [
        Covered(
            *key,
            num_methods=sums.num_methods,
            num_whole=sums.num_whole,
            num_partial=sums.num_partial,
            num_statements=sums.num_statements,
            num_run=sums.num_run,
            missed_line=sums.missed_line if key[2] is not None else None,
            path=sums.path if key[2] is not None else None,
        )
        for key, sums in found.items()
    ]
    return sorted(
        rows, key=lambda one: (one.num_run - one.num_statements, one.assembly, one.class_name or "", one.method or "")
    )
