"""Calls, slices, counters and instants of a profile as streams, for files of timeline viewers."""

from collections.abc import Callable
from typing import IO, Any, Protocol

from perfuse import _core
from perfuse.filters.selection import Selection
from perfuse.output.descriptor import descriptor_of


class TracedProfile(Protocol):
    """A profile with recorded calls and events; `perfuse.Profile` is one."""

    selection: Selection

    @property
    def _events(self) -> _core.Profile:
        """What has the calls and events of the selected time."""
        ...

    def sql(self, query: str, /) -> Any:
        """Runs SQL over the common tables."""
        ...


SOURCES = ("call_events", "instants", "exceptions", "slices", "counter_samples")
"""Tables that have what is in it."""


class CallTrace:
    """Writes calls, slices, counters and instants of a profile for timeline viewers; `Profile.call_trace` makes one.

    Calls are not stored: every write reads the events again, and writes each call as it ends. A slice that is not a
    call, such as a wait for a lock, is on the track of its thread where all slices of its kind nest with the thread's
    calls, else on a separate track beside it; collections and pauses are on a track `GC` of their process. Heap sizes
    of instants become a counter.

    Attributes:
        num_events: Events of calls, of the whole profile.
        num_instants: Selected instants, thrown exceptions included.
        num_slices: Selected slices that are not calls.
        num_counts: Values of counters in the selected time.
        is_empty: Whether there is nothing to write.
        first_ns: Time of the first of them, on the profile's clock; None where there is none.
        thread_ids: Keys of the threads that have some.
        clock: Kind of the profile's clock, as in table `clocks`; None where recordings have different clocks.
    """

    def __init__(self, profile: TracedProfile, progress: Callable[[str, float], None] | None = None) -> None:
        selection = profile.selection
        threads = None if selection.threads is None else [key for (key,) in profile.sql(selection.threads).fetchall()]
        functions = None if selection.function_ids is None else list(selection.function_ids)
        self._core = _core.CallTrace(
            profile._events, threads=threads, time_ns=selection.time_ns, functions=functions, progress=progress
        )
        self.num_events = self._core.num_events
        self.num_instants = self._core.num_instants
        self.num_slices = self._core.num_slices
        self.num_counts = self._core.num_counts
        self.is_empty = not (self.num_events or self.num_instants or self.num_slices or self.num_counts)
        self.first_ns = self._core.first_ns
        self.thread_ids = self._core.thread_ids
        self.clock = self._core.clock

    def write_chrome(
        self,
        out: IO[bytes],
        progress: Callable[[str, float], None] | None = None,
        *,
        zero_ns: int | None = None,
    ) -> None:
        """Writes Chrome's trace events, separated by commas, without the brackets around them.

        Args:
            out: A binary file object.
            progress: Called with the name of the step and the completed share.
            zero_ns: The time that times, in microseconds, are relative to; by default `first_ns`.
        """
        zero_ns = self.first_ns or 0 if zero_ns is None else zero_ns
        self._core.write_chrome(descriptor_of(out), zero_ns=zero_ns, progress=progress)

    def write_speedscope(self, out: IO[bytes], progress: Callable[[str, float], None] | None = None) -> None:
        """Writes the members `activeProfileIndex`, `profiles` and `shared` of a speedscope file.

        Times are nanoseconds after `first_ns`.
        """
        self._core.write_speedscope(descriptor_of(out), progress=progress)

    def write_perfetto(
        self, out: IO[bytes], clock: tuple[int, int | None] | None, progress: Callable[[str, float], None] | None = None
    ) -> None:
        """Writes Perfetto's packets.

        Args:
            out: A binary file object.
            clock: Perfetto's number of `clock`, and what its times lack to nanoseconds since 1970; None where
                it has none.
            progress: Called with the name of the step and the completed share.
        """
        self._core.write_perfetto(descriptor_of(out), clock=clock, progress=progress)
