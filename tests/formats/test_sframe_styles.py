"""Texts of readelf for sections that assemblers do not write, compared with the readelf that each style names."""

import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from binutils import readelf, sframe_text, without_padding
from needs import need
from perfuse import sframe
from perfuse.errors import UnreadableInput, UsageError

ADDRESS = 0x5000
PCREL, FLEX = 4, 1


def row(start: int, info: int, *words: int) -> bytes:
    return struct.pack(f"<BB{len(words)}b", start, info, *words)


def section(
    version: int,
    rows: Sequence[bytes],
    *,
    flags: int = 1,
    fixed_fp: int = 0,
    fixed_ra: int = -8,
    abi: int = 3,
    info2: int = 0,
    functions: int = 1,
    function_bytes: int = 16,
    num_functions: int | None = None,
    num_rows: int | None = None,
    offsets: tuple[int, int] | None = None,
) -> bytes:
    """A section with some functions of the same rows, written without the encoder that is tested."""
    body, entries = b"".join(rows), b""
    for _ in range(functions):
        if version == 3:
            entries += struct.pack("<qII", 0x100, function_bytes, 0)
        else:
            entries += struct.pack("<iIIIB", 0x100, function_bytes, 0, len(rows), 0) + bytes(0 if version == 1 else 3)
    if version == 3 and functions:
        body = struct.pack("<HBBB", len(rows), 0, info2, 0) + body
    counts = (functions if num_functions is None else num_functions, len(rows) if num_rows is None else num_rows)
    preamble = struct.pack("<HBBBbbB", 0xDEE2, version, flags, abi, fixed_fp, fixed_ra, 0)
    return preamble + struct.pack("<5I", *counts, len(body), *(offsets or (0, len(entries)))) + entries + body


SP, FP, SIGNED, FOUR_BYTES = 1, 0, 0x80, 0x40
ONE, TWO, THREE, FIVE = 2, 4, 6, 10
EMPTY = [row(0, SP), row(1, SP | ONE, 8), row(4, FP), row(5, SIGNED)]
BELOW = [row(0, SP | ONE, -8), row(1, FP | TWO, -8, -16), struct.pack("<BBi", 2, SP | ONE | FOUR_BYTES, -100000)]

SECTIONS = {
    "rows_without_words_1": section(1, EMPTY),
    "rows_without_words_2": section(2, EMPTY),
    "rows_without_words_3": section(3, EMPTY),
    "rows_without_words_of_aarch64": section(2, EMPTY, abi=2, fixed_ra=0),
    "cfa_below_its_base_1": section(1, BELOW),
    "cfa_below_its_base_2": section(2, BELOW),
    "cfa_below_its_base_3": section(3, BELOW),
    "too_many_words_2": section(2, [row(0, SP | THREE, 8, -16, -24)]),
    "too_many_words_3": section(3, [row(0, SP | FIVE, 8, -16, -24, 1, 2)]),
    "fixed_frame_pointer_1": section(1, [row(0, SP | ONE, 8)], fixed_fp=-16),
    "fixed_frame_pointer_2": section(2, [row(0, SP | ONE, 8)], fixed_fp=-16),
    "fixed_frame_pointer_3": section(3, [row(0, SP | ONE, 8)], fixed_fp=-16),
    "no_functions_1": section(1, [], functions=0),
    "no_functions_2": section(2, [], functions=0),
    "no_functions_3": section(3, [], functions=0, flags=5),
    "no_rows_2": section(2, []),
    "no_rows_3": section(3, []),
    "huge_row_count_1": section(1, [row(0, SP | ONE, 8)], num_rows=0xFFFF_FFFF),
    "huge_row_count_2": section(2, [row(0, SP | ONE, 8)], num_rows=0xFFFF_FFFE),
    "huge_row_count_3": section(3, [row(0, SP | ONE, 8)], num_rows=0x8000_0000),
    "huge_function_count_2": section(2, [row(0, SP | ONE, 8)], num_functions=0xFFFF_FFFF),
    "huge_function_count_3": section(3, [row(0, SP | ONE, 8)], num_functions=0xFFFF_FFFF),
    "huge_function_count_1": section(1, [row(0, SP | ONE, 8)], num_functions=0x7FFF_FFFF),
    **{f"huge_function_{n}": section(n, [row(0, SP | ONE, 8)], function_bytes=0x8000_0010) for n in (1, 2, 3)},
    "ignored_offset_of_entries_1": section(1, [row(0, SP | ONE, 8)], offsets=(4, 17)),
    "ignored_offset_of_entries_2": section(2, [row(0, SP | ONE, 8)], offsets=(4, 20)),
    "ignored_offset_of_rows_1": section(1, [row(0, SP | ONE, 8)], offsets=(0, 0xF000_0000)),
    "ignored_offset_of_rows_2": section(2, [row(0, SP | ONE, 8)], offsets=(0, 0)),
    "unknown_type_3": section(3, [row(0, SP | ONE, 8)], info2=31),
    "frame_pointer_flag_3": section(3, [row(0, SP | ONE, 8)], flags=7),
    "s390x_2": section(2, [row(0, SP | THREE, 0, -8, -16)], abi=4, fixed_ra=0),
    "flex": section(3, [row(0, THREE, 7 << 3 | 1, -8, 0), row(1, TWO, 10 << 3 | 3, -8)], info2=FLEX),
}

