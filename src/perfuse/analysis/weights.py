"""Where the weight is: functions, modules, tiers, threads, processes."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from perfuse.analysis.profiles import SampleProfile
from perfuse.analysis.sampled import SampleFilter, call_tree, select_event, task_names
from perfuse.table import Columns

Order = Literal["self", "total"]
Dimension = Literal["module", "tier", "thread", "process"]


@dataclass(frozen=True, slots=True)
class FunctionWeight:
    """How heavy a function is.

    Attributes:
        name: Its name; `[unknown] module` for addresses without one.
        function_id: Its key; None for addresses without a name, which are counted together by module and reason.
        module: File or pseudo-module it is in.
        kind: `jit`, `native`, `kernel`, `hypervisor` or `unknown`.
        tiers: Its tiers, the heaviest first; none for code that is not JIT-compiled.
        origin: What made the code: `interpreter`, `baseline`, `mid_tier`, `optimised`, `jit`, `stub`, `inlined`,
            `native`, `kernel` or `unknown`.
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
    """How heavy a group of samples is, told by where their innermost frame is: groups add up to the whole.

    Attributes:
        name: What they have in common; the kind of code where it is of no tier or, in brackets, of no module.
        kind: Kind of code that weighs most in it; empty for threads and processes.
        self_weight: Weight of the samples, in the unit of the event.
        self_samples: Number of samples.
    """

    name: str
    kind: str
    self_weight: int
    self_samples: int


@dataclass(frozen=True, slots=True)
class Unnamed:
    """Frames without a name, by reason and module; `leaf_samples` have one innermost."""

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
    """The weights of a profile's samples: folded once, then asked as often as needed.

    Args:
        profile: Where to look.
        selection: Which samples; by default all of the event that has the most.

    Raises:
        UsageError: The profile has no such event.
    """

    def __init__(self, profile: SampleProfile, selection: SampleFilter | None = None) -> None:
        chosen = selection or SampleFilter()
        self.event = select_event(profile, chosen.event)
        self._profile = profile
        self._tree = call_tree(profile, chosen.of(self.event), split_threads=True)

    def functions(self, limit: int | None = None, *, order: Order = "self") -> list[FunctionWeight]:
        """The heaviest functions.

        Args:
            limit: How many; None for all.
            order: Whether the heaviest by self or by total weight come first.
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

    def unnamed(self) -> list[Unnamed]:
        """Frames without a name, by reason and module; those that hide most samples first."""
        return [Unnamed(*row) for row in self._tree.unnamed()]

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
        """A function's tiers as rows of their own."""
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
            # Rows come heaviest first: the first kind of a group is that of most of it.
            kinds.setdefault(group, kind(row))
            weights = sums.setdefault(group, [0, 0])
            weights[0] += row["self_weight"]
            weights[1] += row["self_samples"]
    groups = [GroupWeight(group, kinds[group], *weights) for group, weights in sums.items()]
    return sorted(groups, key=lambda group: (-group.self_weight, group.name))
