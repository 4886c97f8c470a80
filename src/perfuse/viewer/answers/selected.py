"""The selected part of a profile: time, threads, processes, event; and the command that selects it."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from perfuse.filters.selection import ThreadKey
from perfuse.filters.stacks import StackFilter
from perfuse.viewer.answers.filters import check_filter, filter_arguments, stack_filter_of
from perfuse.viewer.answers.parameters import Parameters, RequestError

if TYPE_CHECKING:
    from perfuse.profile import Profile
    from perfuse.viewer.session import Session


@dataclass(frozen=True)
class Selected:
    """What a request selects.

    Attributes:
        profile: The profile with the selection.
        session: The session.
        from_ns: Start, from the first moment of the profile on; None without a limit.
        to_ns: End, not included; None without a limit.
        threads: Keys of threads; None for all.
        event: Name of the event; None for the default.
        stack_filter: The filter of stacks.
    """

    profile: "Profile"
    session: "Session"
    from_ns: int | None
    to_ns: int | None
    threads: tuple[int, ...] | None
    event: str | None
    stack_filter: StackFilter = field(default_factory=StackFilter)

    @property
    def key(self) -> tuple[object, ...]:
        """Distinguishes it from other selections."""
        return self.from_ns, self.to_ns, self.threads, self.event, self.stack_filter

    @property
    def time_ns(self) -> tuple[int, int]:
        """Start and end on the profile's clock, within the recorded time; the end is not included."""
        zero, last = self.session.times()
        first, end = zero, last + 1
        base = self.session.profile.selection
        limits = (zero + self.from_ns if self.from_ns is not None else None, base.start_ns)
        first = max(first, *(limit for limit in limits if limit is not None), first)
        ends = (zero + self.to_ns if self.to_ns is not None else None, base.end_ns)
        end = min(end, *(limit for limit in ends if limit is not None), end)
        return first, max(end, first + 1)

    @property
    def thread_keys(self) -> list[int]:
        """Keys of the selected threads."""
        if self.threads is not None:
            return list(self.threads)
        return [row["thread"] for row in self.session.thread_rows()]

    @property
    def limits_ns(self) -> tuple[int | None, int | None]:
        """Start and end as `--between` has them, with those of the command that opened the page."""
        base = self.session.profile.selection
        if base.time_ns is None:
            return self.from_ns, self.to_ns
        zero = self.session.times()[0]
        starts = [self.from_ns, None if base.start_ns is None else base.start_ns - zero]
        ends = [self.to_ns, None if base.end_ns is None else base.end_ns - zero]
        known_starts, known_ends = ([one for one in of if one is not None] for of in (starts, ends))
        return max(known_starts, default=None), min(known_ends, default=None)

    @property
    def options(self) -> list[str] | None:
        """Options of a command that select the same time and threads; None where no options do."""
        base = self.session.profile.selection
        from_ns, to_ns = self.limits_ns
        options: list[str] = []
        if from_ns is not None or to_ns is not None:
            start = "" if from_ns is None else seconds_text(max(from_ns, 0))
            end = "" if to_ns is None else seconds_text(to_ns)
            if not start and not end:
                start = "0"
            options += ["--between", f"{start}..{end}"]
        if self.threads is not None:
            chosen = self._thread_options(self.threads)
            return None if chosen is None else options + chosen
        options += [] if base.process is None else ["--process", str(base.process)]
        if base.thread is not None:
            options += ["--thread", f"t{base.thread}" if isinstance(base.thread, ThreadKey) else str(base.thread)]
        return options

    def command(self, verb: str, *arguments: str) -> dict[str, str | None]:
        """The equivalent command, or a note why there is none."""
        options = self.options
        if options is None:
            return {"command": None, "command_note": "commands select one thread, one process, or all"}
        return {"command": self.session.command(verb, *options, *filter_arguments(self.stack_filter), *arguments)}

    def command_of_weights(self, verb: str, *arguments: str) -> dict[str, str | None]:
        """As `command`, for weights of functions and stacks: with the event, where the verb alone takes another one."""
        from perfuse.reports.registry import choose_kind

        events = self.session.events()
        event = self.event or events[0].name
        is_usual = len(events) == 1
        if verb == "report":
            kind = choose_kind(self.session.profile, ()).name
            is_samples = kind in ("profile", "profile_with_calls")
            is_usual = is_usual if is_samples else kind == "calls" and event == events[0].name
        return self.command(verb, *([] if is_usual else ["--event", event]), *arguments)

    def _thread_options(self, threads: tuple[int, ...]) -> list[str] | None:
        """Options that select threads: one, or all of a process; None where no options do."""
        rows = self.session.thread_rows()
        if len(threads) == 1:
            tid = self.session.thread_row(threads[0])["tid"]
            # Processes of different machines and containers have the same numbers.
            is_clear = tid is not None and sum(row["tid"] == tid for row in rows) == 1
            return ["--thread", str(tid) if is_clear else f"t{threads[0]}"]
        processes = {row["process"] for row in rows if row["thread"] in threads}
        own = [row["thread"] for row in rows if row["process"] in processes]
        return ["--process", f"p{processes.pop()}"] if len(processes) == 1 and len(own) == len(threads) else None


