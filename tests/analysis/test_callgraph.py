"""Edges, stacks and the call tree of real logs, compared with SQL over their slices."""

from collections import Counter
from pathlib import Path

import pytest

import perfuse
from perfuse import Profile
from perfuse.analysis.callgraph import CallGraph, CallPaths, StackOrder
from perfuse.analysis.latency import CallAccount
from perfuse.analysis.stack_groups import StackGroups
from perfuse.errors import UsageError

PATHS = """
    WITH RECURSIVE path AS (
        SELECT slice_id, thread_id, self_ns, duration_ns, [function_id] AS functions
        FROM slices WHERE parent_slice_id IS NULL
        UNION ALL
        SELECT s.slice_id, s.thread_id, s.self_ns, s.duration_ns, list_append(functions, s.function_id)
        FROM slices s JOIN path ON s.parent_slice_id = path.slice_id)
    SELECT functions, thread_id, count(*), sum(duration_ns)::BIGINT, sum(self_ns)::BIGINT FROM path GROUP BY ALL
"""
Numbers = dict[tuple[int, ...], tuple[int, int, int]]


@pytest.fixture(scope="module", params=["threads4-v5", "lua-small-v5", "threads4-rotate-v5"])
def profile(request: pytest.FixtureRequest, xray_corpus: Path) -> Profile:
    """Threads; an interpreter that leaves calls by `longjmp`; calls whose entries were lost."""
    return perfuse.fuse(xray_corpus / "fdr" / f"{request.param}.xray")


@pytest.fixture(scope="module")
def account(profile: Profile) -> CallAccount:
    return CallAccount(profile, edges=True, paths=True)


def test_edges_are_those_of_slices(profile: Profile, account: CallAccount) -> None:
    query = """
        SELECT caller.function_id, callee.function_id, count(*),
            coalesce(sum(callee.duration_ns) FILTER (callee.start_reason = 'entry'), 0)::BIGINT
        FROM slices callee LEFT JOIN slices caller ON callee.parent_slice_id = caller.slice_id GROUP BY ALL
    """
    edges = CallGraph(account).edges()
    found = {
        (
            one.caller.function_id if one.caller else None,
            one.callee.function_id,
            one.latency.num_calls,
            one.latency.sum_ns,
        )
        for one in edges
    }
    assert found == {*profile.sql(query).fetchall()}
    assert [one.latency.sum_ns for one in edges] == sorted((one.latency.sum_ns for one in edges), reverse=True)
    assert CallGraph(account).num_edges() == len(edges)


def test_edges_of_a_function_go_both_ways(account: CallAccount) -> None:
    graph = CallGraph(account)
    whole = graph.edges()
    name = next(one.caller.name for one in whole if one.caller)
    meant = [one for one in whole if name in (one.callee.name, one.caller.name if one.caller else None)]
    assert graph.edges(pattern=f"/^{name}$/") == meant
    assert graph.num_edges(f"/^{name}$/") == len(meant)
    assert graph.edges(3, order="count") == graph.edges(order="count")[:3]


@pytest.mark.parametrize("order", ["self", "total", "count"])
def test_stacks_are_those_of_slices(profile: Profile, account: CallAccount, order: StackOrder) -> None:
    expected = _paths(profile)
    paths = CallPaths(account)
    stacks = paths.top(order=order)
    found = {
        tuple(one.function_id for one in stack.functions): (stack.num_calls, stack.total_ns, stack.self_ns)
        for stack in stacks
    }
    column = ("count", "total", "self").index(order)
    # Functions without weight are not listed.
    assert found == {path: numbers for path, numbers in expected.items() if numbers[column]}
    weights = [numbers[column] for numbers in found.values()]
    assert weights == sorted(weights, reverse=True)
    assert paths.top(4, order=order) == stacks[:4]
    assert (len(paths), paths.whole_ns) == (len(expected), sum(own for *_, own in expected.values()))


def test_stacks_of_a_thread(profile: Profile, account: CallAccount) -> None:
    for activity in account.threads():
        thread = activity.thread
        found = {
            tuple(one.function_id for one in stack.functions): stack.num_calls
            for stack in CallPaths(account, thread).top(order="count")
        }
        assert found == {path: calls for path, (calls, *_) in _paths(profile, thread.thread_id).items()}


def test_stacks_by_the_name_of_the_innermost(account: CallAccount) -> None:
    paths = CallPaths(account)
    name = paths.top(1)[0].functions[-1].name
    stacks = paths.top(pattern=f"/^{name}$/")
    assert stacks == [stack for stack in paths.top() if stack.functions[-1].name == name]


def test_the_tree_has_every_path_below_its_caller(profile: Profile) -> None:
    above: list[int] = []
    found: Numbers = {}
    for node in StackGroups(profile, "wall-time").tree().nodes:
        del above[node.depth :]
        assert node.function.function_id is not None
        above.append(node.function.function_id)
        found[tuple(above)] = (node.weight.self_count, node.weight.total_weight, node.weight.self_weight)
    assert found == _paths(profile)
    siblings: dict[tuple[int, ...], list[int]] = {}
    for path, (_, total, _) in found.items():
        siblings.setdefault(path[:-1], []).append(total)
    assert all(totals == sorted(totals, reverse=True) for totals in siblings.values())


def test_calls_that_took_no_time_are_in_the_tree(xray_corpus: Path) -> None:
    # The clock of this log does not advance.
    profile = perfuse.fuse(xray_corpus / "fdr-old" / "small_nc-v4.xray")
    account = CallAccount(profile, paths=True)
    assert CallPaths(account).whole_ns == 0
    nodes = StackGroups(profile).tree().nodes
    assert sum(node.weight.self_count for node in nodes) == account.totals.num_calls == 102


def test_an_unknown_order_is_refused(account: CallAccount) -> None:
    with pytest.raises(UsageError, match="order is one of self, total, count"):
        CallPaths(account).top(order="sum")  # type: ignore[arg-type]


def _paths(profile: Profile, thread_id: int | None = None) -> Numbers:
    numbers: dict[tuple[int, ...], Counter[str]] = {}
    for functions, thread, calls, total, own in profile.sql(PATHS).fetchall():
        if thread_id in (None, thread):
            numbers.setdefault(tuple(functions), Counter()).update(calls=calls, total=total, own=own)
    return {path: (one["calls"], one["total"], one["own"]) for path, one in numbers.items()}
