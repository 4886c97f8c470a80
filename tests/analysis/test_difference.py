"""Differences: the pairing of functions, and their figures."""

from pathlib import Path

import pytest

import perfuse
from perfuse.analysis.callgraph import CallGraph
from perfuse.analysis.diff import Change, Difference, DiffOptions
from perfuse.analysis.function_graph import SAMPLE_STATISTICS, FunctionGraph, GraphFunction, function_graph
from perfuse.analysis.function_matching import FunctionIdentity
from perfuse.analysis.latency import CallAccount
from perfuse.errors import UsageError

Row = tuple[str, str | None, int]
"""Name, module, self weight."""


def _made(*rows: Row, edges: dict[tuple[int, int], int] | None = None, unit: str = "ns") -> FunctionGraph:
    functions = {
        10 * place: GraphFunction(
            name,
            module,
            None,
            None,
            dict.fromkeys(SAMPLE_STATISTICS, weight),
            FunctionIdentity(name, module),
            weight,
            weight,
        )
        for place, (name, module, weight) in enumerate(rows)
    }
    weighed = {ends: dict.fromkeys(SAMPLE_STATISTICS, weight) for ends, weight in (edges or {}).items()}
    whole = sum(weight for _, _, weight in rows)
    return FunctionGraph("made", "samples", "clock", unit, SAMPLE_STATISTICS, len(rows), whole, functions, weighed)


def _rows(difference: Difference) -> list[tuple[str, str, float | None, float | None]]:
    return [
        (one.named.name, one.verdict, one.figures["self"].base, one.figures["self"].new) for one in difference.functions
    ]


def test_by_name_and_module_then_by_name() -> None:
    a = _made(("f", "/old/one", 1), ("f", "/old/two", 2), ("g", "/old/prog-1", 3), ("h", None, 4))
    b = _made(("g", "/new/prog-2", 5), ("f", "/new/two", 6), ("f", "/new/one", 1), ("i", None, 7))
    assert _rows(Difference([a], [b])) == [
        ("f", "same", 1, 1),
        ("f", "unclear", 2, 6),
        ("g", "unclear", 3, 5),
        ("h", "unclear", 4, 0),
        ("i", "unclear", 0, 7),
    ]


def test_functions_that_nothing_distinguishes_are_not_paired() -> None:
    a, b = _made(("f", "m", 1), ("f", "m", 2), ("g", "m", 7)), _made(("f", "m", 3), ("g", "m", 7), ("f", "m", 5))
    difference = Difference([a], [b])
    assert sorted(_rows(difference), key=str) == [("f", "unclear", 3, 8), ("g", "same", 7, 7)]
    assert {one.named.name: (one.evidence, one.members) for one in difference.functions} == {
        "f": ("group", (2, 2)),
        "g": ("name", (1, 1)),
    }
    assert (difference.matched_share("base"), difference.matched_share("new")) == (0.7, 7 / 15)


def test_the_greatest_change_comes_first() -> None:
    a, b = _made(("f", "m", 10), ("g", "m", 5), ("h", "m", 1)), _made(("f", "m", 4), ("h", "m", 1), ("i", "m", 9))
    difference = Difference([a], [b])
    assert [one.named.name for one in difference.top()] == ["i", "f", "g"]
    assert [one.named.name for one in difference.top(2, order="name")] == ["f", "g"]
    with pytest.raises(UsageError, match="the order of samples is one of count, self, total, name, not 'p99'"):
        Difference([a], [b], DiffOptions(statistic="p99"))


def test_change() -> None:
    assert (Change(4, 6).difference, Change(4, 6).ratio) == (2, 0.5)
    assert (Change(None, 6).difference, Change(None, 6).ratio) == (0, None)
    assert (Change(6, 0).difference, Change(6, 0).ratio) == (-6, -1)
    assert Change(0, 6).ratio is None


def test_edges_follow_their_functions() -> None:
    a = _made(("f", "m", 1), ("g", "m", 2), edges={(0, 10): 3, (0, 0): 1})
    b = _made(("g", "m", 2), ("f", "m", 1), ("h", "m", 9), edges={(10, 0): 4, (10, 20): 5})
    compared = {
        (one.caller.named.name, one.callee.named.name): (one.figures["self"].base, one.figures["self"].new)
        for one in Difference([a], [b]).edges
    }
    assert compared == {("f", "g"): (3, 4), ("f", "f"): (1, 0), ("f", "h"): (0, 5)}


def test_refusals(xray_corpus: Path) -> None:
    profile = perfuse.fuse(xray_corpus / "fdr" / "small-v5.xray")
    samples = _made(("f", None, 1))
    with pytest.raises(UsageError, match="the first has samples, the second calls"):
        Difference([samples], [function_graph(profile)])
    with pytest.raises(UsageError, match="the first counts ns, the second events"):
        Difference([samples], [_made(("f", None, 1), unit="events")])
    with pytest.raises(UsageError, match="neither calls nor samples"):
        Difference([samples], [_made()])


def test_numbers_are_those_of_both_accounts(xray_corpus: Path) -> None:
    program = {0: xray_corpus / "bin" / "threads22"}
    profiles = [
        perfuse.fuse(xray_corpus / "fdr" / f"{n}.xray", maps=program) for n in ("threads4-v5", "threads4-rotate-v5")
    ]
    difference = Difference(*([function_graph(one, edges=True)] for one in profiles))
    for profile, side in zip(profiles, ("base", "new"), strict=True):
        account = CallAccount(profile, edges=True)
        functions = {one.function.name: one.latency for one in account.functions()}
        compared = {one.named.name: one for one in difference.functions if getattr(one, f"has_{side}")}
        assert compared.keys() == functions.keys()
        for name, latency in functions.items():
            figures = {key: getattr(figure, side) for key, figure in compared[name].figures.items()}
            expected = {key: getattr(latency, f"{key}_ns") for key in figures if key != "count"}
            assert figures == {"count": latency.num_calls, **expected}
        edges = {(e.caller.name, e.callee.name): e.latency.sum_ns for e in CallGraph(account).edges() if e.caller}
        drawn = {
            (one.caller.named.name, one.callee.named.name): getattr(one.figures["sum"], side)
            for one in difference.edges
            if getattr(one.figures["sum"], side)
        }
        assert drawn == edges


def test_a_profile_and_itself(xray_corpus: Path) -> None:
    one = function_graph(perfuse.fuse(xray_corpus / "fdr" / "lua-small-v5.xray"), edges=True)
    difference = Difference([one], [one])
    assert {each.verdict for each in difference.functions} == {"same"}
    assert (len(difference.functions), difference.top()) == (len(one.functions), [])
    assert all(figure.difference == 0 for edge in difference.edges for figure in edge.figures.values())