PAST_THE_END = {("ignored_offset_of_entries_2", "2.47")}
"""What that readelf shows after reading past the end of the section, which is not reproduced."""

VERSIONS = ("2.40", "2.44", "2.47")
"""The versions of binutils with styles of their own; those that are installed are compared with."""

MEASURED = [
    ("rows_without_words_1", "2.40", ["5100  sp+-1     u         u", "5104  fp+-1     u         u"]),
    ("rows_without_words_2", "2.44", ["5100  sp+-1     u         f", "5104  fp+-1     u         f"]),
    ("rows_without_words_2", "2.47", ["5100  RA undefined", "5101  sp+8      u         f", "5104  RA undefined"]),
    ("rows_without_words_of_aarch64", "2.44", ["5105  fp+-1     u         u[s]"]),
    ("cfa_below_its_base_2", "2.44", ["5101  fp+-8     c-16      f", "5102  sp+-100000u         f"]),
    ("cfa_below_its_base_3", "2.47", ["5101  fp+-8     c-16      f", "5102  sp+-100000u         f"]),
    ("too_many_words_2", "2.44", ["5100  sp+8      c-16      f"]),
    ("too_many_words_3", "2.47", ["5100  sp+8      c-16      f"]),
    ("fixed_frame_pointer_1", "2.40", ["5100  sp+8      u         u"]),
    ("fixed_frame_pointer_2", "2.44", ["5100  sp+8      c-16      f"]),
    ("huge_row_count_1", "2.40", ["Num FREs: -1"]),
    ("huge_row_count_2", "2.44", ["Num FREs: -2"]),
    ("huge_row_count_3", "2.47", ["Num FREs: -2147483648"]),
    ("huge_function_1", "2.40", ["func idx [0]: pc = 0x5100, size = -2147483632 bytes"]),
    ("huge_function_2", "2.44", ["func idx [0]: pc = 0x5100, size = -2147483632 bytes"]),
    ("huge_function_3", "2.47", ["func idx [0]: pc = 0x5100, size = -2147483632 bytes"]),
    ("ignored_offset_of_entries_2", "2.44", ["5100  sp+8      u         f"]),
    ("ignored_offset_of_rows_1", "2.40", ["5100  sp+8      u         u"]),
    ("unknown_type_3", "2.47", ["5100  sp+8      u         f"]),
    ("s390x_2", "2.44", ["5100  sp+0      c-16      c-8"]),
    ("s390x_2", "2.47", ["5100  sp+160    c-16      c-8"]),
]
"""Lines of readelf of binutils 2.40-2, 2.44-3 and 2.47.50, Debian's packages for amd64, measured on 2026-11-22."""


