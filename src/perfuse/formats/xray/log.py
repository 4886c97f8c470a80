"""XRay logs: converting, cutting and merging them.

    import perfuse as pf

    pf.xray.convert("old.xray", output="new.xray", version=5)
    pf.xray.convert("run.1.xray", "run.2.xray", output="run.xray")           # several logs of one run
    pf.xray.convert("run.xray", output="slow.xray", between=(2.0, 2.5))      # seconds from the first event

The documentation of the format lists versions, modes and their fields. Logs contain no names of functions.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Literal

from perfuse import _core
from perfuse.clock import range_ns
from perfuse.errors import UsageError, require_in_range, require_version
from perfuse.output.file import output_path
from perfuse.recording import Input, Recording, open_of_format

Mode = Literal["fdr", "basic"]
"""Flight data recorder mode, or Basic ("naive") mode."""
Endian = Literal["little", "big"]
"""Byte order of a log."""


UNSUPPORTED: Mapping[str, str] = {
    "pids": "buffers, or records of Basic mode, of an unknown process",
    "wall_times": "wall times of buffers that were left out, and with them the evidence of the counter's rate",
    "unknown_wall_times": "buffers that got wall time 0",
    "unknown_counters": "buffers that got a counter from 0 on, and processor 0",
    "cpus": "records with only 8 bits of their processor's number",
    "tail_exits": "tail exits written as exits",
    "arguments": "arguments that were left out",
    "events": "custom and typed events that were left out",
    "function_ids": "entries and exits that were left out: their function ids have more than 28 bits",
    "payloads": "events whose bytes had been overwritten, written with as many 0xff",
    "doubtful": "buffers in which bytes of events look like records, so that readers have to guess",
    "orphans": "arguments without an entry, left out",
    "unknown": "records of unknown kinds, left out",
    "copies": "duplicate buffers, or duplicate records of Basic mode, written once",
    "new_function_ids": "functions with new numbers, from 1 on: a log cannot represent those of their recorder",
    "new_tids": "threads with new numbers, from 2147483647 down: their recorder has no thread ids of the system",
}
"""What a version may not represent, or an input may not contain, by its name in `WriteSummary.unsupported`."""


@dataclass(frozen=True, slots=True)
class WriteSummary:
    """The content of a written log, and what it does not represent.

    Attributes:
        num_buffers: Buffers of an FDR log; 0 in Basic mode.
        num_calls: Entries and exits.
        num_events: Custom and typed events.
        unsupported: Number of items that the version cannot represent or that the inputs do not contain, by name; see
            `UNSUPPORTED`.
    """

    num_buffers: int
    num_calls: int
    num_events: int
    unsupported: Mapping[str, int]

    def notes(self) -> list[str]:
        """What is not represented, a line each."""
        return [f"{UNSUPPORTED[name]}: {count:,}" for name, count in self.unsupported.items()]

    @classmethod
    def _from_core(cls, facts: tuple[int, int, int, list[tuple[str, int]]]) -> "WriteSummary":
        num_buffers, num_calls, num_events, unsupported = facts
        return cls(num_buffers, num_calls, num_events, {name: count for name, count in unsupported if count})


def convert(
    *inputs: Input | Recording,
    output: str | PathLike[str],
    mode: Mode | None = None,
    version: int | None = None,
    endian: Endian | None = None,
    hz: int | None = None,
    between: tuple[float, float] | None = None,
    tids: Iterable[int] | None = None,
    functions: Collection[int] | None = None,
    yaml: bool = False,
) -> WriteSummary:
    """Writes the logs of a run as one log: in another version, mode or byte order, or a part of them.

    Times stay as they are, in ticks. Everything that no option changes stays as it is in the first log. Duplicate
    buffers, or duplicate records of Basic mode, are written once, and each thread's buffers in time order.

    Args:
        inputs: Logs of FDR or Basic mode, of one run.
        output: The file to write; it appears under its name only when it is complete.
        mode: `fdr` or `basic`.
        version: 1 to 5 of FDR mode, 1 to 3 of Basic mode; the latest where the mode changes.
        endian: `little` or `big`.
        hz: Rate of the counter to state in the header, in ticks per second. Required to merge logs whose headers state
            different rates: they are then taken to be of one machine whose counter has this rate.
        between: Only calls that overlap this range, in seconds from the first event. They and the calls around them
            are complete, so that stacks and durations are correct; events are written where they are in the range.
        tids: Only these threads.
        functions: Only functions of these ids.
        yaml: Write the YAML that `llvm-xray convert` writes, a line per record in time order. It has no wall times and
            no numbers of the types of events. All of it is sorted in memory. llvm-xray reads it only with `version=1`.
            Functions have their numbers: `Profile.export` writes names.

    Returns:
        What was written, and what is not represented.

    Raises:
        UnreadableInput: An input cannot be read.
        UsageError: An input is not a log, there is none, or the version does not exist.
        ExportError: The logs are not of one run, or the output cannot be written.
    """
    recordings = [open_of_format(one, "xray", "an XRay log") for one in inputs]
    if not recordings:
        raise UsageError("no log to convert")
    require_version(version)
    tids = None if tids is None else list(tids)
    for one in tids or ():
        require_in_range(one, -(2**31), 2**31 - 1, "tids")
    for one in functions or ():
        require_in_range(one, -(2**31), 2**32 - 1, "functions")
    require_in_range(hz, 1, 2**64 - 1, "hz")
    options: _core._XRayOptions = {
        "mode": mode,
        "version": version,
        "endian": endian,
        "hz": hz,
        "between_ns": range_ns(between),
        "is_relative": True,
        "tids": tids,
        "functions": None if functions is None else set(functions),
    }
    try:
        with output_path(Path(fspath(output))) as path, path.open("wb") as out:
            facts = _core.convert_xray([one._core for one in recordings], out.fileno(), options, {} if yaml else None)
    except (ValueError, OverflowError) as error:
        raise UsageError(str(error)) from error
    return WriteSummary._from_core(facts)
