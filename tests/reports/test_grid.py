"""Aligned tables."""

from pathlib import Path

import pytest

import perfuse as pf
from perfuse.reports.grid import Column, grid
from perfuse.reports.profile import profile_lines, profile_report
from perfuse.reports.stack_views import StackRequest, stack_lines, stack_report
from perfuse.reports.text import Style, cell_width


def test_one_long_name_does_not_move_other_lines_of_a_file() -> None:
    columns = [Column("function"), Column("where")]
    long = "f" * 5000
    lines = list(grid(columns, [("main", "a.c"), (long, "b.c"), ("worker", "c.c")], Style()))
    assert lines == ["  function  where", "  main      a.c", f"  {long}  b.c", "  worker    c.c"]


def test_a_column_that_counts_twice_becomes_half_as_wide() -> None:
    columns = [Column("function", shrinks=4), Column("where", shrinks=4, counts=2)]
    for width, sizes in ((34, (20, 10)), (19, (10, 5)), (12, (4, 4))):
        [_, row] = grid(columns, [("f" * 50, "w" * 50)], Style(width=width))
        assert tuple(map(len, row.split())) == sizes


def test_columns_of_one_width_become_narrower_together() -> None:
    columns = [Column("", shrinks=1), Column("", shrinks=1)]
    [row] = grid(columns, [("a" * 30, "b" * 30)], Style(width=24))
    assert tuple(map(len, row.split())) == (10, 10)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_names_of_deep_callees_are_shown_on_narrow_terminals(tmp_path: Path, width: int) -> None:
    names = [f"N{number}_of_a_function" for number in range(30)]
    recording = tmp_path / "deep.collapsed"
    lines = [f"{';'.join(names[: end + 1])} 7\n" for end in range(len(names))]
    recording.write_text("".join(lines), encoding="ascii")
    with pf.fuse(recording) as profile:
        tree = list(stack_lines(stack_report(profile, StackRequest(tree=True, limit=None)), Style(width=width)))
        rows = [line for line in tree if "%" in line]
        assert all(cell_width(line) <= width for line in rows)
        assert [name for name in names if not any(name.split("_")[0] + "_" in row for row in rows)] == []
        report = list(profile_lines(profile_report(profile), Style(width=width)))
        assert all(cell_width(line) <= width for line in report if "%" in line)