@pytest.mark.parametrize(("name", "version", "lines"), MEASURED)
def test_edges_have_the_lines_that_readelf_printed(name: str, version: str, lines: list[str]) -> None:
    opened = sframe.open(SECTIONS[name], address=ADDRESS)
    text = b"".join(opened.readelf(f"readelf-{version}")).decode()
    printed = [re.sub(r"^0+", "", line.strip()) for line in text.splitlines()]
    assert [line for line in printed if line in lines] == lines, text


@pytest.mark.parametrize("version", [2, 3])
def test_a_function_count_that_does_not_fit_in_memory_is_refused_as_readelf_does(version: int) -> None:
    opened = sframe.open(SECTIONS[f"huge_function_count_{version}"])
    with pytest.raises(UsageError, match=r"SFrame decode failure: Out of Memory\.$"):
        opened.readelf("readelf-2.47")
    opened = sframe.open(section(version, [row(0, SP | ONE, 8)], num_functions=2))
    with pytest.raises(UsageError, match="counts more functions than it has"):
        opened.readelf("readelf-2.47")


def ours(path: Path, version: str) -> str:
    return without_padding(b"".join(sframe.open(path).readelf(f"readelf-{version}")).decode())


@pytest.mark.truth(recording="sframe_program", path="records", source="readelf of binutils 2.40, 2.44 and 2.47")
@pytest.mark.parametrize(
    ("name", "version"),
    [(name, one) for one in VERSIONS if readelf(one) for name in SECTIONS if (name, one) not in PAST_THE_END],
)
def test_edges_have_the_text_of_that_readelf(tmp_path: Path, name: str, version: str) -> None:
    path = program_with(SECTIONS[name], tmp_path)
    expected, errors = sframe_text(version, path)
    if "Assertion" in errors:
        assert ours(path, version)
    elif "decode failure" in errors:
        with pytest.raises(UsageError) as raised:
            ours(path, version)
        assert errors.split("readelf: Error: ")[-1].strip() in str(raised.value)
    elif expected:
        assert ours(path, version) == expected


def program_with(content: bytes, folder: Path) -> Path:
    """A library with a section that objcopy put there; skips without the tools."""
    need("gcc", "objcopy")
    (folder / "code.s").write_text(".text\nnop\n", encoding="utf-8")
    (folder / "section").write_bytes(content)
    bare, path = folder / "bare.so", folder / "library.so"
    subprocess.run(["gcc", "-nostdlib", "-shared", "-o", bare, folder / "code.s"], check=True)
    added = [f"--add-section=.sframe={folder / 'section'}", "--set-section-flags=.sframe=alloc,readonly"]
    moved = f"--change-section-address=.sframe={ADDRESS}"
    subprocess.run(["objcopy", *added, moved, bare, path], check=True, capture_output=True)
    return path


def test_an_empty_section_is_an_error_that_names_it(tmp_path: Path) -> None:
    """readelf prints `Section '.sframe' has no data to dump`, and 2.40 and 2.44 fail."""
    path = tmp_path / "empty.o"
    path.write_bytes(relocatable(b"", 0, value=0))
    with pytest.raises(UnreadableInput, match=r"the section \.sframe is empty"):
        sframe.open(path)


FIRST = "int other(int); int first(int n) { char room[n]; return other(n) + room[0]; }"
SECOND = """
int other(int);
int second(int n) { return other(n) * other(n + 2); }
int __attribute__((section(".text.unlikely"))) third(int n) { return other(n) - 9; }
"""


@pytest.fixture
def objects(tmp_path: Path) -> list[Path]:
    """Two object files with sections."""
    need("gcc")
    made = []
    for name, text in (("first", FIRST), ("second", SECOND)):
        (tmp_path / f"{name}.c").write_text(text, encoding="utf-8")
        made.append(tmp_path / f"{name}.o")
        subprocess.run(["gcc", "-O2", "-Wa,--gsframe", "-c", "-o", made[-1], tmp_path / f"{name}.c"], check=True)
    return made


