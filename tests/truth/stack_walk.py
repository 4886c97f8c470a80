"""An independent reading of weighted stacks: rows of tables as lists of frames, one sample after the other."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from perfuse.table import Columns


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame by what patterns select."""

    name: str
    module: str | None
    kind: str
    tier: str | None
    declared: tuple[str | None, int | None, int | None]
    """Source file, line and column of the function."""


Stack = tuple[Frame, ...]
"""Frames, outermost first."""


def frames_of(tables: Any) -> dict[int, Frame]:
    """The frames of a profile by key; those without a function have no name."""
    modules = dict(Columns(tables["modules"]).tuples("module_id", "name"))
    mappings = dict(Columns(tables["mappings"]).tuples("mapping_id", "path"))
    columns = ("function_id", "name", "module_id", "path", "line", "column")
    functions = {
        key: (name, modules.get(module), tuple(declared))
        for key, name, module, *declared in Columns(tables["functions"]).tuples(*columns)
    }
    tiers = dict(Columns(tables["code_objects"]).tuples("code_object_id", "tier"))
    found = {}
    columns = ("frame_id", "function_id", "code_object_id", "mapping_id", "kind")
    for key, function, code, mapping, kind in Columns(tables["frames"]).tuples(*columns):
        name, module, declared = functions.get(function, ("", None, (None, None, None)))
        found[key] = Frame(name, module or mappings.get(mapping), kind, tiers.get(code), declared)
    return found


def samples_of(tables: Any, event: str) -> Counter[tuple[int, Stack]]:
    """The weight of each stack in each thread."""
    frames = frames_of(tables)
    rows = {
        key: (parent, frame)
        for key, parent, frame in Columns(tables["stacks"]).tuples("stack_id", "parent_stack_id", "frame_id")
    }
    found: Counter[tuple[int, Stack]] = Counter()
    for thread, stack, weight, name in Columns(tables["samples"]).tuples("thread_id", "stack_id", "weight", "event"):
        if name != event:
            continue
        path, at = [], stack
        while at is not None:
            at, frame = rows[at]
            path.append(frames[frame])
        found[thread, tuple(reversed(path))] += weight
    return +found


def by_stack(samples: Counter[tuple[int, Stack]]) -> Counter[Stack]:
    """The weight of each stack."""
    found: Counter[Stack] = Counter()
    for (_, stack), weight in samples.items():
        found[stack] += weight
    return found


def totals(stacks: Counter[Stack]) -> tuple[Counter[str], Counter[str]]:
    """Self and total weight by name of function; a function counts once for each stack."""
    own, whole = Counter[str](), Counter[str]()
    for stack, weight in stacks.items():
        if stack:
            own[stack[-1].name] += weight
        for name in {frame.name for frame in stack}:
            whole[name] += weight
    return own, whole
