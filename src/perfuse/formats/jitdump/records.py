"""JITDUMP's records as typed classes, fields named as the specification names them.

`from_record` makes them from the records of `Recording.records()`; `Writer.write` accepts them. Sizes and counts are
properties, so that they cannot contradict the data. Times are in the file's own units, addresses are virtual.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol


class DebugEntry(NamedTuple):
    """One line of a `CodeDebugInfo`, valid from its address to that of the next entry.

    Attributes:
        code_addr: Address the line begins at.
        line: Line, from 1; 0 for code without a line.
        discrim: Column or DWARF discriminator, depending on the producer; 0 for none.
        name: Source file.
    """

    code_addr: int
    line: int
    discrim: int
    name: str


class FunctionRecord(NamedTuple):
    """A function of a `DebugInfo2`: numbers of its name and file, and where it starts."""

    function_name_index: int
    file_index: int
    start_line: int
    start_column: int
    flags: int


class InlineCallRecord(NamedTuple):
    """An inlined call of a `DebugInfo2`; `depth` is at most the previous call's plus 1."""

    depth: int
    range_count: int
    function_index: int
    call_line_number: int
    call_column_number: int


class RangeRecord(NamedTuple):
    """Instructions of an inlined call of a `DebugInfo2`, in bytes from the start of the code."""

    start_offset: int
    size: int


class LineRecord(NamedTuple):
    """A line of a `DebugInfo2`; lines count from 1, columns from 0."""

    code_offset: int
    file_index: int
    line_number: int
    column_number: int


class CodeOffset(NamedTuple):
    """Where a source position of a `DebugInfo2Frames` begins, in bytes from the start of the code."""

    code_offset: int
    source_position: int


class SourcePosition(NamedTuple):
    """A location in a source file; `caller_index` is the position it is inlined at, -1 in the outer function.

    `function_name` and `file` are numbers of strings, `file` -1 where unknown. Lines and columns count from
    1; 0 is unknown.
    """

    caller_index: int
    function_name: int
    file: int
    function_start_line: int
    function_start_column: int
    line: int
    column: int


class InlineCallEntry(NamedTuple):
    """An inlined call of an `InlineInfoCalls`; lines and columns count from 1, 0 is unknown."""

    start_addr: int
    end_addr: int
    call_file: int
    call_line: int
    call_column: int
    inline_depth: int
    func_name: str
    call_file_name: str


