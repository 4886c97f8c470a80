"""Facts about a recording of samples that dumps are matched and aligned with: clock, processes, markers."""

import re
from functools import lru_cache

from perfuse.fusing.note import note_beside
from perfuse.recording import Recording, machine_of
from perfuse.value_class import value_class


@value_class
class Marker:
    """A process mapped the file of its code dump, which is how a runtime announces the dump.

    Attributes:
        pid: Process, in the recorder's namespace.
        tid: Thread that mapped it.
        ts: When, on the recording's clock, in nanoseconds.
        path: The file, as the process named it.
        record_offset: Offset of the record in the perf.data.
    """

    pid: int
    tid: int
    ts: int
    path: str
    record_offset: int


@value_class
class SamplingFacts:
    """Facts about a recording of samples that its tables do not contain.

    Attributes:
        recording: The open file.
        command_line: The recorded program by its base name, with its arguments and without those of the recorder.
        clock: `monotonic` where recorded with `-k mono`, else `perf` or another clock's name.
        markers: Code dumps that its processes mapped, in time order.
        pids: Sampled processes.
        span: First and last time stamp in nanoseconds.
        time_conversion: `(shift, mult, zero)` from the processor's counter to nanoseconds; None where not recorded.
        cpu_hz: Nominal frequency in the processor's name; None where it has none.
        machine: Host name and kernel release; None where not recorded.
    """

    recording: Recording
    command_line: str | None
    clock: str
    markers: tuple[Marker, ...]
    pids: frozenset[int]
    span: tuple[int, int] | None
    time_conversion: tuple[int, int, int] | None
    cpu_hz: int | None
    machine: tuple[str, str] | None

    @property
    def path(self) -> str:
        """The file that the facts are of."""
        return self.recording.path

    @staticmethod
    @lru_cache(maxsize=16)
    def of(recording: Recording) -> "SamplingFacts":
        """Facts about an open recording; empty ones where its format records none."""
        facts = recording._core.sampling_facts()
        if facts is None:
            summary = recording.summary
            return SamplingFacts(recording, None, summary.clock, (), frozenset(), summary.span, None, None, None)
        return SamplingFacts(
            recording=recording,
            command_line=_noted(recording) or _program(facts["command_line"] or []),
            clock=recording.summary.clock,
            markers=tuple(Marker(*marker) for marker in facts["markers"]),
            pids=frozenset(facts["pids"]),
            span=recording.summary.span,
            time_conversion=facts["time_conversion"],
            cpu_hz=_nominal_hz(facts["cpu"] or ""),
            machine=machine_of(facts),
        )


def _noted(recording: Recording) -> str | None:
    """What `perfuse record` noted as recorded: perf does not store it where it is attached to a process."""
    note = note_beside(recording.path)
    if note is None:
        return None
    return _program(list(note.command)) or note.title


_WITH_VALUE = (
    r"-[a-zA-Z]*[ecFojmCptkDrGu]|--(event|filter|count|freq|output|pid|tid|uid|cgroup|call-graph|clockid|mmap-pages|cpu"
    r"|delay|realtime|branch-filter|vmlinux|control|max-size|proc-map-timeout|num-thread-synthesize|switch-max-files"
    r")"
)
"""Options of `perf record` whose value is the next word."""

_WITH_VALUE_IN_SIMPLEPERF = (
    r"-[cefjmopt]|--(app|add-counter|add-meta-info|addr-filter|aux-buffer-size|binary|call-graph|clockid|cpu|cpu-percent"
    r"|callchain-joiner-min-matching-nodes|delay|duration|group|kprobe|out-fd|size-limit|start_profiling_fd"
    r"|stop-signal-fd|symfs|tp-filter|tracepoint-events|user-buffer-size)"
)
"""Options of `simpleperf record` whose value is the next word; `-g` has none, unlike a frequency `-f`."""


def _program(arguments: list[str]) -> str | None:
    """The recorded program by its base name and its arguments: what follows `perf record` and its options."""
    words = _recorded(arguments)
    if not words:
        return None
    program, *rest = words
    return " ".join([program.rsplit("/", 1)[-1] or program, *rest])


def _recorded(arguments: list[str]) -> list[str]:
    if "record" not in arguments:
        return arguments
    rest = arguments[arguments.index("record") + 1 :]
    if "--" in rest:
        return rest[rest.index("--") + 1 :]
    is_simpleperf = "simpleperf" in arguments[0].rsplit("/", 1)[-1]
    with_value = _WITH_VALUE_IN_SIMPLEPERF if is_simpleperf else _WITH_VALUE
    app: list[str] = []
    while rest and rest[0].startswith("-"):
        if is_simpleperf and rest[0] == "--app":
            app = rest[1:2]
        rest = rest[2:] if re.fullmatch(with_value, rest[0]) else rest[1:]
    return rest or app


def _nominal_hz(cpu: str) -> int | None:
    """The frequency in a processor's name: `Intel(R) Xeon(R) CPU @ 2.60GHz`."""
    found = re.search(r"@ ([\d.]+)\s*GHz", cpu)
    return round(float(found[1]) * 1e9) if found else None
