"""Typed records: names as in the layouts, written back byte for byte."""

import dataclasses
import io
import os
from pathlib import Path

import pytest

import perfuse as pf
from perfuse import _core, jitdump
from perfuse.formats.jitdump.encoding import encode

BESIDE = Path(__file__).parents[3] / "shared" / "corpus"
DUMPS = Path(os.environ.get("PERFUSE_CORPUS", BESIDE)) / "jitdump" / "produced"

LAYOUTS = {
    "JIT_CODE_LOAD": jitdump.CodeLoad,
    "JIT_CODE_MOVE": jitdump.CodeMove,
    "JIT_CODE_DEBUG_INFO": jitdump.CodeDebugInfo,
    "debug_entry": jitdump.DebugEntry,
    "JIT_CODE_UNWINDING_INFO": jitdump.CodeUnwindingInfo,
    "SAMPLY_JIT_CODE_DEBUG_INFO2": jitdump.DebugInfo2,
    "FunctionRecord": jitdump.FunctionRecord,
    "InlineCallRecord": jitdump.InlineCallRecord,
    "Range": jitdump.RangeRecord,
    "LineRecord": jitdump.LineRecord,
    "SAMPLY_JIT_CODE_DEBUG_INFO2 (frames)": jitdump.DebugInfo2Frames,
    "CodeOffset": jitdump.CodeOffset,
    "SourcePosition": jitdump.SourcePosition,
    "JIT_CODE_INLINE_INFO (calls)": jitdump.InlineInfoCalls,
    "inline entry": jitdump.InlineCallEntry,
    "JIT_CODE_INLINE_INFO (stack)": jitdump.InlineInfoStack,
    "inline frame": jitdump.InlineFrameEntry,
    "SAMPLY_JIT_TIER": jitdump.JitTier,
    "SAMPLY_EMBEDDED_SOURCE_FILE": jitdump.EmbeddedSourceFile,
}

# Lengths of lists, and discriminants of layouts: the encoder computes them.
COMPUTED = {"magic", "version"}


def layouts() -> dict[str, list[str]]:
    (entry,) = (entry for entry in _core.formats() if entry["name"] == "jitdump")
    return {layout["name"]: [name for name, *_ in layout["fields"]] for layout in entry["layouts"]}


def is_count(name: str) -> bool:
    return name.endswith(("_count", "_list_size"))


@pytest.mark.parametrize("name", LAYOUTS)
def test_classes_have_the_fields_of_their_layouts(name: str) -> None:
    cls = LAYOUTS[name]
    fields = [field for field in layouts()[name] if field not in COMPUTED]
    if dataclasses.is_dataclass(cls):
        fields = [field for field in fields if not is_count(field)]
        own = [field.name for field in dataclasses.fields(cls) if field.name not in {"timestamp", "padding"}]
        assert own == [field for field in fields if not isinstance(getattr(cls, field), property)]
    else:
        # The string of an entry is a field too, although the layouts list it separately from the fixed fields.
        assert list(cls._fields) == fields


def test_every_layout_but_the_headers_has_a_class() -> None:
    assert set(layouts()) - set(LAYOUTS) == {"header", "record header"}


