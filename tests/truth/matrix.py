"""The truth matrix: each kind of recording with each verb, exporter, report section, method and fact.

A cell is covered by a test that is marked with `@pytest.mark.truth(recording=..., path=..., source=...)` and whose
expected value does not come from this project. `recording` and `path` are literals, or lists of them (the cells are
their product); those with `*` are patterns, of cells that exist. A test with arguments `recording` and `path` runs once
for each of its cells (`conftest.py`). The paths are those of the registries. What a kind of recording does not contain,
or a path does not take, is not a cell.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from itertools import product
from pathlib import Path

from perfuse.analysis import facts
from perfuse.cli.verbs import VERBS
from perfuse.exporters import TARGETS
from perfuse.profile import ASKED_WITHIN, Profile
from perfuse.reports.registry import REPORTS
from perfuse.reports.runtime.report import SECTIONS

from .kinds import KINDS, Kind

TESTS = Path(__file__).parents[1]
OPEN_CELLS = Path(__file__).parent / "open_cells.txt"

WEIGHTS = ("samples", "call_events", "call_sums", "allocations")
CALLS = ("call_events", "call_sums")
TIMELINE = (*WEIGHTS, "slices", "instants", "exceptions", "counter_samples")

Cell = tuple[str, str]
"""A kind of recording and a path."""


@dataclass(frozen=True, slots=True)
class Marker:
    """A `truth` marker: its cells, the source of the expected value, and the test it is on."""

    cells: frozenset[Cell]
    source: str
    place: str


GROUPS = ("verbs", "exporters", "reports", "methods", "facts")


@cache
def paths() -> dict[str, tuple[str, ...]]:
    """Every path, by group, from the registries."""
    views = dict.fromkeys(
        option.flag.removeprefix("--") for kind in REPORTS for option in kind.options if _is_view(option)
    )
    reports = [kind.name for kind in REPORTS if kind.name != "runtime"]
    sections = dict.fromkeys((*reports, *(section.name for section in SECTIONS), *views))
    return {
        "verbs": tuple(name for name, verb in VERBS.items() if _takes_recordings(verb.usage)),
        "exporters": tuple(f"convert:{target.name}" for target in TARGETS),
        "reports": tuple(f"report:{name}" for name in sections),
        "methods": tuple(f"api:Profile.{name}" for name in vars(Profile) if _is_answer(name)),
        "facts": tuple(f"assert:{family}" for family in fact_families()),
    }


@cache
def every_path() -> tuple[str, ...]:
    """The paths of all groups."""
    return tuple(path for group in paths().values() for path in group)


@cache
def fact_families() -> dict[str, tuple[str, ...]]:
    """The first words of facts, each with the tables that they are made of; none for those of every profile."""
    families: dict[str, tuple[str, ...]] = {"duration": ()}
    for tables, make in facts._FACTS_BY_TABLES.items():
        for name in make(None):  # facts are computed when they are called
            families.setdefault(re.split(r"\W", name)[0], tuple(tables.replace("callchains", "samples").split()))
    return families


NOT_ANSWERS = {"close", "view", *ASKED_WITHIN}
"""Methods of profiles that answer users nothing themselves; of the page, the verb has cells."""


def _is_answer(method: str) -> bool:
    return method[0] != "_" and method not in NOT_ANSWERS


def _is_view(option: object) -> bool:
    return getattr(option, "metavar", "") is None


def _takes_recordings(usage: str) -> bool:
    return bool(re.search(r"\bFILE\b|\bA B\b", usage))


def not_applicable(kind: Kind, path: str) -> str | None:
    """Why a cell does not exist; None where it does."""
    group, _, name = path.rpartition(":")
    name = name.removeprefix("Profile.")
    return {"": _verb, "convert": _exporter, "report": _report, "api": _method, "assert": _fact}[group](kind, name)


def _needs(kind: Kind, *tables: str) -> str | None:
    return None if kind.has(*tables) else f"it has no {' or '.join(tables).replace('_', ' ')}"


def _verb(kind: Kind, name: str) -> str | None:
    usage = VERBS[name].usage
    is_sframe = kind.formats == ("sframe",)
    takes_one = re.search(r"FILE(?!\.\.\.)", usage) and "FILE..." not in usage
    reasons = {
        "the verb takes one file": takes_one and len(kind.files) > 1,
        "only unwind tables are created, merged and converted": name == "sframe" and not is_sframe,
        "the format declares no repair": name == "repair" and "repair" not in kind.declared[0].capabilities,
        "linkers write sections whole": name == "watch" and is_sframe,
        "it has neither samples nor calls": name in ("flame", "diff") and not kind.has(*WEIGHTS),
        "it has no machine code": name == "annotate" and not has_machine_code(kind),
        "no target takes it": name == "convert" and _export(kind) is not None,
    }
    return next((reason for reason, applies in reasons.items() if applies), None)


def has_machine_code(kind: Kind) -> bool:
    """Whether it contains machine code, or samples in programs that are on this machine."""
    return not {"perf_data", "jitdump"}.isdisjoint(kind.formats) and {"mono", "xray"}.isdisjoint(kind.formats)


def _export(kind: Kind) -> str | None:
    return None if any(_exporter(kind, target.name) is None for target in TARGETS) else "no target takes it"


TIMED = (
    "samples",
    "call_events",
    "slices",
    "instants",
    "exceptions",
    "counter_samples",
    "allocations",
    "heap_snapshots",
)
EXPORTED = {
    "firefox": TIMELINE,
    "jslb": TIMELINE,
    "speedscope": WEIGHTS,
    "chrome": TIMED,
    "perfetto": TIMED,
    "pprof": (*WEIGHTS, "exceptions"),
    "cpuprofile": WEIGHTS,
    "otlp": (*WEIGHTS, "exceptions"),
    "heapsnapshot": ("heap_snapshots",),
    "hprof": ("heap_snapshots",),
    "perf-script": ("samples",),
    "collapsed": WEIGHTS,
    "perf-map": ("code_objects",),
    "html": WEIGHTS,
    "svg": WEIGHTS,
    "elf": ("code_objects",),
    "dot": WEIGHTS,
    "csv": CALLS,
    "xray": ("call_events",),
}
"""What each target holds: tables of which one is needed. Targets with rules of their own are not here."""


def _exporter(kind: Kind, name: str) -> str | None:
    if name == "perf-data":
        return None if set(kind.formats) >= {"perf_data", "jitdump"} else "code is put into a perf.data from its dump"
    if name == "xray-yaml":
        is_log = kind.formats == ("xray",)
        return _needs(kind, "call_events") if is_log else "records of an XRay log are written as YAML"
    if name == "mono" and kind.name == "collapsed":
        return "it has no times"
    if name == "mono":
        return None if "mono" in kind.formats else _needs(kind, "samples", "call_events", "allocations")
    if (EXPORTED[name] is TIMED or name == "perf-script") and kind.name == "collapsed":
        return "it has no times"
    return _needs(kind, *EXPORTED[name])


def _report_kind(kind: Kind) -> str:
    """The kind of report that `perfuse report` makes of the example."""
    if kind.has("samples") and kind.has(*CALLS) and "mono" not in kind.formats:
        return "profile_with_calls"
    declared = {one.report for one in kind.declared}
    return next(entry.name for entry in REPORTS if entry.name in declared)


STACK_VIEWS = ("tree", "stacks", "inverted")
"""Views that every recording with weighted stacks has."""


def _report(kind: Kind, name: str) -> str | None:
    if name in STACK_VIEWS:
        return _needs(kind, *WEIGHTS, "exceptions", "heap_snapshots")
    if name == "held_objects":
        return _needs(kind, "heap_snapshots")
    if name in ("slow_calls", "selected_calls"):
        return _needs(kind, "call_events")
    made = _report_kind(kind)
    if made == "runtime":
        section = next((section for section in SECTIONS if section.name == name), None)
        if section is not None:
            tables = {table.replace("callchains", "samples") for table in section.tables}
            return None if "types" in tables else _needs(kind, *sorted(tables))
        return "not a section of a runtime log"
    entry = next(entry for entry in REPORTS if entry.name == made)
    views = {option.flag.removeprefix("--") for option in entry.options if _is_view(option)}
    return None if name == made or name in views else f"its report is of kind {made}"


METHODS: Mapping[str, tuple[str, ...]] = {
    "allocations": ("allocations",),
    "allocation_sums": ("allocations",),
    "gc_pauses": ("slices", "object_moves"),
    "gc_activity": ("slices", "object_moves"),
    "contention": ("lock_events",),
    "exceptions": ("exceptions",),
    "call_statistics": CALLS,
    "handle_sums": ("gc_handles",),
    "object_origins": ("heap_snapshots", "allocations"),
    "between": TIMELINE,
    "process": TIMELINE,
    "thread": TIMELINE,
    "span_ns": TIMELINE,
    "flame": WEIGHTS,
    "heap": ("heap_snapshots",),
    "heap_sizes": ("heap_snapshots",),
    "images": ("code_objects",),
    "call_log": ("call_events",),
    "call_trace": ("call_events", "slices", "instants", "counter_samples"),
    **dict.fromkeys(("only", "drop", "hide", "root", "leaf", "filtered"), WEIGHTS),
    **dict.fromkeys(("collapse_recursion", "collapse_module"), WEIGHTS),
    "between_calls": ("call_events",),
    "unwinding": ("stack_copies",),
    "stacks_of": ("allocations", "lock_events", "exceptions", "gc_handles"),
    "runtime_log": (*WEIGHTS, "heap_snapshots", "lock_events", "slices"),
    "selected_rows": (*WEIGHTS, "lock_events", "exceptions", "gc_handles", "code_objects"),
    "count_rows": (*WEIGHTS, "lock_events", "exceptions", "gc_handles", "code_objects"),
    "row_counts": ("lock_events", "exceptions", "gc_handles", "code_objects"),
}
"""Tables of which a method needs one; methods that are not here are for every profile."""
NEEDS_ALSO = {"tier": ("samples",), "jit_only": ("code_objects",), "during": ("slices",)}
"""For methods about samples: tables of which they need one besides."""
OF_RUNTIMES = {"allocations", "allocation_sums", "gc_pauses", "gc_activity", "contention", "exceptions"}
OF_RUNTIMES |= {"heap", "heap_sizes", "handle_sums", "object_origins", "runtime_log"}


def _method(kind: Kind, name: str) -> str | None:
    if name == "export":
        return _export(kind)
    if name == "annotate":
        return None if has_machine_code(kind) else "it has no machine code"
    if name in ("between", "span_ns") and kind.name in ("collapsed", "xray_profiling"):
        return "it has no times"
    if name in NEEDS_ALSO:
        return _needs(kind, "samples") or _needs(kind, *NEEDS_ALSO[name])
    if name in OF_RUNTIMES and "mono" not in kind.formats:
        return "it is not of a runtime log"
    return _needs(kind, *METHODS[name]) if name in METHODS else None


def _fact(kind: Kind, name: str) -> str | None:
    tables = fact_families()[name]
    if name in ("gc", "heap", "finalizers") and "mono" not in kind.formats:
        return "it is not of a runtime log"
    return _needs(kind, *tables) if tables else None


@cache
def cells() -> frozenset[Cell]:
    """Every cell."""
    return frozenset(
        (k.name, path) for k, path in product(KINDS.values(), every_path()) if not_applicable(k, path) is None
    )


@cache
def markers() -> tuple[Marker, ...]:
    """The markers of all tests, read from their text.

    Raises:
        ValueError: A marker is not made of literals, or has an argument that is not of a marker.
    """
    return tuple(marker for path in sorted(TESTS.rglob("*.py")) for marker in _markers_in(path))


def _markers_in(path: Path) -> Iterator[Marker]:
    text = path.read_text(encoding="utf-8")
    if "mark.truth(" not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("mark.truth"):
            place = f"{path.relative_to(TESTS)}:{node.lineno}"
            try:
                values = {str(one.arg): ast.literal_eval(one.value) for one in node.keywords}
                found = cells_of(values.pop("recording"), values.pop("path"))
                source = values.pop("source")
            except (KeyError, ValueError) as error:
                raise ValueError(f"tests/{place}: a marker has literals recording, path and source: {error}") from None
            if values or node.args or not isinstance(source, str):
                raise ValueError(f"tests/{place}: a marker has only recording, path and source")
            yield Marker(frozenset(found), source, place)


def cells_of(recording: str | list[str], path: str | list[str]) -> list[Cell]:
    """The cells of a marker."""
    found: dict[Cell, None] = {}
    for kind_pattern, path_pattern in product(_listed(recording), _listed(path)):
        if "*" in kind_pattern + path_pattern:
            pairs = product(_matching(kind_pattern, KINDS), _matching(path_pattern, every_path()))
            found |= dict.fromkeys(pair for pair in pairs if pair in cells())
        else:
            found[kind_pattern, path_pattern] = None
    return list(found)


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def _matching(pattern: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if fnmatchcase(name, pattern)]


def is_truth(source: str) -> bool:
    """Whether a source is not output of this project."""
    return bool(source.strip()) and not re.search(r"(?i)\bgoldens?\b|\bperfuse\b", source)


def covered() -> dict[Cell, list[Marker]]:
    """The markers of each cell that has one with a source of truth."""
    found: dict[Cell, list[Marker]] = defaultdict(list)
    for marker in markers():
        if is_truth(marker.source):
            for cell in marker.cells:
                found[cell].append(marker)
    return dict(found)


def empty_cells() -> set[Cell]:
    """Cells without a test."""
    return set(cells()) - covered().keys()


def read_open_cells() -> set[Cell]:
    """The cells that are known to be empty: `open_cells.txt` has a line for each path, with its kinds."""
    lines = OPEN_CELLS.read_text(encoding="utf-8").splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return {(kind, row[0]) for row in rows for kind in row[1:]}


OPEN_HEAD = (
    "# Cells of the truth matrix without a test. This list only becomes shorter: `make docs` removes what has one.\n"
)


def open_cells_text(open_cells: Iterable[Cell]) -> str:
    """The text of the list."""
    by_path: dict[str, list[str]] = defaultdict(list)
    for kind, path in open_cells:
        by_path[path].append(kind)
    return OPEN_HEAD + "".join(
        f"{path} {' '.join(name for name in KINDS if name in by_path[path])}\n"
        for path in every_path()
        if path in by_path
    )
