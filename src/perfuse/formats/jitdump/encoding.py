"""Encodes typed records, with the encoder of the core."""

from perfuse._core import JitdumpEncoder
from perfuse.formats.jitdump.records import (
    RECORD_IDS,
    CodeClose,
    CodeDebugInfo,
    CodeLoad,
    CodeMove,
    CodeUnwindingInfo,
    DebugInfo2,
    DebugInfo2Frames,
    EmbeddedSourceFile,
    InlineInfoCalls,
    InlineInfoStack,
    JitdumpRecord,
    JitTier,
    RawRecord,
)

_PREFIX_BYTES = 16
# Samply's branch and WebKit write an id that the document assigns to another record.
_FRAMES_KIND = "SAMPLY_JIT_TIER"


def encode(record: JitdumpRecord, endian: str) -> bytes:
    """The bytes of a whole record, prefix included.

    Args:
        record: Any of the typed records.
        endian: `little` or `big`.

    Raises:
        ValueError: A text contains a NUL, a number is out of its field's range, or the record is larger than 4 GiB.
    """
    # A new encoder does not check the order of records, which copied records keep.
    encoder = JitdumpEncoder(endian)
    try:
        tag, body = _body(record, encoder)
        encoder.raw(record.timestamp, tag, body + record.padding)
    except OverflowError as error:
        raise ValueError(f"{type(record).__name__}: {error}") from None
    return encoder.take()


def _body(record: JitdumpRecord, encoder: JitdumpEncoder) -> tuple[int, bytes]:
    if isinstance(record, RawRecord):
        return record.id, record.body
    match record:
        case CodeClose():
            kind, body = "JIT_CODE_CLOSE", b""
        case DebugInfo2():
            lists = (
                record.function_list,
                record.inline_call_list,
                record.range_list,
                record.line_record_list,
            )
            body = encoder.debug_info2_body(record.file_list, record.function_names_list, *lists)
            kind = "SAMPLY_JIT_CODE_DEBUG_INFO2"
        case DebugInfo2Frames():
            frames = (record.code_offsets, record.source_positions, record.strings)
            kind, body = _FRAMES_KIND, encoder.frames_body(record.code_addr, *frames)
        case InlineInfoCalls():
            body = encoder.inline_calls_body(record.code_addr, record.entries)
            kind = "JIT_CODE_INLINE_INFO"
        case InlineInfoStack():
            body = encoder.inline_stack_body(record.code_addr, record.entries)
            kind = "JIT_CODE_INLINE_INFO"
        case _:
            return _appended(record, encoder)
    return RECORD_IDS[kind], body


def _appended(record: JitdumpRecord, encoder: JitdumpEncoder) -> tuple[int, bytes]:
    """The body of a record for which the encoder has a method that appends the whole record."""
    match record:
        case CodeLoad(pid=pid, tid=tid, code_index=index, name=name, code=code):
            encoder.code_load(0, (pid, tid), record.vma, record.code_addr, index, name, code)
            kind = "JIT_CODE_LOAD"
        case CodeMove(pid=pid, tid=tid, vma=vma, code_size=size, code_index=index):
            addresses = (record.old_code_addr, record.new_code_addr)
            encoder.code_move(0, (pid, tid), vma, addresses, size, index)
            kind = "JIT_CODE_MOVE"
        case CodeDebugInfo():
            entries = [(entry.code_addr, entry.name, entry.line, entry.discrim) for entry in record.entries]
            encoder.debug_info(0, record.code_addr, entries, repeat=False)
            kind = "JIT_CODE_DEBUG_INFO"
        case CodeUnwindingInfo(unwinding_data=data, eh_frame_hdr_size=size):
            # The order of header and table is that of the data.
            header, frame = data[:size], data[size:]
            encoder.unwinding_info(0, header, frame, record.mapped_size, header_first=True)
            kind = "JIT_CODE_UNWINDING_INFO"
        case JitTier():
            encoder.tier(0, record.code_addr, record.color, record.name)
            kind = "SAMPLY_JIT_TIER"
        case EmbeddedSourceFile():
            encoder.embedded_source(0, record.path, record.text)
            kind = "SAMPLY_EMBEDDED_SOURCE_FILE"
        case _:
            raise ValueError(f"{type(record).__name__} is not a JITDUMP record")
    return RECORD_IDS[kind], encoder.take()[_PREFIX_BYTES:]
