"""One file: its header, its records, what is wrong with it, its tables.

Opening a file for its tables takes a few milliseconds, and so would loading all that a recording may be asked for: what
tables do without is loaded when it is asked for.
"""

import io
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from os import PathLike, fspath
from stat import S_ISREG
from typing import IO, TYPE_CHECKING, Any

from perfuse import _core
from perfuse.errors import UnreadableInput
from perfuse.table import Tables

if TYPE_CHECKING:
    from perfuse._core import ArrowStream
    from perfuse.descriptors import Format, Role
    from perfuse.diagnostics import Diagnostic
    from perfuse.profile import Profile
    from perfuse.records import Record
    from perfuse.summary import Summary

Input = str | PathLike[str] | bytes | IO[bytes]
"""What can be opened: a path, `-` for standard input, bytes, or a binary file object."""


class Recording:
    """An open file of any format; `perfuse.open` makes it."""

    def __init__(self, core: _core.Recording, path: str, file_size: int | None = None) -> None:
        self._core = core
        self.path = path
        self._file_size = file_size

    @property
    def format(self) -> str:
        """Name of its format: `jitdump`, `perf_data`, `xray`."""
        return self._core.format

    @property
    def entry(self) -> "Format":
        """What its format declares: role, clocks, names of files."""
        from perfuse.descriptors import format_named

        return format_named(self.format)

    @property
    def role(self) -> "Role":
        """What it contributes to a profile: `samples`, `code_dump`, `call_trace`, `runtime_log` or `unwind_tables`."""
        return self.entry.role

    @property
    def fills(self) -> tuple[str, ...]:
        """The common tables that files of its format fill."""
        return tuple(self._core.fills)

    def has(self, table: str) -> bool:
        """Whether a table has rows of this file, as far as that can be told without making it."""
        return self._core.has(table)

    @property
    def size_bytes(self) -> int:
        """Size in bytes, after decompression."""
        return self._core.size_bytes

    @cached_property
    def summary(self) -> "Summary":
        """Header facts and counts: one pass over the record headers, made once."""
        from perfuse.summary import Summary

        return Summary(**self._core.summary())

    @cached_property
    def clock(self) -> Mapping[str, Any]:
        """What is known of the clock of its time stamps, as in table `clocks`.

        `kind`, `hz`, `hz_source` (`defined`, `header`, `estimated` from what the file shows, `unknown`), `stated_hz`
        (what its header says), `uncertainty_ns`.
        """
        names = ("kind", "hz", "hz_source", "stated_hz", "uncertainty_ns")
        known = self._core.clock()
        return {name: known[name] for name in names}

    def read_ahead(self) -> None:
        """Starts the pass over the record headers in the background; whoever needs it waits for its end."""
        self._core.read_ahead()

    @property
    def version(self) -> str | None:
        """Version as the file states it."""
        return self.summary.version

    @property
    def header(self) -> Mapping[str, Any]:
        """Header fields, in the order of the specification."""
        return self.summary.header

    def records(self, kinds: Iterable[str] | None = None) -> Iterator["Record"]:
        """Records in file order, each decoded when it is reached.

        Args:
            kinds: Only records of these names, as the specification spells them.
        """
        from perfuse.records import Record

        wanted = None if kinds is None else set(kinds)
        for name, index, offset, size, timestamp, fields in self._core.records(wanted):
            yield Record(name, index, offset, size, timestamp, fields)

    def check(self, limit: int = 1000) -> list["Diagnostic"]:
        """Every departure of the file from its specification.

        Args:
            limit: At most this many rows of a code; the last of them counts the rest. 0 for all.
        """
        return self._told(self._core.check(limit or 2**63))

    def findings(self) -> list["Diagnostic"]:
        """What reading the file for its tables finds: what is damaged, and what had to be undone; not every habit."""
        return self._told(self._core.check(50, whole=False))

    @cached_property
    def tables(self) -> Tables:
        """The common tables this file fills by itself, on its own clock."""
        return Tables(self._table, (*self.fills, "records"))

    def read_bytes(self, offset: int, size: int) -> bytes:
        """Bytes of the file, after decompression; fewer where it ends."""
        return self._core.read_bytes(offset, size)

    def profile(self) -> "Profile":
        """This recording alone as a profile: all common tables, and SQL."""
        from perfuse.fusing import fuse

        return fuse(self)

    @cached_property
    def is_growing(self) -> bool:
        """Whether the file is still being written: it has grown since it was opened, or a process has it open for that.

        The latter can be seen on Linux, of processes of the same user. What was complete when it was opened is what
        this recording has; opening it again gives what has come since.
        """
        if self._file_size is None:
            return False
        try:
            has_grown = os.stat(self.path).st_size > self._file_size  # noqa: PTH116 - pathlib is slow to load
        except OSError:
            return False
        from perfuse.writers import is_written

        return has_grown or is_written(self.path)

    def _told(self, rows: list[tuple[str, str, int, int | None, str, int]]) -> list["Diagnostic"]:
        from perfuse.diagnostics import diagnostic, from_core

        found = from_core(self.path, rows)
        cut = self._core.unpack_error
        if cut is not None:
            message = f"the compressed file ends early or is damaged: {cut}; {self.size_bytes:,} bytes were unpacked"
            found.append(diagnostic("IO001", self.path, message, self.size_bytes))
        return self._unfinished(found)

    def _unfinished(self, found: list["Diagnostic"]) -> list["Diagnostic"]:
        """What ends too early in a file that is still being written has not ended, and nothing there is lost."""
        from perfuse.diagnostics import diagnostic, rules

        # Every format has a rule of such a title.
        ends = ("the file ends", "the compressed file ends")
        cuts = [one.offset or 0 for one in found if rules()[one.code].title.startswith(ends)]
        if not cuts or not self.is_growing:
            return found
        start = min(cuts)

        def so_far(one: "Diagnostic") -> "Diagnostic":
            if not one.is_finding or one.offset is None or one.offset < start:
                return one
            return diagnostic("IO002", self.path, f"so far: {one.message}", one.offset)

        return [so_far(one) for one in found]

    def _table(self, name: str) -> "ArrowStream":
        stream = self._core.table(name)
        if stream is None:
            raise KeyError(name)
        return stream

    def __repr__(self) -> str:
        return f"<perfuse recording {self.path}: {self.format}, {self.size_bytes:,} bytes>"


