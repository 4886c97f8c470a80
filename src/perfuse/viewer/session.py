"""What one `perfuse view` shows: the profile, opened in a thread, and answers that are cached for the next request."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from perfuse import __version__
from perfuse.errors import PerfuseError
from perfuse.viewer.answers.parameters import RequestError
from perfuse.viewer.parts import command_text, part_of

if TYPE_CHECKING:
    from perfuse.analysis.sampled import Event
    from perfuse.filters.stacks import StackFilter
    from perfuse.pictures.timeline import Timeline
    from perfuse.profile import Profile, Progress

T = TypeVar("T")

OpenProfile = Callable[["Progress"], "Profile"]
"""Opens the profile, with a callback for the name of the step and the completed share."""

CACHED_ANSWERS = 48
CACHED_OF_KIND = {
    "heap": 2,
    "heap-tree": 2,
    "part": 6,
    "weights": 12,
    "report": 6,
    "statistics": 12,
    "totals": 12,
    "annotation": 8,
    "listing": 8,
}
"""Most answers by the first member of their key, of those that need much memory."""
POLL_S = 20.0
CANCELLED_TIMELINE = {
    "code": "cancelled",
    "message": "the timeline was cancelled",
    "hint": "open the recording again; --between A..B shows a part of it sooner",
}


class Cancelled(Exception):  # noqa: N818 - nothing is wrong
    """The page, or the end of the command, stopped the opening."""


class Session:
    """The profile of a server, and what was computed of it.

    Args:
        open_profile: Opens the profile; called in a thread.
        files: The files, as the command line names them.
        options: Further arguments of the command line that change what the files contain, such as `--symbols DIR`.
        memory_bytes: Most memory of the timeline.
        source_dirs: Directories with source files.
        follow: Which source files that the recordings name are read: see `SourceFiles`.
        base: Another recording, which flame graphs and functions can be compared with.
    """

    def __init__(
        self,
        open_profile: OpenProfile,
        files: Sequence[str],
        options: Sequence[str] = (),
        memory_bytes: int = 1 << 30,
        *,
        source_dirs: Sequence[str] = (),
        follow: Literal["all", "named", "none"] = "all",
        base: "Session | None" = None,
    ) -> None:
        self.files = tuple(files)
        self.source_dirs = tuple(source_dirs)
        self.follow: Literal["all", "named", "none"] = follow
        self._options = tuple(options)
        self._base = base
        self._open = open_profile
        self._memory_bytes = memory_bytes
        self._changed = threading.Condition()
        self._state: dict[str, Any] = {
            "generation": 1,
            "state": "opening",
            "stage": "",
            "share": 0.0,
            "timeline": "waiting",
            "error": None,
            "data": 1,
            "watched": False,
            "stale": None,
            "version": __version__,
        }
        self._is_cancelled = False
        self.error: Exception | None = None
        """Why the files could not be opened."""
        self.on_failure: Callable[[], None] = lambda: None
        """Called when they could not."""
        self._profile: Profile | None = None
        self._timeline: Timeline | None = None
        self._cache: OrderedDict[Any, Any] = OrderedDict()
        self._cache_lock = threading.Lock()
        self._opening_base = threading.Lock()
        self._making: dict[Any, threading.Lock] = {}
        self._data = 1
        self._thread = threading.Thread(target=self._run, name="perfuse-open", daemon=True)

    def start(self) -> None:
        """Starts to open the profile."""
        self._thread.start()

    def open_now(self) -> None:
        """Opens the profile and computes the timeline in this thread.

        Raises:
            PerfuseError: They cannot be.
        """
        self._open_profile()
        self._compute_timeline()

    @property
    def base_files(self) -> tuple[str, ...]:
        """The files of the other recording."""
        return () if self._base is None else self._base.files

    @property
    def base(self) -> "Session":
        """The other recording, which is opened when it is first asked for.

        Raises:
            RequestError: There is none.
            PerfuseError: It cannot be read.
        """
        if self._base is None:
            raise RequestError(404, "no_base", "there is no other recording", "perfuse view --base FILE")
        with self._opening_base:
            if not self._base.is_ready:
                self._base._open_profile()
        return self._base

    def join(self, seconds: float | None = None) -> None:
        """Waits until everything is computed that is computed in advance."""
        self._thread.join(seconds)

    def cancel(self) -> None:
        """Stops the opening, at its next step; what is ready stays."""
        self._is_cancelled = True

    def state(self, after: int | None = None, wait_s: float = POLL_S) -> dict[str, Any]:
        """The state; with `after` the first one after that generation, or the same after some seconds."""
        with self._changed:
            self._changed.wait_for(lambda: after is None or self._state["generation"] > after, wait_s)
            return dict(self._state)

    def _set(self, **changes: Any) -> None:
        with self._changed:
            if any(self._state[name] != value for name, value in changes.items()):
                self._state.update(changes, generation=self._state["generation"] + 1)
                self._changed.notify_all()

    def _run(self) -> None:
        steps = ((self._open_profile, "state"), (self._compute_timeline, "timeline"))
        for step, part in steps:
            try:
                step()
            except Cancelled:
                if part == "state":
                    self._set(state="cancelled", stage="")
                else:
                    self._is_cancelled = False
                    self._set(timeline="failed", stage="", error=CANCELLED_TIMELINE)
                return
            except Exception as error:
                self._set(**{part: "failed"}, stage="", error=_described(error))
                if part == "state":
                    self.error = error
                    self.on_failure()
                    return

    def _progress(self, stage: str, share: float) -> None:
        if self._is_cancelled:
            raise Cancelled
        self._set(stage=stage, share=round(share, 2))

    def _open_profile(self) -> None:
        profile = self._open(self._progress)
        self._progress("joining", 0.0)
        self._profile = profile
        # What the first page shows, before it asks.
        self.events()
        self._progress("joining", 0.9)
        self._set(state="ready", stage="", share=1.0)

    def _compute_timeline(self) -> None:
        if self._profile is None or self._zero is None:
            self._set(timeline="none")
            return

        self._set(timeline="computing", stage="timeline", share=0.0)
        self._timeline = self._timeline_of(self._profile, self._zero[0])
        self._set(timeline="ready" if self._timeline else "none", stage="", share=1.0)

    def _timeline_of(self, profile: "Profile", zero_ns: int) -> "Timeline | None":
        from perfuse.analysis.sampled import events
        from perfuse.pictures.timeline import Timeline

        timeline = Timeline(
            profile,
            event=next((one.name for one in events(profile) if not one.is_sum), None),
            zero_ns=zero_ns,
            memory_bytes=self._memory_bytes,
            progress=lambda _stage, _share: self._check_cancelled(),
        )
        return timeline if timeline.tracks else None

    def _check_cancelled(self) -> None:
        if self._is_cancelled:
            raise Cancelled

    def reopen(self) -> None:
        """Opens the files again and answers from what they contain now. Until then the answers are those from before.

        Raises:
            PerfuseError: They cannot be read.
        """
        profile = self._open(lambda _stage, _share: self._check_cancelled())
        span = profile._whole().span_ns
        timeline = None if span is None else self._timeline_of(profile, span[0])
        with self._cache_lock:
            self._profile, self._timeline = profile, timeline
            self.__dict__.pop("_zero", None)
            self._cache.clear()
            self._making.clear()
            self._data += 1
        self._set(data=self._data, timeline="ready" if timeline else "none", stale=None)

    def note_stale(self, why: str) -> None:
        """States that the files changed and cannot be read now: the page shows what they contained before."""
        self._set(stale=why)

    def note_watched(self) -> None:
        """States that the page may wait for changes."""
        self._set(watched=True)

    @property
    def is_ready(self) -> bool:
        """Whether the profile is open."""
        return self._profile is not None and self._state["state"] == "ready"

    @property
    def profile(self) -> "Profile":
        """The profile.

        Raises:
            RequestError: It is not open.
        """
        if self._profile is None or not self.is_ready:
            state = self._state["state"]
            message = "the files are being read" if state == "opening" else "the files could not be read"
            raise RequestError(503, str(state), message, "/api/state reports the progress")
        return self._profile

    @property
    def timeline(self) -> "Timeline":
        """The timeline.

        Raises:
            RequestError: It is not computed, or there is none.
        """
        _ = self.profile
        if self._timeline is None:
            state = self._state["timeline"]
            if state in ("waiting", "computing"):
                raise RequestError(503, "opening", "the timeline is being computed", "/api/state reports the progress")
            error = self._state["error"]
            message = error["message"] if error and state == "failed" else "the recording has no events in time"
            raise RequestError(404, "not_recorded", message)
        return self._timeline

    @cached_property
    def _zero(self) -> tuple[int, int] | None:
        assert self._profile is not None
        return self._profile._whole().span_ns

    def times(self) -> tuple[int, int]:
        """First and last moment of the whole profile, on its clock.

        Raises:
            RequestError: Nothing has a time.
        """
        _ = self.profile
        if self._zero is None:
            raise RequestError(404, "not_recorded", "nothing here has a time")
        return self._zero

    def has_times(self) -> bool:
        """Whether anything has a time."""
        return self._zero is not None

    def events(self) -> "list[Event]":
        """The events of the profile, the default first."""
        from perfuse.analysis.sampled import events

        profile = self._profile
        return [] if profile is None else self.cached("events", lambda: events(profile))

    def part(
        self,
        from_ns: int | None,
        to_ns: int | None,
        threads: tuple[int, ...] | None,
        stack_filter: "StackFilter | None" = None,
    ) -> "Profile":
        """The part of the profile in a time and in threads, with a filter of its stacks."""
        if stack_filter:
            filtered = lambda: self.part(from_ns, to_ns, threads).filtered(stack_filter)  # noqa: E731 - one line
            return self.cached(("part", from_ns, to_ns, threads, stack_filter), filtered)
        if from_ns is None and to_ns is None and threads is None:
            return self.profile
        zero = 0 if self._zero is None else self._zero[0]
        make = lambda: part_of(self.profile, zero, from_ns, to_ns, threads)  # noqa: E731 - one line
        return self.cached(("part", from_ns, to_ns, threads), make)

    def thread_rows(self) -> list[dict[str, Any]]:
        """Keys, ids and names of the threads."""

        def make() -> list[dict[str, Any]]:
            from perfuse.table import Columns

            tables = self.profile.tables
            columns = ("thread_id", "process_id", "tid", "name", "start_ns", "end_ns")
            rows = Columns(tables["threads"]).tuples(*columns)
            return [
                {"thread": key, "process": process, "tid": tid, "name": name, "start_ns": start, "end_ns": end}
                for key, process, tid, name, start, end in rows
            ]

        return self.cached("threads", make)

    def thread_row(self, key: int) -> dict[str, Any]:
        """A thread by its key."""
        return next(row for row in self.thread_rows() if row["thread"] == key)

    def command(self, verb: str, *arguments: str) -> str:
        """A command line about the same files."""
        return command_text(verb, self.files, [*self._options, *arguments])

    def diff_command(self, *arguments: str) -> str:
        """The command line that compares the other recording with this one."""
        return command_text("diff", [*self.base_files, "--", *self.files], [*self._options, *arguments])

    def cached(self, key: Any, make: Callable[[], T]) -> T:
        """A value that is made once, also where several requests need it at the same time.

        Those used least recently are forgotten.
        """
        with self._cache_lock:
            if key in self._cache:
                self._cache.move_to_end(key)
                return self._cache[key]  # type: ignore[no-any-return]
            making, data = self._making.setdefault(key, threading.Lock()), self._data
        with making:
            with self._cache_lock:
                if key in self._cache:
                    return self._cache[key]  # type: ignore[no-any-return]
            try:
                value = make()
            except BaseException:
                with self._cache_lock:
                    self._making.pop(key, None)
                raise
            with self._cache_lock:
                # What was made of files that have changed since is not cached.
                if data != self._data:
                    return value
                self._cache[key] = value
                self._making.pop(key, None)
                self._forget(key)
        return value

    def _forget(self, key: Any) -> None:
        """Removes the answers used least recently, beyond the limits; called with the lock."""
        if isinstance(key, tuple) and key[0] in CACHED_OF_KIND:
            same = [one for one in self._cache if isinstance(one, tuple) and one[0] == key[0]]
            for one in same[: max(0, len(same) - CACHED_OF_KIND[key[0]])]:
                del self._cache[one]
        others = [one for one in self._cache if isinstance(one, tuple)]
        for one in others[: max(0, len(self._cache) - CACHED_ANSWERS)]:
            del self._cache[one]


def _described(error: Exception) -> dict[str, Any]:
    """An error as the page shows it."""
    from perfuse.errors import core_error

    known = error if isinstance(error, PerfuseError) else core_error(error) or error
    message = str(known) or type(known).__name__
    if isinstance(known, OSError) and known.filename:
        message = f"{known.filename}: {known.strerror}"
    return {"code": "unreadable", "message": message, "hint": getattr(known, "hint", None)}
