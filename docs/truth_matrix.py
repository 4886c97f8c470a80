"""The page of the truth matrix."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from truth import matrix
from truth.kinds import KINDS, Kind

OPEN_CELLS = matrix.OPEN_CELLS

TITLES = {
    "verbs": "Verbs",
    "exporters": "Exporters",
    "reports": "Reports and their sections",
    "methods": "Methods of `Profile`",
    "facts": "Facts of `--assert`",
}


def page() -> str:
    """Every cell with the number of its tests, and the sources of their expected values."""
    covered = matrix.covered()
    sources = sorted({marker.source for found in covered.values() for marker in found})
    numbers = {source: number for number, source in enumerate(sources, 1)}
    out = ["# Truth matrix\n", _introduction(len(matrix.cells()), len(matrix.empty_cells()))]
    for family, kinds in groupby(KINDS.values(), key=lambda kind: kind.family):
        out.append(f"## {family}\n")
        columns = list(kinds)
        out.append(_table(("kind", "recording", "example"), [_described(kind) for kind in columns]))
        for group, paths in matrix.paths().items():
            rows = [_row(path, columns, covered, numbers) for path in paths if _is_row(path, columns)]
            if rows:
                out += [f"### {family}: {TITLES[group]}\n", _table(("", *(kind.name for kind in columns), "by"), rows)]
    out += ["## Sources\n", "".join(f"{number}. {source}\n" for source, number in numbers.items())]
    return "\n".join(out)


def open_cells() -> str:
    """The list of cells that are known to be empty, without those that have a test now."""
    return matrix.open_cells_text(matrix.read_open_cells() & matrix.empty_cells())


def _introduction(num_cells: int, num_empty: int) -> str:
    state = f"{num_empty} have no such test yet (∅)." if num_empty else "None is empty."
    return (
        "Each kind of recording meets each verb, exporter, section of a report, method of `Profile` and fact of "
        "`--assert`. A number counts tests whose expected value does not come from this project; the last column "
        "lists where it comes from, as numbers in [Sources](#sources). A dot marks what does not apply: the recording "
        f"does not contain it, or the path does not take it. There are {num_cells} cells. {state}\n"
    )


def _described(kind: Kind) -> tuple[str, str, str]:
    return f"`{kind.name}`", kind.title, " ".join(f"`{name.removeprefix('recorded/')}`" for name in kind.files)


def _is_row(path: str, kinds: Sequence[Kind]) -> bool:
    return any(matrix.not_applicable(kind, path) is None for kind in kinds)


def _row(
    path: str, kinds: Sequence[Kind], covered: dict[matrix.Cell, list[matrix.Marker]], numbers: dict[str, int]
) -> list[str]:
    cells = []
    used: set[int] = set()
    for kind in kinds:
        found = covered.get((kind.name, path), [])
        used |= {numbers[marker.source] for marker in found}
        applies = matrix.not_applicable(kind, path) is None
        cells.append((str(len(found)) if found else "∅") if applies else "·")
    name = path.rpartition(":")[2].removeprefix("Profile.")
    return [f"`{name}`", *cells, ", ".join(str(number) for number in sorted(used))]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
