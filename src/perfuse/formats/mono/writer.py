"""Writing Mono logs event by event."""

import time
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import IO, Any, Self

from perfuse import _core
from perfuse.errors import UsageError
from perfuse.records import Record

_EVENTS_PER_WRITE = 1024
_LATEST = 17


class Writer:
    """Writes a log of any data version event by event: the events of another log, a test, a simulator.

        with Writer("small.mlpd", header=log.header) as writer:
            for record in log.records(kinds=["ALLOC", "METADATA_END_LOAD"]):
                writer.write(record)

    Each thread's events are collected in buffers of 64 KiB, written when they are full, at a `SYNC_POINT` (all
    preceding events are in preceding buffers), and when the log is closed. Fields are those of
    `Recording.records()`, by the specification's names; `docs/formats/mono.md` lists them by data version.

    Attributes:
        num_events: Number of events so far.
    """

    def __init__(
        self,
        output: str | PathLike[str] | IO[bytes],
        *,
        version: int | None = None,
        header: Mapping[str, Any] | None = None,
        pointer_bytes: int = 8,
        pid: int = 0,
        startup_ms: int | None = None,
        startup_ns: int = 0,
        args: str = "",
        arch: str = "",
        os: str = "",
    ) -> None:
        """Creates a log.

        Args:
            output: A file to create, or a binary file object, which is not closed.
            version: Data version, 1 to 17; the latest by default.
            header: The header of another log, from `Recording.header`. It replaces all following arguments, and
                `version` where that is not given.
            pointer_bytes: 4 or 8.
            pid: Process id.
            startup_ms: Its start, in ms since 1970; now by default.
            startup_ns: The same on the clock of the events, in ns.
            args: Options of the profiler.
            arch: Architecture, as Mono spells it: `x86-64`, `arm64`.
            os: Operating system: `linux`.

        Raises:
            UsageError: The data version or pointer size does not exist, or a number does not fit its field.
            OSError: The file cannot be written.
        """
        given: Mapping[str, Any] = header or {
            "format": _LATEST,
            "ptrsize": pointer_bytes,
            "startup_time": int(time.time()) * 1000 if startup_ms is None else startup_ms,
            "startup_ns": startup_ns,
            "pid": pid,
            "args": args,
            "arch": arch,
            "os": os,
        }
        is_same_version = header is not None and version in (None, header["format"])
        fields: _core._MonoHeader = {
            "version": given["format"] if version is None else version,
            "pointer_bytes": given["ptrsize"],
            "profiler": (given["major"], given["minor"]) if is_same_version else None,
            "startup_ms": given["startup_time"],
            "startup_ns": given.get("startup_ns", 0),
            "timer_overhead_ns": given.get("timer_overhead", 0),
            "pid": given["pid"],
            "port": given.get("port", 0),
            "texts": (given.get("args", ""), given.get("arch", ""), given.get("os", "")),
        }
        try:
            self._core = _core.MonoLogWriter(fields)
        except (ValueError, OverflowError) as error:
            raise UsageError(str(error)) from None
        self.num_events = 0
        self._is_open = True
        self._owned = isinstance(output, str | PathLike)
        self._out: IO[bytes] = output if not isinstance(output, str | PathLike) else _create(output)
        self._take()

    def write(self, record: Record) -> None:
        """Appends an event of `Recording.records()`, from a log of the same data version.

        Raises:
            ValueError: Its fields are not those of the data version.
            OSError: The file cannot be written.
        """
        fields = dict(record.fields)
        self._event(record.name, fields.pop("thread_id"), record.timestamp, fields)

    def event(self, kind: str, thread_id: int, timestamp: int | None = None, /, **fields: Any) -> None:
        """Appends an event of a thread.

            writer.event("METHOD_ENTER", thread, 1_000, method=0x5500)
            writer.event("ALLOC_BT", thread, 1_200, vtable=0x77a0, object=0x7f00, size=24, frames=[{"method": 0x5500}])

        Args:
            kind: Its kind, by the name in the specification.
            thread_id: The thread whose buffer contains it.
            timestamp: Time in ns of the events' clock; None for events without a time in the data version.
            fields: Its fields; lists contain dicts.

        Raises:
            ValueError: Its fields are not those of the data version, or no data version has the kind.
            OSError: The file cannot be written.
        """
        self._event(kind, thread_id, timestamp, fields)

    def flush(self) -> None:
        """Writes the collected events, as the profiler does at a sync point.

        Raises:
            OSError: The file cannot be written.
        """
        self._core.flush()
        self._take()
        self._out.flush()

    def close(self) -> None:
        """Writes the collected events, and closes the log. Closing again has no effect.

        Raises:
            OSError: The file cannot be written.
        """
        if self._is_open:
            self._is_open = False
            try:
                self.flush()
            finally:
                if self._owned:
                    self._out.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _event(self, name: str, thread_id: int, timestamp: int | None, fields: dict[str, Any]) -> None:
        if not self._is_open:
            raise UsageError("this writer is closed")
        try:
            self._core.event(thread_id, name, timestamp, fields)
        except OverflowError as error:
            raise ValueError(f"{name}: {error}") from None
        self.num_events += 1
        if self.num_events % _EVENTS_PER_WRITE == 0:
            self._take()

    def _take(self) -> None:
        data = self._core.take()
        if data:
            self._out.write(data)


def _create(path: str | PathLike[str]) -> IO[bytes]:
    return Path(path).open("wb")
