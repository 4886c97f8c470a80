"""XRay logs: converting, cutting and merging them, and writing them anew.

    from perfuse.formats import xray_log

    xray_log.convert("old.xray", output="new.xray", version=5)
    xray_log.convert("run.1.xray", "run.2.xray", output="run.xray")           # several logs of one run
    xray_log.convert("run.xray", output="slow.xray", between=(2.0, 2.5))      # seconds from the first event

Versions, modes and their fields are in the documentation of the format. No names are written: logs have none.
"""

import os
import tempfile
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import BinaryIO, Literal, Self

from perfuse import _core
from perfuse.errors import ExportError, UsageError
from perfuse.recording import Input, Recording, open

Mode = Literal["fdr", "basic"]
"""Flight data recorder, or Basic ("naive") mode."""
Endian = Literal["little", "big"]
"""Byte order of a log."""

_SECOND = 1_000_000_000
_LATEST: Mapping[Mode, int] = {"fdr": 5, "basic": 3}
_ENTRY, _EXIT, _TAIL_EXIT = 0, 1, 2


MISFITS: Mapping[str, str] = {
    "pids": "buffers, or records of Basic mode, whose process could not be told",
    "wall_times": "wall times of buffers that were left out, and with them what shows the counter's rate",
    "unknown_wall_times": "buffers that were given wall time 0",
    "unknown_counters": "buffers that were given a counter from 0 on, and processor 0",
    "cpus": "records with 8 bits of their processor's number",
    "tail_exits": "tail exits written as exits",
    "arguments": "arguments that were left out",
    "events": "custom and typed events that were left out",
    "function_ids": "entries and exits that were left out: their function ids have more than 28 bits",
    "payloads": "events whose bytes had been overwritten, written with as many 0xff",
    "doubtful": "buffers in which bytes of events look like records, so that readers have to guess",
    "orphans": "arguments of no entry, left out",
    "unknown": "records of no known kind, left out",
    "copies": "buffers, or records of Basic mode, that were there twice, written once",
    "new_function_ids": "functions with new numbers, from 1 on: those of their recorder have no place",
    "new_tids": "threads with new numbers, from 2147483647 down: their recorder gives none of the system's",
}
"""What may not fit a log, by its name in `Written.misfits`."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a log has.

    Attributes:
        num_buffers: Buffers of an FDR log; 0 in Basic mode.
        num_calls: Entries and exits.
        num_events: Custom and typed events.
        misfits: How many there were of what its version has no place for, or what was not there; see `MISFITS`.
    """

    num_buffers: int
    num_calls: int
    num_events: int
    misfits: Mapping[str, int]

    def told(self) -> list[str]:
        """What did not fit, a line each."""
        return [f"{MISFITS[name]}: {count:,}" for name, count in self.misfits.items()]

    @classmethod
    def of(cls, facts: tuple[int, int, int, list[tuple[str, int]]]) -> "Written":
        """What the core says of a log."""
        num_buffers, num_calls, num_events, misfits = facts
        return cls(num_buffers, num_calls, num_events, {name: count for name, count in misfits if count})


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
) -> Written:
    """Writes one log of the logs of a run: in another version, mode or byte order, or a part of them.

    Times stay what they are, in ticks. What is not said stays as it is in the first log. A buffer, or a record of Basic
    mode, that is there twice is written once, and each thread's buffers in order of time.

    Args:
        inputs: Logs of FDR or Basic mode, of one run.
        output: The file to write; it appears under its name only when it is complete.
        mode: `fdr` or `basic`.
        version: 1 to 5 of FDR mode, 1 to 3 of Basic mode; the latest where the mode changes.
        endian: `little` or `big`.
        hz: Rate of the counter to state in the header, in ticks a second. Logs whose headers state different rates are
            written as one only with it: they are of one machine then, and its counter has this rate.
        between: Only calls that overlap this range, in seconds from the first event. They are whole, and so are the
            calls around them, so that stacks and durations are true; events are there where they are in the range.
        tids: Only these threads.
        functions: Only functions of these ids.
        yaml: Write the YAML that `llvm-xray convert` writes, a line a record in the order of time. It has no wall
            times, and no numbers of the types of events. All of it is in memory until it is in order. llvm-xray reads
            it back with `version=1` only.

    Returns:
        What was written, and what did not fit.

    Raises:
        UnreadableInput: An input cannot be read.
        UsageError: An input is no log, there is none, or no such version.
        ExportError: The logs are not of one run, or it cannot be written.
    """
    recordings = [one if isinstance(one, Recording) else open(one) for one in inputs]
    if not recordings:
        raise UsageError("no log to convert")
    for one in recordings:
        if one.format != "xray":
            raise UsageError(f"{one.path} is no XRay log, but {one.format}", path=one.path)
    wanted: _core._Wanted = {
        "mode": mode,
        "version": version,
        "endian": endian,
        "hz": hz,
        "between_ns": None if between is None else (round(between[0] * _SECOND), round(between[1] * _SECOND)),
        "is_relative": True,
        "tids": None if tids is None else list(tids),
        "functions": None if functions is None else set(functions),
    }
    target = Path(fspath(output))
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.absolute().parent)
    except OSError as error:
        raise ExportError(f"cannot write {target}: {error.strerror}", path=str(target)) from error
    try:
        with os.fdopen(handle, "wb") as out:
            facts = _core.convert_xray([one._core for one in recordings], out.fileno(), wanted, yaml)
        mask = os.umask(0)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)
        Path(temporary).replace(target)
    except OSError as error:
        raise ExportError(f"cannot write {target}: {error.strerror or error}", path=str(target)) from error
    except (ValueError, OverflowError) as error:
        raise UsageError(str(error)) from error
    finally:
        Path(temporary).unlink(missing_ok=True)
    return Written.of(facts)


