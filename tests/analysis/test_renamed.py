"""Functions with a new name: programs of which one function was renamed, and ones of which none was."""

from pathlib import Path

import pytest

import perfuse
from perfuse.analysis.diff import Difference
from perfuse.analysis.function_graph import function_graph
from perfuse.analysis.renamed import renamed_functions

BEFORE = {
    "main;load;parse;lex": 50,
    "main;load;parse": 150,
    "main;load;check;lex": 20,
    "main;work": 400,
    "main;load;other": 20,
}


def renamed(directory: Path, after: dict[str, int]) -> list[tuple[str, str, float]]:
    graphs = []
    for name, lines in (("before", BEFORE), ("after", after)):
        path = directory / f"{name}.folded"
        path.write_text("".join(f"{stack} {count}\n" for stack, count in lines.items()), encoding="utf-8")
        graphs.append(function_graph(perfuse.fuse(path), edges=True))
    difference = Difference(graphs[:1], graphs[1:])
    found = renamed_functions(difference)
    # They are listed beside the comparison, which has both.
    assert all(one.old.members == (1, 0) and one.new.members == (0, 1) for one in found)
    return [(one.old.named.name, one.new.named.name, one.similarity) for one in found]


def with_name(old: str, new: str) -> dict[str, int]:
    return {stack.replace(old, new): count for stack, count in BEFORE.items()}


def test_a_new_name_with_the_same_callers_and_callees(tmp_path: Path) -> None:
    ((old, new, similarity),) = renamed(tmp_path, with_name("parse", "parse_fast"))
    assert (old, new) == ("parse", "parse_fast")
    assert similarity == pytest.approx(1)


def test_nothing_was_renamed(tmp_path: Path) -> None:
    assert renamed(tmp_path, BEFORE) == []
    # It is gone, and what is new has another caller.
    after = {stack: count for stack, count in BEFORE.items() if "parse" not in stack}
    assert renamed(tmp_path, {**after, "main;work;trace": 180}) == []


@pytest.mark.parametrize(
    "after",
    [
        # Two that resemble it as well: neither is it.
        {**{k: v for k, v in BEFORE.items() if "parse" not in k}, "main;load;p1": 100, "main;load;p2": 100},
        # Ten times as much.
        {**with_name("parse", "parse_all"), "main;load;parse_all": 2000},
        # Other callees.
        {**{k: v for k, v in BEFORE.items() if "parse" not in k}, "main;load;quick;other": 190, "main;load;quick": 1},
    ],
)
def test_what_may_be_another_function_is_not_named(tmp_path: Path, after: dict[str, int]) -> None:
    assert renamed(tmp_path, after) == []


def test_small_functions_are_not_compared(tmp_path: Path) -> None:
    assert renamed(tmp_path, {**with_name("parse", "parse_fast"), "main;idle": 1_000_000}) == []
