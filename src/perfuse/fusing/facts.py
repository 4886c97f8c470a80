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
    r"|app|duration)"
)
"""Options of `perf record` and `simpleperf record` whose value is the next word."""


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
    while rest and rest[0].startswith("-"):
        # The frequency of simpleperf; perf of Linux 2.6 had an option -f without a value.
        takes_value = re.fullmatch(_WITH_VALUE, rest[0]) or (rest[0] == "-f" and "simpleperf" in arguments[0])
        rest = rest[2:] if takes_value else rest[1:]
    return rest


def _nominal_hz(cpu: str) -> int | None:
    """The frequency in a processor's name: `Intel(R) Xeon(R) CPU @ 2.60GHz`."""
    found = re.search(r"@ ([\d.]+)\s*GHz", cpu)
    return round(float(found[1]) * 1e9) if found else None