_CALLS_A_WRITE = 1024


class Writer:
    """Writes a log of calls that something else told: another trace, a simulator, a test.

        with Writer("calls.xray") as writer:
            writer.enter(1, tsc=1_000, tid=7)
            writer.exit(1, tsc=5_000, tid=7)

    Each thread tells its calls in the order of their times; threads in any order. In FDR mode calls are gathered into
    buffers of 64 KiB a thread, written when they are full, and when the log is closed.

    Attributes:
        written: What the log has; None until it is closed.
    """

    def __init__(
        self,
        output: str | PathLike[str] | BinaryIO,
        *,
        mode: Mode = "fdr",
        version: int | None = None,
        endian: Endian = "little",
        hz: int = _SECOND,
        monotonic: bool = False,
    ) -> None:
        """Begins a log.

        Args:
            output: A file to create, or a binary file object, which is not closed.
            mode: `fdr` or `basic`.
            version: 1 to 5 of FDR mode, 1 to 3 of Basic mode; the latest where not given.
            endian: `little` or `big`.
            hz: Ticks a second of the counter.
            monotonic: The counter began when CLOCK_MONOTONIC did. Then the buffers of FDR mode have true wall times,
                and the log joins with others on that clock; without, they say 0.

        Raises:
            UsageError: There is no such mode, version or byte order.
            OSError: The file cannot be written.
        """
        latest = _LATEST.get(mode, 0)
        try:
            self._core = _core.XRayLogWriter(mode, latest if version is None else version, endian, hz, monotonic)
        except (ValueError, OverflowError) as error:
            raise UsageError(str(error)) from None
        self.written: Written | None = None
        self._owned = isinstance(output, str | PathLike)
        self._out: BinaryIO = output if not isinstance(output, str | PathLike) else _create(output)
        self._take()

    def enter(
        self, function_id: int, tsc: int, *, tid: int, pid: int = 0, cpu: int = 0, argument: int | None = None
    ) -> None:
        """A thread enters a function.

        Args:
            function_id: The function: 28 bits in FDR mode, signed 32 bits in Basic mode.
            tsc: The counter.
            tid: The thread.
            pid: Its process; 0 where unknown.
            cpu: The processor.
            argument: The function's first argument, as an unsigned word.

        Raises:
            ValueError: A number does not fit its field.
            OSError: The file cannot be written.
        """
        self._call(_ENTRY, function_id, tsc, cpu, (pid, tid), argument)

    def exit(self, function_id: int, tsc: int, *, tid: int, pid: int = 0, cpu: int = 0, tail: bool = False) -> None:
        """A thread leaves a function; with `tail`, by jumping into the next.

        Raises:
            ValueError: A number does not fit its field.
            OSError: The file cannot be written.
        """
        self._call(_TAIL_EXIT if tail else _EXIT, function_id, tsc, cpu, (pid, tid), None)

    def event(
        self, payload: bytes, tsc: int, *, tid: int, pid: int = 0, cpu: int = 0, event_type: int | None = None
    ) -> None:
        """A thread tells bytes of the program's own: a custom event, or a typed one.

        Raises:
            ValueError: A number does not fit its field.
            OSError: The file cannot be written.
        """
        self._check_open()
        try:
            self._core.event(event_type, payload, tsc, cpu, (pid, tid))
        except OverflowError as error:
            raise ValueError(str(error)) from None
        self._take()

    def close(self) -> Written:
        """Writes what is gathered. Closing twice is closing once.

        Raises:
            OSError: The file cannot be written.
        """
        if self.written is None:
            try:
                self.written = Written.of(self._core.finish())
                self._take()
            finally:
                if self._owned:
                    self._out.close()
        return self.written

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _call(
        self, action: int, function_id: int, tsc: int, cpu: int, owner: tuple[int, int], argument: int | None
    ) -> None:
        self._check_open()
        try:
            self._core.call(action, function_id, tsc, cpu, owner, argument)
        except OverflowError as error:
            raise ValueError(str(error)) from None
        self._pending += 1
        if self._pending >= _CALLS_A_WRITE:
            self._take()

    def _check_open(self) -> None:
        if self.written is not None:
            raise UsageError("this writer is closed")

    def _take(self) -> None:
        self._pending = 0
        data = self._core.take()
        if data:
            self._out.write(data)


def _create(path: str | PathLike[str]) -> BinaryIO:
    return Path(path).open("wb")
