"""An open file: its header, records, diagnostics and tables.

Opening a file for its tables takes a few milliseconds, and importing everything that a recording offers would take as
long. Modules that tables do not need are imported on first use.
"""

import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from os import PathLike, fspath
from stat import S_ISREG
from typing import IO, TYPE_CHECKING, Any, Literal, Self, cast
from weakref import WeakKeyDictionary

import perfuse
from perfuse import _core
from perfuse.errors import UnreadableInput, UsageError, check_text, require_in_range
from perfuse.input.unpacking import allowed_bytes, unpacking_at_most
from perfuse.table import ClosedObject, Tables

if TYPE_CHECKING:
    from perfuse._core import ArrowStream
    from perfuse.clock import Clock
    from perfuse.declared_formats import Format, Role
    from perfuse.diagnostics import Diagnostic
    from perfuse.records import Record
    from perfuse.summary import Summary

Input = str | PathLike[str] | bytes | IO[bytes]
"""An input that can be opened: a path, `-` for standard input, bytes, or a binary file object."""


_inputs: "WeakKeyDictionary[Recording, tuple[int, int]]" = WeakKeyDictionary()
"""Device and inode of the file of each open recording."""


def machine_of(sampling_facts: Mapping[str, Any]) -> tuple[str, str] | None:
    """Host name and kernel release, where both were recorded."""
    hostname, release = sampling_facts["hostname"], sampling_facts["os_release"]
    return (hostname, release) if hostname and release else None


