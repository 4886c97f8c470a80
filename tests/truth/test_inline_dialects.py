"""Samply's two layouts of inlined calls, of its document and of its branch: assembled and read with `struct`."""

import struct
from pathlib import Path

import pytest

import perfuse as pf
from perfuse import jitdump

LOAD, CLOSE = 0, 3
LISTS_ID, FRAMES_ID = 827346259, 827346260
"""Ids of the layout in samply's document and of the one in its branch `support-inlines`."""
PREFIX = struct.Struct("<IIQ")
ADDRESS, CODE = 0x7000, b"\x90" * 15 + b"\xc3"


def record(kind: int, body: bytes) -> bytes:
    return PREFIX.pack(kind, PREFIX.size + len(body), 1) + body


def dump(*records: bytes) -> bytes:
    header = struct.pack("<4sIIIIIQQ", b"DTiJ", 1, 40, 62, 0, 7, 1, 0)
    return header + b"".join(records) + record(CLOSE, b"")


def load(address: int = ADDRESS, index: int = 1) -> bytes:
    fixed = struct.pack("<IIQQQQ", 7, 7, address, address, len(CODE), index)
    return record(LOAD, fixed + b"outer\0" + CODE)


def lists() -> bytes:
    """The document's layout: `inner` is inlined into `outer` at offset 4 for 4 bytes, at line 11."""
    names, files = b"outer\0inner\0", b"a.py\0\0\0\0"
    counts = struct.pack("<8I", 1, len(files), 2, len(names), 2, 1, 1, 2)
    functions = struct.pack("<10I", 0, 0, 10, 0, 0, 1, 0, 30, 0, 0)
    calls, ranges = struct.pack("<5I", 0, 1, 1, 11, 0), struct.pack("<2I", 4, 4)
    lines = struct.pack("<8I", 0, 0, 10, 0, 4, 0, 31, 0)
    return record(LISTS_ID, counts + files + names + functions + calls + ranges + lines)


def frames(num_strings: int = 3, source_position: int = 1, address: int = ADDRESS) -> bytes:
    """The branch's layout of the same."""
    counts = struct.pack("<4Q", address, 3, 3, num_strings)
    offsets = struct.pack("<6I", 0, 0, 4, source_position, 8, 2)
    positions = b"".join(
        struct.pack("<iIi4I", *fields)
        for fields in ((-1, 0, 2, 10, 1, 10, 1), (2, 1, 2, 30, 1, 31, 1), (-1, 0, 2, 10, 1, 11, 1))
    )
    return record(FRAMES_ID, counts + offsets + positions + b"outer\0inner\0a.py\0")


@pytest.mark.truth(recording="jitdump", path="check", source="records assembled by the test")
@pytest.mark.parametrize("both", [[lists(), frames()], [frames(), lists()]])
def test_a_function_in_both_layouts_has_no_record_without_code(both: list[bytes]) -> None:
    recording = pf.open(dump(*both, load()))
    assert [found.code for found in recording.check() if found.severity != "info"] == []
    calls = pf.fuse(recording).sql("SELECT start_offset, size_bytes, call_line FROM inline_calls").fetchall()
    assert calls == [(4, 4, 11)]


@pytest.mark.truth(recording="jitdump", path="check", source="records assembled by the test")
@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([lists(), lists(), load()], [("JD066", 0)]),
        ([frames(address=0x9000), load()], [("JD057", 0)]),
        ([load(), lists()], [("JD057", 1)]),
    ],
)
def test_records_without_code_and_replaced_records(records: list[bytes], expected: list[tuple[str, int]]) -> None:
    found = pf.open(dump(*records)).check()
    assert [(one.code, one.record_index) for one in found if one.severity != "info"] == expected


@pytest.mark.truth(recording="jitdump", path=["check", "info"], source="records assembled by the test")
@pytest.mark.parametrize("damaged", [frames(num_strings=9), frames(source_position=77), frames()[:-4] + b"aaaa"])
def test_a_damaged_record_of_the_branch_is_one_of_lines(damaged: bytes) -> None:
    recording = pf.open(dump(damaged, load()))
    (found,) = [one for one in recording.check() if one.record_index == 0]
    assert (found.code, found.severity) == ("JD080", "error")
    assert recording.summary.records["SAMPLY_JIT_CODE_DEBUG_INFO2"] == 1
    assert "SAMPLY_JIT_TIER" not in recording.summary.records


def test_the_writer_of_the_branch_layout_writes_only_what_its_reader_takes(tmp_path: Path) -> None:
    path = tmp_path / "jit-7.dump"
    call = jitdump.InlineCall(4, 4, 0, jitdump.Declaration("inner", "a.py", 30, 1), "a.py", 11, 1)
    with jitdump.Writer(path, pid=7, dialect="frames") as writer:
        with pytest.raises(pf.UsageError, match="debug_info2"):
            writer.code_load("outer", ADDRESS, CODE, lines=[(0, "a.py", 10, 1)], inlines=[call], tier="fast")
        writer.code_load("outer", ADDRESS, CODE, lines=[(0, "a.py", 10, 1)], inlines=[call])
    read, begin = path.read_bytes(), 40
    num_frames = 0
    while begin < len(read):
        kind, size, _ = PREFIX.unpack_from(read, begin)
        if kind == FRAMES_ID:
            num_frames += 1
            body = read[begin + PREFIX.size : begin + size]
            _, num_offsets, num_positions, num_strings = struct.unpack_from("<4Q", body)
            strings = body[32 + 8 * num_offsets + 28 * num_positions :]
            assert strings.endswith(b"\0")
            assert strings.count(b"\0") == num_strings
        begin += size
    assert num_frames == 1
