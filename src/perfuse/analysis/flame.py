"""The content of a flame graph: the call tree of selected samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

from perfuse import _core
from perfuse.analysis.profiles import SampleProfile
from perfuse.analysis.sampled import Event, SampleFilter, call_tree, select_event
from perfuse.errors import UsageError
from perfuse.table import RETAINED, SUM_EVENTS, Columns

Metric = Literal["weight", "samples"]


@dataclass(frozen=True)
class FlameTree:
    """What a flame graph shows: an event, a selection of its samples, and the call tree of these.

    Attributes:
        profile: The profile.
        event: The event.
        selection: The selected samples.
        inverted: Whether roots are the innermost functions and children their callers.
        metric: Meaning of widths: `weight` (time, for clock events) or `samples`.
    """

    profile: SampleProfile
    event: Event
    selection: SampleFilter
    inverted: bool = False
    metric: Metric = "weight"

    @classmethod
    def of(
        cls,
        profile: SampleProfile,
        *,
        inverted: bool = False,
        weight: Metric = "weight",
        event: str | None = None,
        threads: tuple[int, ...] | None = None,
        processes: tuple[int, ...] | None = None,
        time_ns: tuple[int, int] | None = None,
    ) -> Self:
        """The content for the samples that pass the filters.

        Args:
            profile: The profile.
            inverted: Whether roots are the innermost functions and children their callers.
            weight: Meaning of widths: `weight` or `samples`.
            event: Name of the event; by default the one with the most samples.
            threads: Keys (`thread_id`) of threads; all by default.
            processes: Keys (`process_id`) of processes; all by default.
            time_ns: Start and end (not included) on the profile's clock.

        Raises:
            UsageError: The profile has no such event, thread or process, the time is empty, or `weight` is neither of
                the two.
        """
        if weight not in ("weight", "samples"):
            raise UsageError(f"weight is one of weight, samples, not {weight!r}", field="weight")
        _require_keys(profile, "threads", "thread_id", threads or ())
        _require_keys(profile, "processes", "process_id", processes or ())
        if time_ns is not None and time_ns[0] >= time_ns[1]:
            raise UsageError(f"there is no time between {time_ns[0]} and {time_ns[1]} ns", field="time_ns")
        found = select_event(profile, event)
        return cls(profile, found, SampleFilter(found.name, threads, processes, time_ns), inverted, weight)

    @property
    def is_of_samples(self) -> bool:
        """Whether it is of samples; sums of calls and allocations, and sizes of a heap, have no number of them."""
        return self.event.name not in (*SUM_EVENTS, RETAINED)

    @property
    def title(self) -> str:
        """What was recorded."""
        return self.profile.title

    def tree(self, *, inverted: bool = False, split_threads: bool = False, min_share: float = 0.0) -> _core.CallTree:
        """The call tree.

        Args:
            inverted: Whether children are callers.
            split_threads: Whether each thread has its own roots.
            min_share: Nodes with less than this share (0 to 1) of the total weight are left out.

        Raises:
            UsageError: `min_share` is not a share.
        """
        if not 0 <= min_share <= 1:
            raise UsageError(f"min_share is from 0 to 1, not {min_share}", field="min_share")
        return call_tree(
            self.profile, self.selection, inverted=inverted, split_threads=split_threads, min_share=min_share
        )


def _require_keys(profile: SampleProfile, table: str, column: str, keys: Sequence[int]) -> None:
    """Raises `UsageError` for keys that no row of a table has."""
    known = set(Columns(profile.tables[table])[column]) if keys else set()
    if unknown := [str(key) for key in keys if key not in known]:
        hint = f"keys of {table} are from 0 to {max(known, default=0)}"
        raise UsageError(f"no row of table {table} has {column} {', '.join(unknown)}", field=table, hint=hint)