class Recording:
    """An open file of any format; `perfuse.open` returns one."""

    def __init__(self, core: _core.Recording, path: str, status: os.stat_result | None = None) -> None:
        self._core = core
        self.path = path
        self._file_size = None if status is None else status.st_size
        if status is not None:
            _inputs[self] = (status.st_dev, status.st_ino)

    @property
    def format(self) -> str:
        """Name of its format: `jitdump`, `perf_data`, `xray`."""
        return self._core.format

    @property
    def entry(self) -> "Format":
        """The declaration of its format: role, clocks, names of files."""
        from perfuse.declared_formats import format_named

        return format_named(self.format)

    @property
    def role(self) -> "Role":
        """Its contribution to a profile: `samples`, `code_dump`, `call_trace`, `runtime_log` or `unwind_tables`."""
        return self.entry.role

    @property
    def fills(self) -> tuple[str, ...]:
        """The common tables that files of its format fill."""
        return tuple(self._core.fills)

    def has(self, table: str) -> bool:
        """Whether a table has rows of this file, as far as that is known without decoding the table."""
        return self._core.has(table)

    def not_recorded(self, subject: str, tables: Iterable[str]) -> str | None:
        """How to record a kind of data that was not recorded; None where it was, even if nothing of it happened.

        Args:
            subject: The kind of data, as its format names it: `allocations`, `locks`.
            tables: Tables that contain it. A format without options records all that it can contain.
        """
        from importlib import import_module

        from perfuse.analysis.recorded import OTHER_RECORDERS

        module = import_module(f"perfuse.formats.{self.format}")
        if hasattr(module, "recorded_subjects"):
            subjects = module.recorded_subjects(self.summary)
            if subject in subjects:
                return None if subjects[subject] else str(module.how_to_record(subject))
        return None if set(tables) & set(self.fills) else OTHER_RECORDERS

    @property
    def size_bytes(self) -> int:
        """Size in bytes, after decompression."""
        return self._core.size_bytes

    @cached_property
    def summary(self) -> "Summary":
        """Header facts and counts, from one pass over the record headers that is made once."""
        from perfuse.summary import Summary

        summary = Summary(**self._core.summary())
        if self.role != "saved_profile":
            return summary
        from perfuse.archive.manifest import MANIFEST, summary_of

        return summary_of(self.path, _core.saved_member(self._core, MANIFEST), summary)

    @cached_property
    def clock(self) -> "Clock":
        """The clock of its time stamps."""
        from perfuse.clock import Clock

        return Clock(*self._core.clock())

    @property
    def machine(self) -> tuple[str, str] | None:
        """Host name and kernel release of the machine that samples were taken on; None where not recorded."""
        facts = self._core.sampling_facts()
        return None if facts is None else machine_of(facts)

    def read_ahead(self) -> None:
        """Starts the pass over the record headers in the background; methods that need its result wait for it."""
        self._core.read_ahead()

    def without_copies_of(self, earlier: "Sequence[Recording]") -> "tuple[Recording, int] | None":
        """The recording without events that earlier ones have too, and how many these are; None where there are none.

        The log of a forked process has what its parent recorded before it was forked.
        """
        found = self._core.without_copies_of([one._core for one in earlier])
        if found is None:
            return None
        core, num_copied = found
        rest = Recording(core, self.path)
        rest._file_size = self._file_size
        if self in _inputs:
            _inputs[rest] = _inputs[self]
        return rest, num_copied

    @property
    def version(self) -> str | None:
        """Version as the file states it."""
        return self.summary.version

    @property
    def header(self) -> Mapping[str, Any]:
        """Header fields, in the order of the specification."""
        return self.summary.header

    def records(
        self,
        kinds: Iterable[str] | None = None,
        *,
        indexes: tuple[int, int | None] | None = None,
        offsets: tuple[int, int | None] | None = None,
    ) -> Iterator["Record"]:
        """Iterates over the records in file order, decoding each on demand; those before a range are not decoded.

        Args:
            kinds: Only records of these names, as the specification spells them.
            indexes: Only records with an index in this half-open range; None as its end for all that follow.
            offsets: Only records that begin in this half-open range of absolute offsets.
        """
        from perfuse.records import Record

        selected = None if kinds is None else set(kinds)
        span = _record_range(indexes, offsets)
        for name, index, offset, size, timestamp, fields in self._core.records(selected, span):
            yield Record(name, index, offset, size, timestamp, fields)

    def write_records(
        self,
        out: IO[bytes],
        form: Literal["text", "json"] = "text",
        kinds: Iterable[str] | None = None,
        *,
        indexes: tuple[int, int | None] | None = None,
        offsets: tuple[int, int | None] | None = None,
        limit: int | None = None,
        with_bytes: bool = False,
        colour: bool = False,
        width: int | None = None,
    ) -> tuple[int, int]:
        """Writes records as `perfuse records` prints them, without Python objects for each; fastest to a plain file.

        Args:
            out: An open file.
            form: `text`, or `json` for a line with a JSON object per record.
            kinds: Only records of these names, as the specification spells them.
            indexes: Only records with an index in this half-open range; None as its end for all that follow.
            offsets: Only records that begin in this half-open range of absolute offsets.
            limit: Greatest number of records; None for all.
            with_bytes: In text, the bytes of each record follow it in hexadecimal.
            colour: In text, whether escape sequences set colours.
            width: In text, the width of lines in columns.

        Returns:
            The number of records written, and the number of selected records that follow them.
        """
        from perfuse.errors import require_known
        from perfuse.output.descriptor import descriptor_of

        require_known(form, ["text", "json"], "form of records")
        return self._core.write_records(
            descriptor_of(out),
            None if kinds is None else set(kinds),
            _record_range(indexes, offsets),
            2**63 if limit is None else limit,
            (colour, width, with_bytes) if form == "text" else None,
        )

    def check(self, limit: int = 1000) -> list["Diagnostic"]:
        """Every departure of the file from its specification.

        Args:
            limit: Greatest number of rows per code; the last row counts the omitted ones. 0 for no limit. Notes
                (severity `info`) have one row per code in any case, with the place of the first.

        Raises:
            UsageError: `limit` is negative or has more than 63 bits.
        """
        require_in_range(limit, 0, 2**63 - 1, "limit")
        return self._diagnostics(self._core.check(limit or 2**63))

    def findings(self) -> list["Diagnostic"]:
        """The problems found while decoding the tables: damage and corrections, without harmless peculiarities."""
        return self._diagnostics(self._core.check(50, whole=False))

    @cached_property
    def tables(self) -> Tables:
        """The common tables of this file alone, on its own clock."""
        return Tables(self._table, (*self.fills, "records"))

    def read_bytes(self, offset: int, size: int) -> bytes:
        """Bytes of the file, after decompression; fewer where it ends.

        Raises:
            UsageError: A number is negative or has more than 63 bits.
        """
        require_in_range(offset, 0, 2**63 - 1, "offset")
        require_in_range(size, 0, 2**63 - 1, "size")
        return self._core.read_bytes(offset, size)

    def profile(self) -> "perfuse.Profile":
        """This recording alone as a profile: all common tables, and SQL."""
        return perfuse.fuse(self)

    @cached_property
    def is_growing(self) -> bool:
        """Whether the file is still being written: it has grown since it was opened, or a process has it open to write.

        The latter is visible on Linux, for processes of the same user. This recording contains what was complete
        when it was opened; open the file again for the records written since.
        """
        if self._file_size is None:
            return False
        try:
            has_grown = os.stat(self.path).st_size > self._file_size
        except OSError:
            return False
        from perfuse.input.open_files import is_open_for_writing

        return has_grown or is_open_for_writing(self.path)

    def _diagnostics(self, rows: list[tuple[str, str, int, int | None, str, str, int]]) -> list["Diagnostic"]:
        from perfuse.diagnostics import diagnostic, from_core

        found = from_core(self.path, rows)
        cut = self._core.unpack_error
        if cut is not None:
            message = f"the compressed file ends early or is damaged: {cut}; {self.size_bytes:,} bytes were unpacked"
            found.append(diagnostic("IO001", self.path, message, self.size_bytes))
        return self._soften_growing_end(found)

    def _soften_growing_end(self, found: list["Diagnostic"]) -> list["Diagnostic"]:
        """Replaces findings at the end of a file that is still being written by a note: nothing is lost there."""
        from perfuse.diagnostics import diagnostic, marks_end

        cuts = [one.offset or 0 for one in found if marks_end(one.code)]
        if not cuts or not self.is_growing:
            return found
        start = min(cuts)

        def as_note(one: "Diagnostic") -> "Diagnostic":
            if not one.is_finding or one.offset is None or one.offset < start:
                return one
            return diagnostic("IO002", self.path, f"so far: {one.message}", one.offset)

        return [as_note(one) for one in found]

    def _table(self, name: str) -> "ArrowStream":
        saved = self._core if self.role == "saved_profile" else None
        stream = self._core.table(name) if saved is None else _core.saved_table(saved, name)
        if stream is None:
            raise KeyError(name)
        return stream

    def close(self) -> None:
        """Releases the file, its mapping and the memory of what was read. What was taken from it stays valid.

        A profile of the recording keeps them until it is closed, too.
        """
        if self._is_closed:
            return
        if "tables" in self.__dict__:
            self.tables.close()
        self._core = cast("_core.Recording", ClosedObject(f"the recording {self.path}"))
        _inputs.pop(self, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    @property
    def _is_closed(self) -> bool:
        return isinstance(self._core, ClosedObject)

    def __repr__(self) -> str:
        if self._is_closed:
            return f"<perfuse recording {self.path}: closed>"
        return f"<perfuse recording {self.path}: {self.format}, {self.size_bytes:,} bytes>"


def open(
    source: Input, *, strict: bool = False, max_unpacked: int | str | None = None, memory: int | str | None = None
) -> Recording:
    """Opens a file of any format; its content decides which. `.gz`, `.zst` and `.xz` are read through.

    Args:
        source: Path, `-` for standard input, bytes, or a binary file object.
        strict: Refuse a file with any finding of `check`.
        max_unpacked: Most bytes that a compressed file, or a pipe, may become, also as text such as `4GB`. By default
            250 times the compressed size, at least 256 MiB and at most 64 GiB.
        memory: Limit of the memory of this process, as for `perfuse.fuse`.

    Raises:
        UnreadableInput: It cannot be read, is of no known format, unpacks to more than is allowed, or `strict` found a
            departure. A device cannot be read, nor a named pipe that nobody writes to.
        OutOfMemory: A call would use more memory than the limit.
        UsageError: `max_unpacked` or `memory` is not a size, or the name of the file is not UTF-8.
    """
    if memory is not None:
        from perfuse.memory import limit_memory

        limit_memory(memory)
    with unpacking_at_most(max_unpacked):
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
                hint=f"`perfuse explain {finding.code}` explains it; without strict the file is read all the same",
            )
    return recording


