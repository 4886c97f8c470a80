"""Writing JITDUMP while the program runs."""

import ctypes
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import BinaryIO, Literal, Self

from perfuse._core import JitdumpEncoder
from perfuse.errors import UsageError, require_in_range
from perfuse.formats.jitdump.code import Declaration, InlineCall, UnsupportedCounts, Unwinding
from perfuse.formats.jitdump.encoding import encode
from perfuse.formats.jitdump.records import AnyRecord, JitdumpRecord, from_record
from perfuse.formats.jitdump.sink import FileSink, ObjectSink, ProcessDump, Sink
from perfuse.programs.machine import e_machine

Dialect = Literal["debug_info", "debug_info2", "frames"]
"""How lines are written: `debug_info` as in the specification, for every reader; the others write that too, and in
addition lines with inlined calls, in the layout of samply's document (`debug_info2`) or of samply's branch and WebKit
(`frames`)."""


class Writer:
    """Writes a dump, record by record; safe to use from several threads.

    Every call writes complete records without buffering, so that the dump of a killed process is valid to its last
    record. A context manager: leaving it closes the dump.

    >>> import io
    >>> file = io.BytesIO()
    >>> with Writer(file, pid=7, arch="x86_64", timestamps=lambda: 1000) as writer:
    ...     writer.code_load("answer", 0x7000, b"\\x90\\xc3", lines=[(0, "a.py", 3, 5)])
    1
    >>> file.getvalue()[:4]
    b'DTiJ'

    Args:
        file: Path of the dump, which is created or truncated, or a binary file object, which stays open.
        pid: Process the code lives in; this one by default.
        arch: Machine of the code, as `uname -m` spells it, or an ELF `e_machine` number; this one by default.
        endian: Byte order of the file, `little` or `big`; this machine's by default.
        dialect: How lines are written.
        timestamps: Returns the time of a record; by default nanoseconds of the monotonic clock, as with
            `perf record -k mono`.
        arch_timestamps: Whether `timestamps` returns the processor's counter instead of nanoseconds.

    Raises:
        UsageError: `arch`, `endian` or `dialect` is unknown, or `pid` has more than 32 bits.
        OSError: The file cannot be created.
    """

    def __init__(
        self,
        file: str | PathLike[str] | BinaryIO | ProcessDump,
        *,
        pid: int | None = None,
        arch: str | int | None = None,
        endian: str = sys.byteorder,
        dialect: Dialect = "debug_info",
        timestamps: Callable[[], int] | None = None,
        arch_timestamps: bool = False,
    ) -> None:
        if endian not in {"little", "big"}:
            raise UsageError(f"endian is 'little' or 'big', not {endian!r}")
        if dialect not in {"debug_info", "debug_info2", "frames"}:
            raise UsageError(f"dialect is 'debug_info', 'debug_info2' or 'frames', not {dialect!r}")
        require_in_range(pid, 0, 2**32 - 1, "pid")
        self._endian = endian
        self._dialect = dialect
        self._machine = e_machine(arch)
        self._now = timestamps or _monotonic_ns
        self._flags = _ARCH_TIMESTAMP if arch_timestamps else 0
        self._given_pid = pid
        self._index = 0
        self._unsupported = UnsupportedCounts()
        self._closed = False
        self._lock = threading.RLock()
        self._own_dump = file if isinstance(file, ProcessDump) else None
        if isinstance(file, ProcessDump):
            self._begin(file.create())
        elif isinstance(file, str | PathLike):
            self._begin(FileSink.create(file))
        else:
            self._begin(ObjectSink(file))
        _WRITERS.add(self)

    @classmethod
    def for_this_process(
        cls,
        directory: str | PathLike[str] | None = None,
        *,
        dialect: Dialect = "debug_info",
    ) -> Self:
        """A dump of this process, announced to the `perf record` that records it.

        Creates `jit-PID.dump`, readable by its owner only, and maps it executable for as long as the writer
        is open: perf records that mapping and finds the dump by it. A forked child continues in a dump of its own in
        the same directory.

        Args:
            directory: Directory of the dump; the current directory by default.
            dialect: How lines are written.

        Raises:
            PerfuseError: The file exists already, or cannot be created or mapped.
        """
        return cls(ProcessDump(Path(directory or ".").absolute()), dialect=dialect)

    @property
    def path(self) -> Path | None:
        """The file of `for_this_process`; None for other writers."""
        return None if self._own_dump is None else self._own_dump.path(self._owner)

    @property
    def unsupported(self) -> UnsupportedCounts:
        """Values that the dialect cannot represent and that were left out so far."""
        return self._unsupported

    def code_load(
        self,
        name: str,
        address: int,
        code: bytes | None = None,
        *,
        size: int | None = None,
        lines: Iterable[tuple[int, str, int, int]] = (),
        inlines: Iterable[InlineCall] = (),
        declared: Declaration | None = None,
        unwind: Unwinding | None = None,
        tier: str | None = None,
        timestamp: int | None = None,
    ) -> int:
        """Writes that a function was compiled: its lines, its unwinding information, then the code.

        Args:
            name: Name of the function in profilers.
            address: First address of the code.
            code: The machine code. Without it, `size` bytes are read at `address` of this process.
            size: Size of the code in bytes, where `code` is not given.
            lines: `(offset, path, line, column)`, see `Line`; offsets in bytes from `address`.
            inlines: Inlined calls, see `InlineCall`. Needs another dialect than `debug_info`.
            declared: Where the function itself is declared; not representable in dialect `debug_info`.
            unwind: Unwinding information, for code that keeps no frame pointer.
            tier: Compiler tier. perfuse reads it; other tools skip it. Not representable in dialect `frames`: the
                readers of that dialect take the id of the tier's record for one of theirs.
            timestamp: Time of the record; now by default.

        Returns:
            The number of this code, for `code_move`.

        Raises:
            UsageError: Neither or both of `code` and `size` are given, or inlined calls in dialect `debug_info`, or a
                tier in dialect `frames`.
            ValueError: A text contains a NUL, or a number does not fit its field.
            OSError: The file cannot be written; no record of the function is in it.
        """
        machine_code = _machine_code(address, code, size)
        rows, calls = list(lines), list(inlines)
        if calls and self._dialect == "debug_info":
            raise UsageError("inlined calls need dialect='debug_info2' or dialect='frames'")
        if tier is not None and self._dialect == "frames":
            raise UsageError(
                "dialect='frames' has no record for a tier: samply takes its id for lines and refuses the dump; "
                "write the tier with dialect='debug_info2'"
            )
        with self._appending() as encoder:
            now = self._now() if timestamp is None else timestamp
            _write_lines(encoder, now, address, rows)
            self._write_inline_info(encoder, now, address, declared or _declared(name, rows, calls), (rows, calls))
            if tier is not None:
                encoder.tier(now, address, 0, tier)
            if unwind is not None:
                encoder.unwinding_info(
                    now, unwind.eh_frame_hdr, unwind.eh_frame, unwind.mapped_size, header_first=False
                )
            self._index += 1
            encoder.code_load(now, self._ids(), address, address, self._index, name, machine_code)
            return self._index

    def code_move(self, index: int, old_address: int, new_address: int, size: int) -> None:
        """Writes that code moved to another address.

        Args:
            index: What `code_load` returned for it.
            old_address: Previous first address.
            new_address: New first address.
            size: Size in bytes; it cannot change.

        Raises:
            OSError: The file cannot be written.
        """
        with self._appending() as encoder:
            encoder.code_move(self._now(), self._ids(), new_address, (old_address, new_address), size, index)

    def debug_info(self, address: int, lines: Iterable[tuple[int, str, int, int]]) -> None:
        """Writes the lines of the function of the next `code_load`; for callers that have them before the code.

        Args:
            address: First address of the code.
            lines: `(offset, path, line, column)`, see `Line`.

        Raises:
            ValueError: Lines of another function still wait for their code, or a path contains a NUL.
            OSError: The file cannot be written.
        """
        with self._appending() as encoder:
            _write_lines(encoder, self._now(), address, lines)

    def unwinding_info(self, unwind: Unwinding) -> None:
        """Writes the unwinding information of the function of the next `code_load`, in perf's order of its parts.

        Raises:
            OSError: The file cannot be written.
        """
        with self._appending() as encoder:
            frame, header, mapped_size = unwind
            encoder.unwinding_info(self._now(), header, frame, mapped_size, header_first=False)

    def embedded_source(self, path: str, text: str | bytes) -> None:
        """Writes a source text into the dump, for code whose source is not in a file: generated code, IR, byte code.

        Args:
            path: Its path in lines.
            text: The source; a str is encoded as UTF-8.

        Raises:
            ValueError: The path contains a NUL.
            OSError: The file cannot be written.
        """
        data = text.encode() if isinstance(text, str) else text
        with self._appending() as encoder:
            encoder.embedded_source(self._now(), path, data)

    def write(self, record: JitdumpRecord | AnyRecord) -> None:
        """Appends a record as it is: of one of the typed classes, or from `Recording.records()`.

        Its time does not change, and the order of records is not checked.

        Raises:
            ValueError: A text contains a NUL, a number does not fit its field, or it is not a record of this format.
            OSError: The file cannot be written.
        """
        data = encode(record if isinstance(record, JitdumpRecord) else from_record(record), self._endian)
        with self._appending():
            self._sink.write(data)

    def close(self) -> None:
        """Ends the dump with JIT_CODE_CLOSE. Closing again has no effect. A forked child that never wrote only closes
        the file.

        Raises:
            OSError: The file cannot be written.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
            try:
                if self._owner == os.getpid():
                    self._encoder.raw(self._now(), _CLOSE, b"")
                    self._sink.write(self._encoder.take())
            finally:
                self._sink.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _begin(self, sink: Sink) -> None:
        """Starts a dump: the first bytes are its header."""
        self._owner = os.getpid()
        self._pid = self._owner if self._given_pid is None else self._given_pid
        self._encoder = JitdumpEncoder(self._endian)
        self._sink = sink
        try:
            self._encoder.header(self._machine, self._pid, self._now(), self._flags)
            sink.write(self._encoder.take())
        except BaseException:
            sink.close()
            raise

    @contextmanager
    def _appending(self) -> Iterator[JitdumpEncoder]:
        """Collects records and writes them at once, or none of them."""
        with self._lock:
            if self._closed:
                raise UsageError("this writer is closed")
            if self._owner != os.getpid():
                self._after_fork()
            try:
                yield self._encoder
                self._sink.write(self._encoder.take())
            except OverflowError as error:
                self._encoder.discard()
                raise ValueError(str(error)) from None
            except BaseException:
                self._encoder.discard()
                raise

    def _after_fork(self) -> None:
        """Continues in a dump of the child: it must not write into its parent's file."""
        if self._own_dump is None:
            raise UsageError(f"this writer belongs to process {self._owner}; open another one in the child")
        self._sink.close()
        self._begin(self._own_dump.create())

    def _ids(self) -> tuple[int, int]:
        return self._pid, threading.get_native_id() & 0xFFFF_FFFF

    def _write_inline_info(
        self, encoder: JitdumpEncoder, now: int, address: int, declared: Declaration, lines_and_calls: "_LinesAndCalls"
    ) -> None:
        """Lines and inlined calls in the writer's dialect, where it has one."""
        rows, calls = lines_and_calls
        if self._dialect == "debug_info" or not (rows or calls):
            return
        flat = [(*call[:3], *call.function, *call[4:]) for call in calls]
        offsets, columns, paths, _ = encoder.inline_info(now, address, self._dialect, declared, rows, flat)
        before = self._unsupported
        self._unsupported = UnsupportedCounts(
            before.offsets + offsets, before.unknown_columns + columns, before.paths + paths
        )


