"""Views of stacks, compared with sums over lists of frames, a sample at a time; and with each other."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from perfuse.analysis.stack_groups import StackGroups
from perfuse.profile import Profile
from perfuse.reports.stack_views import build

from .command import json_of
from .kinds import Kind
from .stack_walk import Frame, Stack, by_stack, samples_of, totals
from .test_stack_filters import main_event, some_function

NEW = ["--percent-limit", "0", "--limit", "0"]
"""Options with which every kind of recording gets the report of stacks."""


def label(frame: Frame) -> str:
    """The name of a frame in trees: those without a function are grouped by module."""
    if frame.name:
        return frame.name
    if frame.kind in ("kernel", "hypervisor", "jit"):
        return f"[unknown] {frame.kind}"
    return f"[unknown] {frame.module.rsplit('/', 1)[-1]}" if frame.module else "[unknown]"


def named(stack: Stack) -> tuple[str, ...]:
    return tuple(map(label, stack)) or ("[no stack]",)


def walked(profile: Profile) -> tuple[str, Counter[Stack]]:
    """The stacks of the example: of retained sizes, where there are no samples."""
    if len(profile.tables["samples"]):
        event = main_event(profile)
        return event, by_stack(samples_of(profile.tables, event))
    return "retained", by_stack(samples_of(profile.heap().retained_sizes.tables, "retained"))


def paths_of(nodes: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    paths: list[tuple[str, ...]] = []
    for node in nodes:
        above = () if node["parent"] is None else paths[node["parent"]]
        paths.append((*above, node["function"]["name"]))
    return paths


@pytest.mark.truth(
    recording="*",
    path=["report:tree", "report:stacks", "report:inverted"],
    source="sums over lists of frames, a sample at a time",
)
def test_trees_and_stacks(kind: Kind, profile: Profile, path: str) -> None:
    event, stacks = walked(profile)
    if not stacks:
        return
    view = path.replace("report:", "--")
    if kind.name in ("perf_node", "xray_fdr", "mono_heap"):
        report = json_of("report", *kind.paths, *kind.map_options, view, *NEW, "--event", event)
    else:
        report = build(profile, {view: True, "--limit": 0, "--event": event}).as_json()
    whole = sum(stacks.values())
    assert report["recorded"]["weight"] == report["selected"]["weight"] == whole
    expected = Counter[tuple[str, ...]]()
    for stack, weight in stacks.items():
        expected[named(stack)] += weight
    if path == "report:stacks":
        found = Counter[tuple[str, ...]]()
        for one in report["stacks"]:
            found[tuple(one["functions"])] += one["weight"]
        assert +found == +expected
        return
    tree = report["tree"]
    paths = paths_of(tree["nodes"])
    own, total = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    for one, node in zip(paths, tree["nodes"], strict=True):
        own[one] += node["self_weight"]
        total[one] += node["total_weight"]
    assert sum(own.values()) == whole
    sums = Counter[tuple[str, ...]]()
    for stack, weight in expected.items():
        way = stack[::-1] if path == "report:inverted" else stack
        for depth in range(len(way)):
            sums[way[: depth + 1]] += weight
    assert +total == +sums
    assert all(node["left_out_weight"] == 0 for node in tree["nodes"])


@pytest.mark.truth(
    recording="*", path=["report:tree", "report:inverted"], source="sums over lists of frames, a sample at a time"
)
def test_what_a_tree_leaves_out(profile: Profile, path: str) -> None:
    """What nodes show, and what they say they leave out, is the whole at each of them."""
    event, stacks = walked(profile)
    if not stacks:
        return
    view = path.replace("report:", "--")
    report = build(profile, {view: True, "--limit": 7, "--depth": 5, "--event": event}).as_json()
    tree = report["tree"]
    assert 0 < len(tree["nodes"]) <= 7
    children = Counter[int | None]()
    for node in tree["nodes"]:
        children[node["parent"]] += node["total_weight"]
    assert children[None] + tree["left_out_weight"] == sum(stacks.values())
    for node in tree["nodes"]:
        assert node["self_weight"] + children[node["node"]] + node["left_out_weight"] == node["total_weight"]


@pytest.mark.truth(recording="*", path="report:tree", source="sums over lists of frames, a sample at a time")
def test_groups_functions_and_callers(profile: Profile) -> None:
    event, stacks = walked(profile)
    if not stacks:
        return
    source = profile if len(profile.tables["samples"]) else profile.heap().retained_sizes
    groups = StackGroups(source, event)
    whole = sum(stacks.values())
    own, total = totals(stacks)
    found_own, found_total = Counter[str](), Counter[str]()
    for one in groups.functions(order="name"):
        if one.function is not None and one.function.function_id is not None:
            found_own[one.name] += one.weight.self_weight
            found_total[one.name] = max(found_total[one.name], one.weight.total_weight)
    assert found_own == Counter({name: weight for name, weight in own.items() if name and weight})
    assert all(found_total[name] <= total[name] for name in found_total)
    for by in ("function", "module", "tier", "line", "process", "thread"):
        if source is profile or by not in ("process", "thread"):
            assert sum(one.weight.self_weight for one in groups.groups(by)) == whole  # type: ignore[arg-type]
    modules, tiers = Counter[str](), Counter[str]()
    for stack, weight in stacks.items():
        for module in {frame.module for frame in stack}:
            modules[module or "[no module]"] += weight
        for tier in {frame.tier or frame.kind for frame in stack}:
            tiers[tier] += weight
    for by, sums in (("module", modules), ("tier", tiers)):
        listed = {one.name: one.weight.total_weight for one in groups.groups(by)}  # type: ignore[arg-type]
        assert {name: weight for name, weight in listed.items() if name in sums} == +sums


@pytest.mark.truth(recording="*", path="report:tree", source="sums over lists of frames, a sample at a time")
def test_callers_and_callees(profile: Profile) -> None:
    event, stacks = walked(profile)
    if not stacks:
        return
    source = profile if len(profile.tables["samples"]) else profile.heap().retained_sizes
    groups = StackGroups(source, event)
    _, total = totals(stacks)
    name = some_function(stacks)
    for view in groups.view(name):
        if view.function.name != name or total[name] != view.weight.total_weight:
            continue
        callers, callees = Counter[str](), Counter[str]()
        for stack, weight in stacks.items():
            at = next((depth for depth, frame in enumerate(stack) if frame.name == name), None)
            if at is not None:
                callers[label(stack[at - 1]) if at else ""] += weight
                callees[label(stack[at + 1]) if at + 1 < len(stack) else ""] += weight
        for tree, expected in ((view.callers, callers), (view.callees, callees)):
            assert tree.total_weight == total[name]
            # A root for each tier of the function.
            tops = {node.node: node.weight.total_weight for node in tree.nodes if node.parent is None}
            assert sum(tops.values()) == total[name]
            direct = Counter[str]()
            for node in tree.nodes:
                if node.parent in tops:
                    direct[node.function.name] += node.weight.total_weight
            expected.pop("", None)
            assert +direct == +expected
