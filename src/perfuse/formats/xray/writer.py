"""Writing XRay logs call by call."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import BinaryIO, Self

from perfuse import _core
from perfuse.errors import UsageError
from perfuse.formats.xray.log import Endian, Mode, WriteSummary

_SECOND_NS = 1_000_000_000
_LATEST: Mapping[Mode, int] = {"fdr": 5, "basic": 3}
_ENTRY, _EXIT, _TAIL_EXIT = 0, 1, 2
_CALLS_PER_WRITE = 1024


class Writer:
    """Writes a log call by call: the calls of another trace, a simulator, a test.

        with Writer("calls.xray") as writer:
            writer.enter(1, tsc=1_000, tid=7)
            writer.exit(1, tsc=5_000, tid=7)

    The calls of a thread must be in time order; threads may be interleaved in any way. In FDR mode calls are collected
    in buffers of 64 KiB per thread, written when they are full, and when the log is closed.

    Attributes:
        written: Content of the log; None until it is closed.
    """

    def __init__(
        self,
        output: str | PathLike[str] | BinaryIO,
        *,
        mode: Mode = "fdr",
        version: int | None = None,
        endian: Endian = "little",
        hz: int = _SECOND_NS,
        monotonic: bool = False,
    ) -> None:
        """Creates a log.

        Args:
            output: A file to create, or a binary file object, which is not closed.
            mode: `fdr` or `basic`.
            version: 1 to 5 of FDR mode, 1 to 3 of Basic mode; the latest where not given.
            endian: `little` or `big`.
            hz: Rate of the counter in ticks per second.
            monotonic: The counter has the zero of CLOCK_MONOTONIC. The buffers of FDR mode then have true wall times,
                and the log can be joined with others on that clock; else their wall times are 0.

        Raises:
            UsageError: The mode, version or byte order does not exist.
            OSError: The file cannot be written.
        """
        latest = _LATEST.get(mode, 0)
        try:
            self._core = _core.XRayLogWriter(mode, latest if version is None else version, endian, hz, monotonic)
        except (ValueError, OverflowError) as error:
            raise UsageError(str(error)) from None
        self.written: WriteSummary | None = None
        self._owned = isinstance(output, str | PathLike)
        self._out: BinaryIO = output if not isinstance(output, str | PathLike) else _create(output)
        self._take()

    def enter(
        self, function_id: int, tsc: int, *, tid: int, pid: int = 0, cpu: int = 0, argument: int | None = None
    ) -> None:
        """Appends the entry of a thread into a function.

        Args:
            function_id: The function: 28 bits in FDR mode, signed 32 bits in Basic mode.
            tsc: Value of the counter.
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
        """Appends the exit of a thread from a function; with `tail`, by a jump into the next.

        Raises:
            ValueError: A number does not fit its field.
            OSError: The file cannot be written.
        """
        self._call(_TAIL_EXIT if tail else _EXIT, function_id, tsc, cpu, (pid, tid), None)

    def event(
        self, payload: bytes, tsc: int, *, tid: int, pid: int = 0, cpu: int = 0, event_type: int | None = None
    ) -> None:
        """Appends bytes of the program itself: a custom event, or with `event_type` a typed one.

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

    def close(self) -> WriteSummary:
        """Writes the calls that are still in buffers, and closes the log. Closing again has no effect.

        Raises:
            OSError: The file cannot be written.
        """
        if self.written is None:
            try:
                self.written = WriteSummary._from_core(self._core.finish())
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
        if self._pending >= _CALLS_PER_WRITE:
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
