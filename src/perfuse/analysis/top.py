"""Where the weight is: functions, modules, tiers, threads, and what has no name."""

from dataclasses import dataclass
from typing import Any, Literal

from perfuse.analysis.sampled import Sampled, Selection, call_tree, chosen_event

Dimension = Literal["module", "tier", "origin", "thread", "reason"]


@dataclass(frozen=True, slots=True)
class Weight:
    """How heavy something is.

    Attributes:
        name: What it is; None where there is none (code of no tier, of no known module).
        self_weight: Weight of the samples taken in it, in the unit of the event (`ns` for clocks).
        total_weight: Weight of the samples that have it anywhere in their stack, each counted once.
        self_samples: Number of samples taken in it.
        total_samples: Number of samples that have it in their stack.
    """

    name: str | None
    self_weight: int
    total_weight: int
    self_samples: int
    total_samples: int


@dataclass(frozen=True, slots=True)
class FunctionWeight(Weight):
    """How heavy a function is.

    Attributes:
        function_id: Its key; None for addresses without a name, which are counted together by module and reason.
        module: File or pseudo-module it is in.
        kind: `jit`, `native`, `kernel`, `hypervisor` or `unknown`.
        tier: Its tier, of several the heaviest; None for code that is not JIT-compiled.
        origin: What made the code: `interpreter`, `baseline`, `mid_tier`, `optimised`, `jit`, `stub`, `inlined`,
            `native`, `kernel` or `unknown`.
        path: Source file.
        line: Line in it, from 1.
        unnamed_because: Why it has no name; None where it has one.
    """

    function_id: int | None
    module: str | None
    kind: str
    tier: str | None
    origin: str
    path: str | None
    line: int | None
    unnamed_because: str | None


_WEIGHTS = ("name", "self_weight", "total_weight", "self_samples", "total_samples")
_FUNCTIONS = (*_WEIGHTS, "function_id", "module", "kind", "tier", "origin", "path", "line", "unnamed_because")


def top_functions(
    profile: Sampled,
    limit: int | None = None,
    *,
    order: Literal["self", "total"] = "self",
    by_tier: bool = False,
    selection: Selection | None = None,
) -> list[FunctionWeight]:
    """The heaviest functions.

    Args:
        profile: Where to look.
        limit: How many; None for all.
        order: Whether the heaviest by self or by total weight come first.
        by_tier: Whether a function's tiers are rows of their own.
        selection: Which samples; by default all of the event that has the most.

    Raises:
        UsageError: The profile has no such event.
    """
    rows = [FunctionWeight(*row) for row in _rows(profile, "tiered" if by_tier else "function", _FUNCTIONS, selection)]
    if order == "total":
        rows.sort(key=lambda row: (row.total_weight, row.self_weight), reverse=True)
    return rows[:limit]


def top_groups(profile: Sampled, by: Dimension, *, selection: Selection | None = None) -> list[Weight]:
    """Weight by module, tier, origin, thread (`name-pid/tid`) or, for frames without a name, by the reason.

    The totals of groups overlap: a sample counts in each that its stack passes.

    Raises:
        UsageError: The profile has no such event.
    """
    if by != "thread":
        return [Weight(*row) for row in _rows(profile, by, _WEIGHTS, selection)]
    names = dict(thread_labels(profile))
    columns = ("thread_id", *_WEIGHTS[1:])
    return [Weight(names.get(thread), *rest) for thread, *rest in _rows(profile, by, columns, selection)]


def thread_labels(profile: Sampled) -> list[tuple[int, str]]:
    """Each `thread_id` with the thread's name, pid and tid in one text."""
    query = """
        SELECT thread_id, coalesce(t.name::VARCHAR, p.name::VARCHAR, 'thread') || ' ' || p.pid || '/' || t.tid
        FROM threads t JOIN processes p USING (process_id) ORDER BY p.pid, t.tid
    """
    return [(key, label) for key, label in profile.sql(query).fetchall()]


def _rows(profile: Sampled, by: str, columns: tuple[str, ...], selection: Selection | None) -> list[tuple[Any, ...]]:
    from arro3.core import Table

    selection = selection or Selection()
    event = chosen_event(profile, selection.event)
    selection = Selection(event.name, selection.threads, selection.processes, selection.time_ns)
    tree = call_tree(profile, selection, split_threads=by == "thread")
    table = Table.from_arrow(tree.weights(by))
    return list(zip(*(table[column].to_pylist() for column in columns), strict=True))