def installed() -> str:
    """The version of the installed readelf that a style names."""
    version = next((one for one in VERSIONS if readelf(one) == shutil.which("readelf")), "")
    if not version:
        pytest.skip("the installed readelf is none of the styles")
    return version


@pytest.mark.truth(recording="sframe_object", path="records", source="readelf of binutils 2.40, 2.44 and 2.47")
def test_objects_that_ld_linked_again_have_the_text_of_readelf(tmp_path: Path, objects: list[Path]) -> None:
    version = installed()
    linked = tmp_path / "linked.o"
    subprocess.run(["ld", "-r", "-o", linked, *objects], check=True)
    for path in (*objects, linked):
        assert ours(path, version) == sframe_text(version, path)[0]


@pytest.mark.truth(recording="sframe_archive", path="records", source="readelf of binutils 2.40, 2.44 and 2.47")
def test_each_member_of_an_archive_is_printed_as_readelf_does(tmp_path: Path, objects: list[Path]) -> None:
    version = installed()
    archive = tmp_path / "library.a"
    subprocess.run(["ar", "rcs", archive, *objects], check=True)
    expected = sframe_text(version, archive)[0]
    assert expected.count("File: ") == len(objects)
    assert ours(archive, version) == expected
    command = [sys.executable, "-m", "perfuse", "records", "--style", f"readelf-{version}", archive]
    assert without_padding(subprocess.run(command, capture_output=True, text=True, check=True).stdout) == expected


def test_readelf_247_applies_relocations_that_ld_misplaced(tmp_path: Path) -> None:
    """`ld -r` of binutils 2.44 writes relocations of later functions into rows, and readelf 2.47 applies them there."""
    body = [row(0, SP | ONE, 8), row(1, SP | TWO, 16, -16), row(2, SP | ONE, 8)]
    content = section(2, body)
    # The relocation changes the words of the second row, and the two bytes that follow.
    at = content.index(body[1]) + 2
    path = tmp_path / "linked.o"
    path.write_bytes(relocatable(content, at, value=at + 0x0202_F020))
    opened = sframe.open(path)
    lines = b"".join(opened.readelf("readelf-2.47")).decode().splitlines()
    assert [line.split()[1:] for line in lines[-3:]] == [["sp+8", "u", "f"], ["sp+32", "c-16", "f"], ["fp+8", "u", "f"]]
    unchanged = b"".join(opened.readelf("readelf-2.44")).decode()
    assert "sp+16     c-16" in unchanged
    for version in filter(readelf, ("2.44", "2.47")):
        assert ours(path, version) == sframe_text(version, path)[0]


def relocatable(content: bytes, at: int, value: int) -> bytes:
    """An x86-64 object file with a section, and a relocation R_X86_64_PC32 at an offset of it."""
    names = b"\0.sframe\0.rela\0.symtab\0.names\0.text\0"
    symbols = bytes(24) + struct.pack("<IBBHQQ", 0, 3, 0, 5, 0, 0)
    relocation = struct.pack("<QQq", at, 1 << 32 | 2, value)
    bodies = [content, relocation, symbols, names, bytes(16)]
    kinds = [(1, 1, 2, 0, 0), (9, 4, 0, 3, 1), (15, 2, 0, 4, 1), (23, 3, 0, 0, 0), (30, 1, 6, 0, 0)]
    data, headers = bytes(64), bytes(64)
    for body, (name, kind, flags, link, info) in zip(bodies, kinds, strict=True):
        data += bytes(-len(data) % 8)
        headers += struct.pack("<IIQQQQIIQQ", name, kind, flags, 0, len(data), len(body), link, info, 8, 24)
        data += body
    data += bytes(-len(data) % 8)
    identity = b"\x7fELF\x02\x01\x01" + bytes(9)
    head = struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, len(data), 0, 64, 0, 0, 64, len(kinds) + 1, 4)
    return identity + head + data[64:] + headers
