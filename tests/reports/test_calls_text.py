"""Calls in a terminal: the columns that fit, shortened stacks, text about clocks."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfuse.analysis.callgraph import CallEdge, CallStack
from perfuse.analysis.functions import Function, ThreadIds
from perfuse.analysis.latency import FunctionLatency, Latency
from perfuse.reports.call_tables import (
    edge_lines,
    endings_text,
    function_lines,
    path_text,
    source_place,
    stack_blocks,
    stack_lines,
    where_texts,
)
from perfuse.reports.calls import StackList
from perfuse.reports.grid import Column, Ranked, fitted
from perfuse.reports.inputs import InputClock, clock_lines
from perfuse.reports.text import Style, cell_width
from perfuse.reports.units import ticks_text

LONG = "ns::Scavenger<ns::Full>::visit_pointers_of_everything(ns::Object*, int) const"
LATENCY = Latency(1_000, 998, 30, 41, 1_100, 52_000, 3_100_000, 4_200_000, 2_100_000, 4_000_000, 12, 3, 4, 1, 1, 2)
SUMS = replace(LATENCY, num_timed=0, sum_ns=0, **dict.fromkeys(("min_ns", "median_ns", "p90_ns", "p99_ns", "max_ns")))


def function(name: str, **known: object) -> Function:
    unknown = dict.fromkeys(("native_id", "module", "path", "line", "column"))
    return Function(**{"function_id": 0, **unknown, "name": name, **known})  # type: ignore[arg-type]


ROWS = [
    FunctionLatency(function("main", path="/src/main.cc", line=3), ThreadIds(0, 1, 2, "worker"), None, LATENCY),
    FunctionLatency(function(LONG, module="/usr/lib/libscavenger.so.4"), ThreadIds(1, 1, 3, None), None, SUMS),
]


@pytest.mark.parametrize("columns", range(60, 200, 7))
@pytest.mark.parametrize("order", ["self", "p90", "total"])
def test_functions_fit_the_terminal(columns: int, order: str) -> None:
    lines = list(function_lines(ROWS, 10_000_000, order, Style(width=columns)))
    assert all(cell_width(line) <= columns for line in lines)
    # The column that rows are sorted by is shown at any width.
    assert {"self", "calls", "function", "thread", order} <= {*lines[0].split()}


def test_wider_terminals_show_more_columns() -> None:
    shown = [{*next(iter(function_lines(ROWS, 10, "self", Style(width=w)))).split()} for w in range(60, 200, 5)]
    assert all(narrow <= wide for narrow, wide in pairwise(shown))
    assert {"min", "median", "p90", "p99", "max", "sum", "total", "of", "where"} <= shown[-1]


def test_columns_without_a_value_are_left_out() -> None:
    head = next(iter(function_lines(ROWS[1:], 10, "self", Style())))
    assert not {"min", "median", "p90", "p99", "max", "sum"} & {*head.split()}
    assert "total" in head


@pytest.mark.parametrize("columns", [72, 100, 160])
def test_edges_fit_the_terminal(columns: int) -> None:
    edges = [CallEdge(None, ROWS[0].function, LATENCY), CallEdge(ROWS[0].function, ROWS[1].function, SUMS)]
    lines = list(edge_lines(edges, "sum", Style(width=columns)))
    assert all(cell_width(line) <= columns for line in lines)
    assert "(outermost)" in lines[1]


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=30), min_size=1, max_size=30))
def test_stacks_fit_the_terminal_and_end_with_the_innermost(names: list[str]) -> None:
    stack = CallStack(tuple(map(function, names)), 5, 1_000, 500)
    top = StackList("self", None, 1, 2_000, [stack])
    for lines in (list(stack_lines(top, Style(width=80))), list(stack_blocks(top, Style(width=80)))):
        assert all(cell_width(line) <= 80 and line.isprintable() for line in lines)
    assert path_text(stack, None).count("→") >= path_text(stack, 40).count("→")


def test_a_stack_is_cut_in_its_middle() -> None:
    stack = CallStack(tuple(map(function, ["main", "run", "run", "run", "step", "leaf"])), 1, 1, 1)
    assert path_text(stack, None) == "main → run (x3) → step → leaf"
    assert path_text(stack, 26) == "main → … → step → leaf"
    assert path_text(stack, 12) == "… → leaf"


def test_a_stack_of_very_many_functions() -> None:
    names = [f"f{number}" for number in range(100_000)]
    stack = CallStack(tuple(map(function, names)), 1, 1, 1)
    assert path_text(stack, 40) == "f0 → … → f99997 → f99998 → f99999"
    (_, line) = stack_blocks(StackList("self", None, 1, 2, [stack]), Style())
    assert line.split() == " → ".join(names).split()


def test_ticks_are_not_called_nanoseconds() -> None:
    stack = StackList("self", None, 1, 9, [CallStack((function("main"),), 1, 9, 9)])
    for lines in (
        function_lines(ROWS, 10, "self", Style(), ticks_text),
        stack_lines(stack, Style(), ticks_text),
        stack_blocks(stack, Style(), ticks_text),
    ):
        text = "\n".join(lines)
        assert "ticks" in text
        assert not re.search(r"\d [nµm]?s\b", text)


def test_endings() -> None:
    assert endings_text(LATENCY) == (
        "4 unwound, 1 open at the end, 1 begun before, 2 without a start, 3 tail calls, 12 recursive"
    )
    assert where_texts([one.function for one in ROWS], source_place) == ["main.cc:3", "libscavenger.so.4"]


def test_functions_of_one_name_and_line_have_their_columns() -> None:
    """A bundle of JavaScript has one line, and hundreds of functions called `t`."""
    places = [("t", 1, 40), ("t", 1, 71), ("t", 2, 5), ("run", 1, 9), ("t", 1, None)]
    of_bundle = [function(name, path="/app.js", line=line, column=column) for name, line, column in places]
    assert where_texts(of_bundle, source_place) == ["app.js:1:40", "app.js:1:71", "app.js:2", "app.js:1", "app.js:1"]
    assert where_texts(of_bundle[1:], source_place)[0] == "app.js:1"


@pytest.mark.parametrize(
    ("facts", "lines"),
    [
        (("monotonic", 10**9, "defined", None, None), ["monotonic, in nanoseconds"]),
        (
            ("monotonic", 2_596_120_009, "estimated", 3_700_000_000, 18_400),
            [
                "processor's counter at 2,596.12 MHz, measured in the log itself",
                "the header states 3,700.00 MHz, 42.5% too high",
                "monotonic, accurate to ± 18.4 µs",
            ],
        ),
        (("tsc", 2 * 10**9, "header", 2 * 10**9, None), ["processor's counter at 2,000.00 MHz, from the header"]),
        (
            ("tsc", 2 * 10**9, "given", 10**9, None),
            ["processor's counter at 2,000.00 MHz, from --tsc-hz", "the header states 1,000.00 MHz, 50.0% too low"],
        ),
        (
            ("monotonic", 2 * 10**9, "estimated", 2 * 10**9 + 1, 1_000),
            [
                "processor's counter at 2,000.00 MHz, measured in the log itself",
                "the header states 2,000.00 MHz, too",
                "monotonic, accurate to ± 1.00 µs",
            ],
        ),
        (
            ("unknown", None, "unknown", None, None),
            ["processor's counter of unknown rate (give it with --tsc-hz)"],
        ),
    ],
)
def test_clocks(facts: tuple[str, int | None, str, int | None, int | None], lines: list[str]) -> None:
    assert clock_lines(InputClock("log", *facts)) == lines


def test_the_highest_rank_goes_first() -> None:
    columns = [Ranked(Column(name), ["x" * 10], rank) for name, rank in (("a", 0), ("b", 2), ("c", 1))]
    heads = [next(iter(fitted(columns, Style(width=width), indent=""))).split() for width in (34, 33, 21)]
    assert heads == [["a", "b", "c"], ["a", "c"], ["a"]]
    assert next(iter(fitted(columns, Style(), indent=""))).split() == ["a", "b", "c"]