def open_of_format(source: Input | Recording, name: str, title: str) -> Recording:
    """Opens a file that has to be of the format `name`; `title` is what users call one, such as `a Mono log`.

    Raises:
        UnreadableInput: It cannot be read.
        UsageError: It is of another format.
    """
    recording = source if isinstance(source, Recording) else open(source)
    if recording.format != name:
        found = recording.entry.title
        raise UsageError(f"{recording.path} is not {title}: its format is {found}", path=recording.path)
    return recording


def _record_range(
    indexes: tuple[int, int | None] | None, offsets: tuple[int, int | None] | None
) -> tuple[bool, int, int | None]:
    """A range of records as the core takes it: whether of offsets, its start, its end."""
    if indexes is not None and offsets is not None:
        raise UsageError("both indexes and offsets are given: a range of records is one or the other")
    first, end = indexes or offsets or (0, None)
    if first < 0 or (end is not None and end < 0):
        raise UsageError(f"negative number in the range of records ({first}, {end})")
    return offsets is not None, min(first, 2**63), None if end is None else min(end, 2**63)


def check(source: Input, *, limit: int = 1000, max_unpacked: int | str | None = None) -> list["Diagnostic"]:
    """Every departure of a file from its specification.

    Args:
        source: As in `open`.
        limit: As in `Recording.check`.
        max_unpacked: As in `open`.

    Raises:
        UnreadableInput: As in `open`: a file that cannot be read at all has no list.
        UsageError: As in `open`, or `limit` is negative or has more than 63 bits.
    """
    return open(source, max_unpacked=max_unpacked).check(limit)


