"""Handles: what native code holds on to."""

from dataclasses import dataclass
from functools import cached_property

from perfuse.analysis.backtraces import Backtrace, backtraces
from perfuse.analysis.runtime import Managed


@dataclass(frozen=True, slots=True)
class HandleKind:
    """Handles of a kind.

    Attributes:
        kind: `weak`, `weak_track_resurrection`, `normal` or `pinned`.
        num_created: How many were made.
        num_destroyed: How many were freed.
        num_left: Made, and never freed.
        max_alive: Most at a time.
    """

    kind: str
    num_created: int
    num_destroyed: int
    num_left: int
    max_alive: int


@dataclass(frozen=True, slots=True)
class HandleSite:
    """Handles of a kind that one stack made.

    Attributes:
        kind: Their kind.
        backtrace: Functions, outermost first; empty where none was taken.
        num_created: How many.
        num_left: Of them, those never freed.
    """

    kind: str
    backtrace: Backtrace
    num_created: int
    num_left: int


class Handles:
    """Handles made or freed in the selected threads and time.

    Attributes:
        kinds: By kind, the one most were made of first.
    """

    def __init__(self, profile: Managed) -> None:
        self._profile = profile
        kinds, _ = profile.handle_sums(stacks=False)
        self.kinds = sorted((HandleKind(*row) for row in kinds), key=lambda one: (-one.num_created, one.kind))

    @cached_property
    def sites(self) -> list[HandleSite]:
        """By kind and by who made them, most left over first: takes another look at all of them."""
        _, sums = self._profile.handle_sums(stacks=True)
        stacks = backtraces(self._profile, "gc_handles", [stack for _, stack, *_ in sums])
        # Of as many, in the order in which their stacks were first seen.
        sums.sort(key=lambda row: (-row[3], -row[2], row[0], row[1] is None, row[1]))
        return [HandleSite(kind, stacks[stack], count, left) for kind, stack, count, left in sums]
