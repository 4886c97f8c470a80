"""Aligned tables."""

from perfuse.reports.grid import Column, grid
from perfuse.reports.text import Style


def test_one_long_name_does_not_move_other_lines_of_a_file() -> None:
    columns = [Column("function"), Column("where")]
    long = "f" * 5000
    lines = list(grid(columns, [("main", "a.c"), (long, "b.c"), ("worker", "c.c")], Style()))
    assert lines == ["  function  where", "  main      a.c", f"  {long}  b.c", "  worker    c.c"]