def input_at(path: str | PathLike[str]) -> str | None:
    """The path by which a recording is open that is in the file at `path`, which may be another name of that file."""
    status = _status(fspath(path))
    if status is None:
        return None
    file = (status.st_dev, status.st_ino)
    return next((recording.path for recording, its_file in list(_inputs.items()) if its_file == file), None)


def _open(source: Input) -> Recording:
    limit = allowed_bytes()
    if isinstance(source, bytes | bytearray | memoryview):
        with _missing_content_is_stated("<bytes>", lambda: bytes(source[: len(_LFS_POINTER)])):
            return Recording(_core.Recording.from_bytes("<bytes>", bytes(source), limit), "<bytes>")
    if isinstance(source, str | PathLike):
        path = fspath(source)
        if path == "-":
            import sys

            return _from_stream(path, sys.stdin.buffer, limit)
        check_text(path)
        status = _status(path)
        if status is None:
            from perfuse.input.streams import kind_of_stream, opened_stream

            kind = kind_of_stream(path)
            if kind is not None:
                with opened_stream(path, kind) as stream:
                    return _from_stream(path, stream, limit)
        with _missing_content_is_stated(path, lambda: _head(path)):
            return Recording(_core.Recording.open(path, limit), path, status)
    if isinstance(source, io.IOBase) or hasattr(source, "read"):
        return _from_stream(str(getattr(source, "name", "<file>")), source, limit)
    several = "; give several recordings as arguments of their own: fuse(*recordings)"
    raise TypeError(f"cannot open a {type(source).__name__}{several if isinstance(source, Iterable) else ''}")


def _from_stream(path: str, stream: IO[bytes], limit: int | None) -> Recording:
    from perfuse.input.streams import ReadStream

    read = ReadStream(stream)
    with _missing_content_is_stated(path, lambda: b"?" if read.has_data else b"", is_stream=True):
        return Recording(_core.Recording.from_stream(path, read, limit), path)


@contextmanager
def _missing_content_is_stated(path: str, head: Callable[[], bytes], *, is_stream: bool = False) -> Iterator[None]:
    """Raises why an input lacks its content, instead of that its format is unknown; `head` returns its first bytes."""
    try:
        yield
    except UnreadableInput as error:
        begin = head()
        if begin.startswith(_LFS_POINTER):
            raise UnreadableInput(
                f"{path}: the file is in Git LFS, and this is only its pointer",
                path=path,
                offset=error.offset,
                hint=f"`git lfs pull --include {os.path.basename(path)}` in its repository gets it",
            ) from None
        if begin:
            raise
        raise UnreadableInput(
            f"{path}: {'nothing was written to this stream' if is_stream else 'the file is empty'}",
            path=path,
            offset=error.offset,
            hint="the program that writes to it may have failed"
            if is_stream
            else "it may still be written: profilers write data when a buffer is full, or when the program ends",
        ) from None


_LFS_POINTER = b"version https://git-lfs"


def _head(path: str) -> bytes:
    """The first bytes of a file; not empty where it cannot be read. Files of /proc have some, and the size 0."""
    try:
        with io.open(path, "rb") as file:  # noqa: UP020 - `open` is another function here
            return file.read(len(_LFS_POINTER))
    except OSError:
        return b"?"


def _status(path: str) -> os.stat_result | None:
    """The status of a file before it is opened; None for anything else, such as a pipe."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found if S_ISREG(found.st_mode) else None
