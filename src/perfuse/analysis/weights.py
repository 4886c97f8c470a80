"""Weights of samples by function, module, tier, thread and process."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from perfuse.analysis.profiles import SampleProfile
from perfuse.analysis.sampled import SampleFilter, call_tree, select_event, task_names
from perfuse.table import Columns

WeightOrder = Literal["self", "total"]
Dimension = Literal["module", "tier", "thread", "process"]


@dataclass(frozen=True, slots=True)
class FunctionWeight:
    """The weight of a function.

    Attributes:
        name: Its name; `[unknown] module` for addresses without one.
        function_id: Its key; None for addresses without a name, which are grouped by module and reason.
        module: File or pseudo-module that contains it.
        kind: `jit`, `native`, `kernel`, `hypervisor`, `traced`, `type` (of allocated objects) or `unknown`.
        tiers: Its tiers, the heaviest first; none for code that is not JIT-compiled.
        origin: Origin of the code: `interpreter`, `baseline`, `mid_tier`, `optimised`, `jit`, `stub`, `inlined`,
            `native`, `kernel`, `type` or `unknown`.
        path: Source file.
        line: Line in it, from 1.
        unnamed_because: Why it has no name; None where it has one.
        self_weight: Weight of the samples taken in it, in the unit of the event (`ns` for clocks).
        total_weight: Weight of the samples that have it anywhere in their stack, each counted once.
        self_samples: Number of samples taken in it.
        total_samples: Number of samples that have it in their stack.
    """

    name: str
    function_id: int | None
    module: str | None
    kind: str
    tiers: tuple[str, ...]
    origin: str
    path: str | None
    line: int | None
    unnamed_because: str | None
    self_weight: int
    total_weight: int
    self_samples: int
    total_samples: int


@dataclass(frozen=True, slots=True)
class GroupWeight:
    """The weight of samples grouped by their innermost frame: groups add up to the total.

    Attributes:
        name: Name of the group; the kind of code for code without a tier or, in brackets, without a module.
        kind: Kind of code with the most weight in it; empty for threads and processes.
        self_weight: Weight of the samples, in the unit of the event.
        self_samples: Number of samples.
    """

    name: str
    kind: str
    self_weight: int
    self_samples: int


@dataclass(frozen=True, slots=True)
class UnnamedFrames:
    """Frames without a name, by reason and module; `leaf_samples` have one as their innermost frame."""

    reason: str
    module: str
    frames: int
    leaf_samples: int


_KEY = ("name", "function_id", "module", "path", "line")
_GROUPED: dict[str, Callable[[dict[str, Any]], str]] = {
    "module": lambda row: row["module"] or f"[{row['kind']}]",
    "tier": lambda row: row["tier"] or row["kind"],
}


class Weights:
    """The weights of a profile's samples, from one call tree.

    Args:
        profile: The profile.
        selection: A filter of samples; by default all of the event with the most samples.

    Raises:
        UsageError: The profile has no such event.
    """

    def __init__(self, profile: SampleProfile, selection: SampleFilter | None = None) -> None:
        selected = selection or SampleFilter()
        self.event = select_event(profile, selected.event)
        self._profile = profile
        self._tree = call_tree(profile, selected.with_event(self.event), split_threads=True)

    def functions(self, limit: int | None = None, *, order: WeightOrder = "self") -> list[FunctionWeight]:
        """The heaviest functions.

        Args:
            limit: Largest number of rows; None for all.
            order: Sort by self or by total weight.
        """
        first, second = ("self_weight", "total_weight") if order == "self" else ("total_weight", "self_weight")

        def rank(one: FunctionWeight) -> tuple[Any, ...]:
            return -getattr(one, first), -getattr(one, second), one.name, one.module or "", one.line or 0

        return sorted(self._functions, key=rank)[:limit]

    def groups(self, by: Dimension) -> list[GroupWeight]:
        """Weight by module, tier, thread (`name tid`) or process (`name pid`), the heaviest first."""
        if by in _GROUPED:
            return _groups(self._by_tier, _GROUPED[by], lambda row: row["kind"])
        names = task_names(self._profile, "threads" if by == "thread" else "processes")
        return _groups(self._rows("thread"), lambda row: names[row["thread_id"]], lambda _row: "")

    def unnamed(self) -> list[UnnamedFrames]:
        """Frames without a name, by reason and module; those of the most samples first."""
        return [UnnamedFrames(*row) for row in self._tree.unnamed()]

    @cached_property
    def _functions(self) -> list[FunctionWeight]:
        tiers: dict[tuple[Any, ...], dict[str, None]] = defaultdict(dict)
        for row in self._by_tier:
            if row["tier"]:
                tiers[tuple(row[column] for column in _KEY)][row["tier"]] = None
        return [
            FunctionWeight(
                tiers=tuple(tiers[tuple(row[column] for column in _KEY)]),
                **{column: value for column, value in row.items() if column not in ("tier", "thread_id")},
            )
            for row in self._rows("function")
        ]

    @cached_property
    def _by_tier(self) -> list[dict[str, Any]]:
        """A row for each tier of a function."""
        return self._rows("tiered")

    def _rows(self, by: str) -> list[dict[str, Any]]:
        """Rows of the core, heaviest first."""
        return list(Columns(self._tree.weights(by)).rows())


def _groups(
    rows: list[dict[str, Any]], name: Callable[[dict[str, Any]], str], kind: Callable[[dict[str, Any]], str]
) -> list[GroupWeight]:
    sums: dict[str, list[int]] = {}
    kinds: dict[str, str] = {}
    for row in rows:
        if row["self_samples"]:
            group = name(row)
            # Rows are sorted by weight: the first kind of a group has the most weight.
            kinds.setdefault(group, kind(row))
            weights = sums.setdefault(group, [0, 0])
            weights[0] += row["self_weight"]
            weights[1] += row["self_samples"]
    groups = [GroupWeight(group, kinds[group], *weights) for group, weights in sums.items()]
    return sorted(groups, key=lambda group: (-group.self_weight, group.name))