RECORDS = [
    jitdump.CodeLoad(timestamp=1, pid=2, tid=3, vma=4, code_addr=4, code_index=5, name="f", code=b"\xc3"),
    jitdump.CodeMove(timestamp=1, pid=2, tid=3, vma=9, old_code_addr=4, new_code_addr=9, code_size=1, code_index=5),
    jitdump.CodeDebugInfo(timestamp=1, code_addr=4, entries=(jitdump.DebugEntry(4, 7, 8, "grün.py"),)),
    jitdump.CodeClose(timestamp=1),
    jitdump.CodeUnwindingInfo(
        timestamp=1, eh_frame_hdr_size=2, mapped_size=0, unwinding_data=b"framehd", padding=b"\0"
    ),
    jitdump.DebugInfo2(
        timestamp=1,
        file_list=("a.js",),
        function_names_list=("f", "g"),
        function_list=(jitdump.FunctionRecord(0, 0, 1, 2, 3), jitdump.FunctionRecord(1, 0, 4, 5, 6)),
        inline_call_list=(jitdump.InlineCallRecord(0, 1, 1, 2, 3),),
        range_list=(jitdump.RangeRecord(4, 8),),
        line_record_list=(jitdump.LineRecord(0, 0, 1, 2),),
    ),
    jitdump.DebugInfo2Frames(
        timestamp=1,
        code_addr=0x7000,
        code_offsets=(jitdump.CodeOffset(0, 1),),
        source_positions=(
            jitdump.SourcePosition(-1, 0, -1, 1, 2, 3, 4),
            jitdump.SourcePosition(0, 1, 1, 1, 2, 3, 4),
        ),
        strings=("f", "g"),
    ),
    jitdump.InlineInfoCalls(
        timestamp=1, code_addr=16, entries=(jitdump.InlineCallEntry(16, 20, 0, 1, 2, 0, "g", "a.js"),)
    ),
    jitdump.InlineInfoStack(timestamp=1, code_addr=16, entries=(jitdump.InlineFrameEntry(1, 2, "g", "a.js"),)),
    jitdump.JitTier(timestamp=1, code_addr=16, color=2, name="Ion"),
    jitdump.EmbeddedSourceFile(timestamp=1, path="a.ir", text=b"v0 = 1"),
    jitdump.RawRecord(timestamp=1, id=4711, body=b"anything"),
    jitdump.RawRecord(timestamp=1, id=827346260, body=b"somebody else's"),
]


@pytest.mark.parametrize("endian", ["little", "big"])
def test_written_records_are_read_back(endian: str) -> None:
    file = io.BytesIO()
    with jitdump.Writer(file, endian=endian, timestamps=lambda: 9) as writer:
        for record in RECORDS:
            writer.write(record)
    read = [jitdump.from_record(record) for record in pf.open(file.getvalue()).records()]
    assert read == [*RECORDS, jitdump.CodeClose(timestamp=9)]


def test_records_of_unreadable_length_are_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        encode(dataclasses.replace(RECORDS[0], name="a\0b"), "little")
    with pytest.raises(ValueError, match="NUL"):
        encode(dataclasses.replace(RECORDS[6], strings=("f\0", "g")), "little")
    with pytest.raises(ValueError, match="CodeMove"):
        encode(dataclasses.replace(RECORDS[1], code_index=-1), "little")


@pytest.mark.parametrize("stem", ["llvm14-mcjit", "cpython313", "postgres15", "jsc2.54-source", "openjdk17-jvmti"])
def test_recordings_are_written_back_byte_for_byte(stem: str) -> None:
    path = DUMPS / f"{stem}.dump"
    if not path.exists():
        pytest.skip("the recordings are not beside the repository")
    recording = pf.open(path)
    data = path.read_bytes()
    for record in recording.records():
        written = encode(jitdump.from_record(record), "little")
        assert written == data[record.offset : record.offset + record.size], record


def test_reading_moves_forward_into_a_record_whose_size_is_wrong() -> None:
    """A record that the previous one contains is read, at an offset of its own; reading ends."""
    dump = DUMPS.parents[1] / "found" / "jitdump" / "walk_stands_still.dump"
    if not dump.exists():
        pytest.skip(f"no {dump}")
    offsets = [record.offset for record in pf.open(dump).records()]
    assert offsets == sorted(set(offsets))
    sizes = [int.from_bytes(dump.read_bytes()[at + 4 : at + 8], "little") for at in offsets]
    assert any(at + size > following for at, size, following in zip(offsets, sizes, offsets[1:], strict=False))


def test_numbers_that_no_file_has_are_refused(tmp_path: Path) -> None:
    """They are errors of the argument, not of a conversion."""
    path = tmp_path / "jit-7.dump"
    with jitdump.Writer(path, pid=7, timestamps=lambda: 1) as writer:
        writer.code_load("f", 0x1000, b"\xc3")
    recording = pf.open(path)
    for wrong, name in (
        (lambda: jitdump.Writer(io.BytesIO(), pid=-1), "pid"),
        (lambda: jitdump.Writer(io.BytesIO(), pid=2**32), "pid"),
        (lambda: recording.read_bytes(-1, 4), "offset"),
        (lambda: recording.read_bytes(0, 2**63), "size"),
        (lambda: recording.check(-1), "limit"),
    ):
        with pytest.raises(pf.UsageError, match=f"{name} is from 0 to "):
            wrong()
    assert recording.read_bytes(0, 2**63 - 1) == path.read_bytes()
    assert recording.read_bytes(2**63 - 1, 4) == b""