class InlineFrameEntry(NamedTuple):
    """A frame of an `InlineInfoStack`; lines and columns count from 1, 0 is unknown."""

    line: int
    column: int
    func_name: str
    file_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JitdumpRecord:
    """Base class of all records.

    Attributes:
        timestamp: When the record was made, on the file's clock.
        padding: Bytes after the last field.
    """

    timestamp: int
    padding: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeLoad(JitdumpRecord):
    """JIT_CODE_LOAD, section V: a function was compiled."""

    pid: int
    tid: int
    vma: int
    code_addr: int
    code_index: int
    name: str
    code: bytes

    @property
    def code_size(self) -> int:
        """Size of the code in bytes."""
        return len(self.code)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeMove(JitdumpRecord):
    """JIT_CODE_MOVE, section VI: the code with this `code_index` moved to another address."""

    pid: int
    tid: int
    vma: int
    old_code_addr: int
    new_code_addr: int
    code_size: int
    code_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeDebugInfo(JitdumpRecord):
    """JIT_CODE_DEBUG_INFO, section VII: lines of the function whose `CodeLoad` follows."""

    code_addr: int
    entries: tuple[DebugEntry, ...]

    @property
    def nr_entry(self) -> int:
        """Number of entries."""
        return len(self.entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeClose(JitdumpRecord):
    """JIT_CODE_CLOSE, section VIII: the end of the dump."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeUnwindingInfo(JitdumpRecord):
    """JIT_CODE_UNWINDING_INFO, section IX: `.eh_frame` and `.eh_frame_hdr` of the function whose `CodeLoad`
    follows.

    In the specification the header is first; perf, V8 and CPython write it last.
    """

    eh_frame_hdr_size: int
    mapped_size: int
    unwinding_data: bytes

    @property
    def unwind_data_size(self) -> int:
        """Size of the data in bytes."""
        return len(self.unwinding_data)


@dataclass(frozen=True, slots=True, kw_only=True)
class DebugInfo2(JitdumpRecord):
    """SAMPLY_JIT_CODE_DEBUG_INFO2 in the layout of samply's document, id 827346259: of the next `CodeLoad`."""

    file_list: tuple[str, ...]
    function_names_list: tuple[str, ...]
    function_list: tuple[FunctionRecord, ...]
    inline_call_list: tuple[InlineCallRecord, ...]
    range_list: tuple[RangeRecord, ...]
    line_record_list: tuple[LineRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DebugInfo2Frames(JitdumpRecord):
    """SAMPLY_JIT_CODE_DEBUG_INFO2 in the layout that samply's branch reads and WebKit writes, id 827346260."""

    code_addr: int
    code_offsets: tuple[CodeOffset, ...]
    source_positions: tuple[SourcePosition, ...]
    strings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineInfoCalls(JitdumpRecord):
    """JIT_CODE_INLINE_INFO, id 5, first abandoned layout: ranges of inlined calls, depth first."""

    code_addr: int
    entries: tuple[InlineCallEntry, ...]

    @property
    def nr_entry(self) -> int:
        """Number of entries."""
        return len(self.entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineInfoStack(JitdumpRecord):
    """JIT_CODE_INLINE_INFO, id 5, second abandoned layout: the stack from an address on, innermost first."""

    code_addr: int
    entries: tuple[InlineFrameEntry, ...]

    @property
    def nr_entry(self) -> int:
        """Number of entries."""
        return len(self.entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class JitTier(JitdumpRecord):
    """SAMPLY_JIT_TIER in perfuse's layout: the compiler tier of the code whose `CodeLoad` follows."""

    code_addr: int
    color: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedSourceFile(JitdumpRecord):
    """SAMPLY_EMBEDDED_SOURCE_FILE in perfuse's layout: a source under the path that lines use for it."""

    path: str
    text: bytes

    @property
    def text_size(self) -> int:
        """Size of the text in bytes."""
        return len(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRecord(JitdumpRecord):
    """A record of any kind, not decoded: its number and the bytes after its 16-byte prefix."""

    id: int
    body: bytes


RECORD_IDS: Mapping[str, int] = MappingProxyType(
    {
        "JIT_CODE_LOAD": 0,
        "JIT_CODE_MOVE": 1,
        "JIT_CODE_DEBUG_INFO": 2,
        "JIT_CODE_CLOSE": 3,
        "JIT_CODE_UNWINDING_INFO": 4,
        "JIT_CODE_INLINE_INFO": 5,
        "SAMPLY_JIT_CODE_DEBUG_INFO2": 827346259,
        "SAMPLY_JIT_TIER": 827346260,
        "SAMPLY_EMBEDDED_SOURCE_FILE": 827346261,
    }
)
"""The number of each record kind, by its name in `Recording.records()`."""


class AnyRecord(Protocol):
    """A generic record, as `from_record` requires it; `perfuse.Record` is one."""

    @property
    def name(self) -> str: ...
    @property
    def timestamp(self) -> int | None: ...
    @property
    def fields(self) -> Mapping[str, Any]: ...


_Entry = Callable[..., Any]

_CLASSES: tuple[tuple[str, type[JitdumpRecord], Mapping[str, _Entry]], ...] = (
    ("JIT_CODE_LOAD", CodeLoad, {}),
    ("JIT_CODE_MOVE", CodeMove, {}),
    ("JIT_CODE_DEBUG_INFO", CodeDebugInfo, {"entries": DebugEntry}),
    ("JIT_CODE_CLOSE", CodeClose, {}),
    ("JIT_CODE_UNWINDING_INFO", CodeUnwindingInfo, {}),
    ("JIT_CODE_INLINE_INFO", InlineInfoCalls, {"entries": InlineCallEntry}),
    ("JIT_CODE_INLINE_INFO", InlineInfoStack, {"entries": InlineFrameEntry}),
    (
        "SAMPLY_JIT_CODE_DEBUG_INFO2",
        DebugInfo2,
        {
            "file_list": str,
            "function_names_list": str,
            "function_list": FunctionRecord,
            "inline_call_list": InlineCallRecord,
            "range_list": RangeRecord,
            "line_record_list": LineRecord,
        },
    ),
    (
        "SAMPLY_JIT_CODE_DEBUG_INFO2",
        DebugInfo2Frames,
        {"code_offsets": CodeOffset, "source_positions": SourcePosition, "strings": str},
    ),
    ("SAMPLY_JIT_TIER", JitTier, {}),
    ("SAMPLY_EMBEDDED_SOURCE_FILE", EmbeddedSourceFile, {}),
)


def from_record(record: AnyRecord) -> JitdumpRecord:
    """The typed record of a generic one.

    Generic records have replacement characters for text that is not UTF-8, so a typed record is equal byte for byte
    only where all names are UTF-8. A debug entry that repeats its file's name has the name itself.

    Args:
        record: A record of a JITDUMP recording.

    Raises:
        ValueError: It is not a record of this format.
    """
    timestamp = record.timestamp or 0
    if set(record.fields) == {"body"}:
        number = RECORD_IDS.get(record.name)
        tag = int(record.name.rpartition(" ")[2]) if number is None else number
        return RawRecord(timestamp=timestamp, id=tag, body=record.fields["body"])
    for name, cls, lists in _CLASSES:
        if name != record.name:
            continue
        own = {field.name for field in dataclass_fields(cls)}
        given = {
            field: value
            for field, value in record.fields.items()
            if not isinstance(getattr(cls, field, None), property)
        }
        if set(given) | {"padding", "timestamp"} != own:
            continue
        typed: dict[str, Any] = {
            field: _entries(lists[field], value) if field in lists else value for field, value in given.items()
        }
        if all(value is not None for value in typed.values()):
            return cls(timestamp=timestamp, **typed)
    raise ValueError(f"{record.name} with fields {', '.join(record.fields)} is not a JITDUMP record")


def _entries(make: _Entry, rows: Iterable[Mapping[str, Any]]) -> tuple[Any, ...] | None:
    """Entries of one class; None where a row has other fields, as in the other layout of the same number."""
    if make is str:
        return tuple(row["string"] for row in rows)
    try:
        return tuple(make(**row) for row in rows)
    except TypeError:
        return None
