"""Filters of stacks on `diff`: the numbers of two files that contain only what is selected."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import perfuse
from perfuse.analysis.diff import Difference
from perfuse.analysis.function_graph import function_graph

from .command import json_of
from .kinds import Kind
from .outside import collapsed

Stack = tuple[str, ...]


def only(stack: Stack, name: str) -> Stack | None:
    return stack if name in stack else None


def drop(stack: Stack, name: str) -> Stack | None:
    return None if name in stack else stack


def hide(stack: Stack, name: str) -> Stack | None:
    return tuple(one for one in stack if one != name) or None


def root(stack: Stack, name: str) -> Stack | None:
    return stack[stack.index(name) :] if name in stack else None


def leaf(stack: Stack, name: str) -> Stack | None:
    return stack[: stack.index(name) + 1] if name in stack else stack


STEPS: dict[str, Callable[[Stack, str], Stack | None]] = {
    "only": only,
    "drop": drop,
    "hide": hide,
    "root": root,
    "leaf": leaf,
}


def weights(stacks: Counter[Stack]) -> dict[str, tuple[int, int]]:
    """Self and total of each function."""
    own, total = Counter[str](), Counter[str]()
    for stack, weight in stacks.items():
        own[stack[-1]] += weight
        for name in set(stack):
            total[name] += weight
    return {name: (own[name], total[name]) for name in total}


def figures(document: dict[str, Any]) -> dict[str, tuple[tuple[int, int], tuple[int, int]]]:
    return {
        one["name"]: tuple((one[part]["base"], one[part]["new"]) for part in ("self", "total"))  # type: ignore[misc]
        for one in document["functions"]
    }


@pytest.mark.truth(recording="collapsed", path="diff", source="the same selection of the lines of both files")
@pytest.mark.parametrize("step", STEPS)
def test_filters_of_differences(kind: Kind, step: str, tmp_path: Path) -> None:
    base = Counter({tuple(stack.split(";")): count for stack, count in collapsed(kind.paths[0]).items()})
    # Every third line is half as often, every seventh is gone.
    lines = sorted(base.items())
    new = Counter(
        {stack: count // 2 + 1 if at % 3 == 0 else count for at, (stack, count) in enumerate(lines) if at % 7}
    )
    later = tmp_path / "later.folded"
    later.write_text("".join(f"{';'.join(stack)} {count}\n" for stack, count in new.items()), encoding="utf-8")
    common = {name for stack in base for name in stack} & {name for stack in new for name in stack}
    partial = sorted(name for name in common if any(name not in stack for stack in new))
    depths = {name: sum(0 < stack.index(name) < len(stack) - 1 for stack in new if name in stack) for name in partial}
    name = max(partial, key=lambda one: (depths[one], one))
    selected = []
    for stacks in (base, new):
        found = Counter[Stack]()
        for stack, count in stacks.items():
            changed = STEPS[step](stack, name)
            if changed is not None:
                found[changed] += count
        selected.append(weights(found))
    document = json_of("diff", kind.paths[0], later, "--limit", "0", f"--{step}", f"/^{name}$/")
    found_figures = figures(document)
    expected = {
        one: tuple(zip(*(side.get(one, (0, 0)) for side in selected), strict=True))
        for one in selected[0].keys() | selected[1].keys()
    }
    assert found_figures == expected
    assert document["selection"]["filter"] == f"--{step} '/^{name}$/'"
    shares = [
        sum(own for own, _ in side.values()) / sum(stacks.values())
        for side, stacks in zip(selected, (base, new), strict=True)
    ]
    assert [document["selection"][side] for side in ("base", "new")] == pytest.approx(shares)
    # The same from Python.
    profiles = [perfuse.fuse(path) for path in (kind.paths[0], later)]
    graphs = [function_graph(getattr(profile, step)(f"/^{name}$/")) for profile in profiles]
    changes = Difference(graphs[:1], graphs[1:]).functions
    assert {
        one.named.name: tuple((one.figures[part].base, one.figures[part].new) for part in ("self", "total"))
        for one in changes
    } == expected


@pytest.mark.truth(recording="xray_fdr", path="diff", source="sums of the durations of single calls")
def test_filters_of_calls(kind: Kind) -> None:
    """Calls that a function makes: their sums are those of its calls in the log."""
    profile = perfuse.fuse(*kind.paths, **kind.fuse_options)
    rows = profile.sql(
        """SELECT f.name::VARCHAR, s.slice_id, s.parent_slice_id, s.self_ns, s.thread_id FROM slices s
           JOIN functions f USING (function_id) WHERE s.kind::VARCHAR = 'call'"""
    ).fetchall()
    names = {row[1]: row[0] for row in rows}
    parents = {row[1]: row[2] for row in rows}

    def stack(slice_id: int | None) -> list[str]:
        found = []
        while slice_id is not None:
            found.append(names[slice_id])
            slice_id = parents[slice_id]
        return found

    stacks = {row[1]: stack(row[1]) for row in rows}
    ranks = Counter(name for one in stacks.values() for name in set(one) if one[-1] != name)
    name = min(ranks, key=lambda one: (-ranks[one], one))
    expected, calls = Counter[str](), Counter[str]()
    for own, slice_id, _, self_ns, _ in rows:
        if name in stacks[slice_id]:
            expected[own] += self_ns
            calls[own] += 1
    command = ["diff", *kind.paths, *kind.paths, *kind.map_options, "--root", f"/^{re.escape(name)}$/", "--limit", "0"]
    document = json_of(*command)
    found = {one["name"]: one["self"]["base"] for one in document["functions"] if one["self"]["base"]}
    assert found == dict(+expected)
    assert document["event"] == "wall-time"
    assert {one["name"]: one["count"]["base"] for one in document["functions"]} == dict(calls)


@pytest.mark.truth(recording=["xray_fdr", "xray_basic"], path="diff", source="the number of single calls")
def test_counts_of_compared_calls_are_of_the_function(kind: Kind) -> None:
    profile = perfuse.fuse(*kind.paths, **kind.fuse_options)
    calls = dict(
        profile.sql(
            """SELECT f.name::VARCHAR, count(*) FROM slices s JOIN functions f USING (function_id)
               WHERE s.kind::VARCHAR = 'call' GROUP BY 1"""
        ).fetchall()
    )
    document = json_of("diff", *kind.paths, *kind.paths, *kind.map_options, "--weight", "calls", "--limit", "0")
    counts = Counter[str]()
    for one in document["functions"]:
        assert one["count"]["base"] == one["self"]["base"]
        counts[one["name"]] += one["count"]["base"]
    assert dict(counts) == calls
