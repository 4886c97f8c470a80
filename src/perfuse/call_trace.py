"""What a profile tells of moments, one by one, on its way into a file."""

from collections.abc import Callable
from typing import IO, TYPE_CHECKING

from perfuse import _core
from perfuse.output_descriptor import descriptor_of

if TYPE_CHECKING:
    from perfuse.profile import Profile


class CallTrace:
    """Writes calls, slices, counters and instants of a profile for timeline viewers; `Profile.call_trace` makes one.

    Calls are not kept: the events are read anew each time, and written as they come. A slice that is no call, such as a
    wait for a lock, is on the track of its thread where all of the kind nest with the thread's calls, else on a track
    beside it; collections and pauses are on a track `GC` of their process. Sizes of heaps that instants tell are a
    counter.

    Attributes:
        num_events: Events that calls are made of, of the whole profile.
        num_instants: Instants that are selected.
        num_slices: Slices that are no calls, and selected.
        num_counts: Values of counters, in the selected time.
        is_empty: Whether there is nothing to be written.
        first_ns: Time of the first of them, on the profile's clock; None where there is none.
        thread_ids: Keys of the threads that have some.
        clock: What clock that is, as in table `clocks`; None where recordings are of several.
    """

    def __init__(self, profile: "Profile", progress: Callable[[str, float], None] | None = None) -> None:
        chosen = profile.selection
        threads = None if chosen.threads is None else [key for (key,) in profile.sql(chosen.threads).fetchall()]
        self._core = _core.CallTrace(profile._fusion, threads=threads, time_ns=chosen.time_ns, progress=progress)
        self.num_events = self._core.num_events
        self.num_instants = self._core.num_instants
        self.num_slices = self._core.num_slices
        self.num_counts = self._core.num_counts
        self.is_empty = self._core.is_empty
        self.first_ns = self._core.first_ns
        self.thread_ids = self._core.thread_ids
        self.clock = self._core.clock

    def write_chrome(self, out: IO[bytes], progress: Callable[[str, float], None] | None = None) -> None:
        """Writes Chrome's trace events, with commas between them and nothing around them.

        Times are microseconds from `first_ns` on.
        """
        self._core.write_chrome(descriptor_of(out), progress=progress)

    def write_speedscope(self, out: IO[bytes], progress: Callable[[str, float], None] | None = None) -> None:
        """Writes the members of a speedscope file that are about calls: `activeProfileIndex`, `profiles` and `shared`.

        Times are nanoseconds from `first_ns` on.
        """
        self._core.write_speedscope(descriptor_of(out), progress=progress)

    def write_perfetto(
        self, out: IO[bytes], clock: int | None, progress: Callable[[str, float], None] | None = None
    ) -> None:
        """Writes Perfetto's packets.

        Args:
            out: Where to.
            clock: The number of `clock` among Perfetto's; None where it has none for it.
            progress: Called with how much is done.
        """
        self._core.write_perfetto(descriptor_of(out), clock=clock, progress=progress)
