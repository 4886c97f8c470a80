"""The truth matrix: every cell has a test whose expected value does not come from this project."""

import pytest

from truth import matrix
from truth.kinds import KINDS, RULED


def test_markers_name_kinds_and_paths_that_exist() -> None:
    """A marker names kinds of `truth/kinds.py` and paths of the registries."""
    known = set(matrix.every_path())
    for marker in matrix.markers():
        for kind, path in sorted(marker.cells):
            assert kind in KINDS, f"tests/{marker.place}: there is no kind {kind!r}: {', '.join(KINDS)}"
            assert path in known, f"tests/{marker.place}: there is no path {path!r}: {', '.join(sorted(known))}"


def test_no_marker_is_on_a_cell_that_does_not_exist() -> None:
    for marker in matrix.markers():
        for kind, path in sorted(marker.cells):
            reason = matrix.not_applicable(KINDS[kind], path)
            assert reason is None, f"tests/{marker.place}: {kind} has no {path}: {reason}"


def test_sources_are_not_our_own_output() -> None:
    """A golden shows that output did not change, not that it is right."""
    for marker in matrix.markers():
        assert matrix.is_truth(marker.source), f"tests/{marker.place}: {marker.source!r} is not a source of truth"


def test_no_cell_is_empty() -> None:
    """Cells without a test are those of `truth/open_cells.txt`, which only becomes shorter."""
    new = matrix.empty_cells() - matrix.read_open_cells()
    assert not new, f"{len(new)} cells have no test with a source of truth:\n" + matrix.open_cells_text(new)
    gone = matrix.read_open_cells() - matrix.cells()
    assert not gone, f"not cells any more: run make docs\n{matrix.open_cells_text(gone)}"


def test_every_path_has_a_cell() -> None:
    """No verb, exporter, section, method or fact is declared not applicable to every kind."""
    used = {path for _, path in matrix.cells()}
    unused = [path for path in matrix.every_path() if path not in used]
    assert not unused


def test_kinds_contain_what_rules_ask_for() -> None:
    for kind in KINDS.values():
        assert kind.contents <= RULED, kind.name
        assert kind.contents, kind.name


@pytest.mark.parametrize("source", ["golden of our own", "the same by perfuse", ""])
def test_our_own_output_is_not_a_source(source: str) -> None:
    assert not matrix.is_truth(source)