_LinesAndCalls = tuple[list[tuple[int, str, int, int]], list[InlineCall]]


def _declared(name: str, rows: list[tuple[int, str, int, int]], calls: list[InlineCall]) -> Declaration:
    """A declaration for a function without one: its file is that of its own calls, else of its first line."""
    paths = [call.call_path for call in calls if call.depth == 0] + [path for _, path, *_ in rows]
    return Declaration(name, next(iter(paths), ""))


def _write_lines(encoder: JitdumpEncoder, now: int, address: int, rows: Iterable[tuple[int, str, int, int]]) -> None:
    """Writes JIT_CODE_DEBUG_INFO, which all readers support; nothing where there are no lines."""
    entries = [(address + offset, path, line, column) for offset, path, line, column in rows]
    if entries:
        encoder.debug_info(now, address, entries, repeat=False)


_ARCH_TIMESTAMP = 1
_CLOSE = 3

_WRITERS: "weakref.WeakSet[Writer]" = weakref.WeakSet()


def _replace_locks() -> None:
    """Replaces locks in a forked child: one that another thread had acquired would never be released."""
    for writer in _WRITERS:
        writer._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_replace_locks)


def _monotonic_ns() -> int:
    """The clock of `perf record -k mono`."""
    if sys.platform == "linux":
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return time.monotonic_ns()


def _machine_code(address: int, code: bytes | None, size: int | None) -> bytes:
    if code is not None and size is None:
        return code
    if code is None and size is not None and size >= 0:
        return ctypes.string_at(address, size)
    raise UsageError("give the machine code, or its size to have it read from this process")