def open(source: Input, *, strict: bool = False) -> Recording:
    """Opens a file of any format; its content decides which. `.gz` and `.zst` are read through.

    Args:
        source: Path, `-` for standard input, bytes, or a binary file object.
        strict: Refuse a file that departs from its specification in more than habit.

    Raises:
        UnreadableInput: It cannot be read, is of no known format, or `strict` found a departure.
    """
    recording = _open(source)
    if strict:
        finding = next((d for d in recording.check(limit=1) if d.is_finding), None)
        if finding is not None:
            raise UnreadableInput(
                f"{recording.path}: {finding.message} ({finding.code})",
                path=recording.path,
                offset=finding.offset,
                record_index=finding.record_index,
                field=finding.field or None,
                hint=f"`perfuse explain {finding.code}` tells more; without strict the file is read all the same",
            )
    return recording


def check(source: Input, *, limit: int = 1000) -> list["Diagnostic"]:
    """Every departure of a file from its specification."""
    return open(source).check(limit)


def _open(source: Input) -> Recording:
    if isinstance(source, bytes | bytearray | memoryview):
        return Recording(_core.Recording.from_bytes("<bytes>", bytes(source)), "<bytes>")
    if isinstance(source, str | PathLike):
        path = fspath(source)
        if path == "-":
            import sys

            return Recording(_core.Recording.from_bytes("-", sys.stdin.buffer.read()), "-")
        size = _file_size(path)
        return Recording(_core.Recording.open(path), path, size)
    if isinstance(source, io.IOBase) or hasattr(source, "read"):
        path = str(getattr(source, "name", "<file>"))
        return Recording(_core.Recording.from_bytes(path, source.read()), path)
    raise TypeError(f"cannot open a {type(source).__name__}")


def _file_size(path: str) -> int | None:
    """The size of a file before it is opened; None for what has none, a pipe say."""
    try:
        found = os.stat(path)  # noqa: PTH116 - pathlib is slow to load
    except OSError:
        return None
    return found.st_size if S_ISREG(found.st_mode) else None
