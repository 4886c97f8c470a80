"""Hand-made stacks, unwound by hand-made sections."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfuse import sframe
from perfuse.formats.sframe.section import Section, UnwindRow, UnwindRule

START = 0x1000


def opened(arch: str, functions: dict[int, list[UnwindRow]], version: int = 2) -> sframe.SFrame:
    """A section whose functions have 0x100 bytes."""
    section = Section(version, arch)
    for start, rows in functions.items():
        section.add(start, 0x100, rows)
    return sframe.open(section.encode(0x8000), address=0x8000)


def words(*numbers: int, order: str = "<") -> bytes:
    return struct.pack(f"{order}{len(numbers)}Q", *numbers)


AMD64 = {
    0x1000: [UnwindRow(0, UnwindRule("sp", 8)), UnwindRow(1, UnwindRule("sp", 16), fp=UnwindRule("cfa", -16, True))],
    0x2000: [UnwindRow(0, UnwindRule("sp", 24))],
    0x3000: [UnwindRow(0, UnwindRule("fp", 16), fp=UnwindRule("cfa", -16, True))],
}


def test_frames_of_x86_64() -> None:
    file = opened("x86_64", AMD64)
    stack = words(0x7000_0028, 0x2010, 0, 0, 0x3010, 0, 0)
    unwound = file.unwind({"pc": 0x1010, "sp": 0x7000_0000, "fp": 1}, stack)
    assert [frame.pc for frame in unwound.frames] == [0x1010, 0x2010, 0x3010]
    assert [frame.sp for frame in unwound.frames] == [0x7000_0000, 0x7000_0010, 0x7000_0028]
    assert unwound.stop == "outermost", "the return address is 0"
    moved = file.unwind({"pc": 0x5010, "sp": 0x7000_0000}, words(0, 0x6010, 0, 0, 0x9999), bias=0x4000)
    assert [frame.pc for frame in moved.frames] == [0x5010, 0x6010, 0x9999]
    assert moved.stop == "no_rule"


def test_a_return_address_is_looked_up_within_the_call() -> None:
    """A call at the very end of a function returns to the address after it."""
    file = opened("x86_64", AMD64)
    unwound = file.unwind({"pc": 0x1000, "sp": 0x7000}, words(0x2100, 0, 0, 0))
    assert [frame.pc for frame in unwound.frames] == [0x1000, 0x2100]
    assert unwound.stop == "outermost"


def test_a_signed_return_address_of_aarch64() -> None:
    saved = UnwindRow(
        4, UnwindRule("sp", 32), fp=UnwindRule("cfa", -32, True), ra=UnwindRule("cfa", -24, True), ra_mangled=True
    )
    file = opened(
        "aarch64", {0x1000: [UnwindRow(0, UnwindRule("sp", 0)), saved], 0x2000: [UnwindRow(0, UnwindRule("sp", 0))]}
    )
    unwound = file.unwind({"pc": 0x1010, "sp": 0x7000, "fp": 5, "ra": 6}, words(9, 0x002C_0000_0000_2010, 0, 0))
    assert [frame.pc for frame in unwound.frames] == [0x1010, 0x2010]
    leaf = file.unwind({"pc": 0x1000, "sp": 0x7000, "ra": 0x2010}, b"")
    assert [frame.pc for frame in leaf.frames] == [0x1000, 0x2010]
    assert leaf.stop == "not_monotonic", "only the innermost function is a leaf"


def test_s390x_is_big_endian_and_leaves_160_bytes() -> None:
    row = UnwindRow(0, UnwindRule("sp", 320), ra=UnwindRule("cfa", -48, True), fp=UnwindRule("cfa", -72, True))
    file = opened("s390x", {0x1000: [row]}, version=3)
    stack = bytes(248) + words(0x7100, order=">") + bytes(16) + words(0x2010, order=">") + bytes(40)
    unwound = file.unwind({"pc": 0x1010, "sp": 0x7000, "fp": 1}, stack)
    assert unwound.frames[1:] == ((0x2010, 0x70A0),)


def test_unknown_registers_are_refused() -> None:
    file = opened("x86_64", AMD64)
    with pytest.raises(ValueError, match="rip"):
        file.unwind({"rip": 1, "sp": 2}, b"")
    with pytest.raises(ValueError, match="pc and sp"):
        file.unwind({"pc": 1}, b"")


@given(
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**64 - 1),
    st.binary(max_size=256),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=8),
)
def test_damaged_sections_end(pc: int, sp: int, fp: int, stack: bytes, changes: list[tuple[int, int]]) -> None:
    """Any registers, any stack, any bytes of the section changed: a bounded number of frames, and a reason."""
    section = Section(2, "x86_64")
    for start, rows in AMD64.items():
        section.add(start, 0x100, rows)
    data = bytearray(section.encode(0x8000))
    for at, value in changes:
        data[28 + at % (len(data) - 28)] = value
    file = sframe.open(bytes(data), address=0x8000)
    for start in (pc, START + pc % 0x2100):
        unwound = file.unwind({"pc": start, "sp": sp, "fp": fp}, stack)
        assert 1 <= len(unwound.frames) <= 1024
        assert unwound.stop