def seconds_text(time_ns: int) -> str:
    """Nanoseconds as seconds, exactly, without an exponent."""
    return f"{Decimal(time_ns).scaleb(-9).normalize():f}"


def selected(session: "Session", parameters: Parameters, *, takes_filters: bool = False) -> Selected:
    """What the parameters `from`, `to`, `threads`, `processes`, `event` and, where it applies, `filters` select.

    Raises:
        RequestError: The range is empty, or there is no such thread, process or event.
        UsageError: A filter matches nothing in the recording.
    """
    stack_filter = stack_filter_of(parameters) if takes_filters else StackFilter()
    check_filter(session, stack_filter)
    from_ns = parameters.number("from", least=-(2**62))
    to_ns = parameters.number("to", least=-(2**62))
    threads, processes = parameters.keys("threads"), parameters.keys("processes")
    event = parameters.text("event")
    if event is not None and event not in [one.name for one in session.events()]:
        names = ", ".join(one.name for one in session.events())
        raise RequestError(400, "no_event", f"there are no samples of event {event!r}", f"there are {names or 'none'}")
    threads = _threads(session, threads, processes)
    if from_ns is not None or to_ns is not None:
        zero, last = session.times()
        from_ns = None if from_ns is None or from_ns <= 0 else from_ns
        to_ns = None if to_ns is None or to_ns > last - zero else to_ns
        if (to_ns is not None and to_ns <= (from_ns or 0)) or (from_ns or 0) > last - zero:
            raise RequestError(400, "empty_range", "the range of time is empty, or nothing was recorded in it")
    part = session.part(from_ns, to_ns, threads, stack_filter)
    return Selected(part, session, from_ns, to_ns, threads, event, stack_filter)


def _threads(
    session: "Session", threads: tuple[int, ...] | None, processes: tuple[int, ...] | None
) -> tuple[int, ...] | None:
    """Keys of the threads that are selected by themselves or by their process."""
    rows = session.thread_rows()
    if threads is not None:
        known = {row["thread"] for row in rows}
        if missing := [key for key in threads if key not in known]:
            raise RequestError(400, "no_thread", f"there is no thread with key {missing[0]}")
    if processes is None:
        return None if threads is None else tuple(sorted(threads))
    known = {row["process"] for row in rows}
    if missing := [key for key in processes if key not in known]:
        raise RequestError(400, "no_process", f"there is no process with key {missing[0]}")
    of = {row["thread"] for row in rows if row["process"] in processes}
    return tuple(sorted(of if threads is None else of & set(threads)))
