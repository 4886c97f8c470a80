"""SFrame from Python: sections written, converted, merged, looked up."""

import struct
import subprocess
from array import array
from io import BytesIO
from pathlib import Path

import pytest

import perfuse as pf
from needs import need
from perfuse import sframe
from perfuse.errors import ExportError, UnreadableInput, UsageError
from perfuse.formats.sframe.section import UnwindRow, UnwindRule

FIXTURES = Path(__file__).parents[2] / "crates" / "formats" / "sframe" / "src" / "testdata"
SP_8, SP_16 = UnwindRule("sp", 8), UnwindRule("sp", 16)


def section(version: int, arch: str = "x86_64") -> sframe.Section:
    """Two functions, the second before the first, with equal rows."""
    made = sframe.Section(version, arch)
    ra = None if arch == "x86_64" else UnwindRule("cfa", -8, deref=True)
    rows = [UnwindRow(0, SP_8), UnwindRow(1, SP_16, fp=UnwindRule("cfa", -16, deref=True), ra=ra)]
    made.add(0x2000, 0x20, rows)
    made.add(0x1000, 0x20, rows)
    return made


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("arch", ["x86_64", "aarch64", "aarch64_be"])
def test_written_rows_are_found(version: int, arch: str) -> None:
    opened = sframe.open(section(version, arch).encode(0x8000), address=0x8000)
    assert [(piece.version, piece.abi, piece.num_rows) for piece in opened.headers] == [(version, arch, 4)]
    found = opened.find([0x1000, 0x1001, 0x101F, 0x1020, 0x2001]).to_arrow()
    assert found["function_address"].to_pylist() == [0x1000, 0x1000, 0x1000, None, 0x2000]
    assert found["cfa_offset"].to_pylist() == [8, 16, 16, None, 16]
    assert found["fp_offset"].to_pylist() == [None, -16, -16, None, -16]
    ra = found["ra_offset"].to_pylist()
    assert ra == ([-8, -8, -8, None, -8] if arch == "x86_64" else [None, -8, -8, None, -8])


def test_addresses_come_as_numbers_or_as_a_buffer() -> None:
    opened = sframe.open(section(2).encode(0), address=0)
    as_numbers = opened.find(iter([0x1001])).to_arrow()
    assert opened.find(array("Q", [0x1001])).to_arrow() == as_numbers
    with pytest.raises(UsageError, match="64-bit"):
        opened.find(array("I", [0x1001]))


def test_flex_rows_need_version_3() -> None:
    row = UnwindRow(0, UnwindRule("r10", 0), fp=UnwindRule("fp", 0, deref=True))
    with pytest.raises(ValueError, match="not relative to stack or frame pointer"):
        sframe.Section(2, "x86_64").add(0x1000, 16, [row])
    made = sframe.Section(3, "x86_64")
    made.add(0x1000, 16, [row])
    made.add(0x1100, 16, [UnwindRow(0, SP_8)])
    found = sframe.open(made.encode(0)).find([0x1003]).to_arrow()
    assert (found["cfa_base"][0].as_py(), found["fp_deref"][0].as_py()) == ("r10", True)
    older, unsupported = (converted := made.convert(2)).section, converted.unsupported
    assert [(item.function, item.row, item.left_out) for item in unsupported] == [(0x1000, 0, True)]
    assert len(older) == 1


def test_the_outermost_frame_is_not_representable_in_version_1() -> None:
    made = sframe.Section(2, "x86_64")
    made.add(0x1000, 16, [UnwindRow(0, None)])
    assert sframe.open(made.encode(0)).find([0x1001]).to_arrow()["outermost"][0].as_py()
    assert [item.what for item in made.convert(1).unsupported] == [
        "the outermost frame is not representable in version 1"
    ]


def test_equal_rows_are_shared() -> None:
    whole, shared = section(3).encode(0), section(3).optimise().encode(0)
    assert len(whole) - len(shared) == 5 + 3 + 4
    rows = [sframe.open(data).recording.tables["unwind_rows"].to_arrow() for data in (whole, shared)]
    assert rows[0].drop_columns(["record_offset"]) == rows[1].drop_columns(["record_offset"])


def test_an_offset_that_is_too_far_is_refused() -> None:
    made = sframe.Section(2, "x86_64")
    made.add(1 << 40, 16, [UnwindRow(0, SP_8)])
    with pytest.raises(ExportError, match="2 GiB"):
        made.encode(0)
    assert len(made.convert(3).section.encode(0)) == 28 + 16 + 5 + 3


def test_sections_that_lld_put_together_are_merged_in_place(tmp_path: Path) -> None:
    opened = sframe.open(FIXTURES / "lld22_v2.so")
    assert [piece.starts for piece in opened.headers] == ["field"] * 3
    assert {d.code for d in opened.recording.check() if d.is_finding} == {"SF060"}
    opened.replace(opened.merge(), tmp_path / "merged.so")
    merged = sframe.open(tmp_path / "merged.so")
    assert [(piece.num_functions, piece.starts) for piece in merged.headers] == [(3, "section")]
    assert not [d for d in merged.recording.check() if d.is_finding]
    starts = [
        table.to_arrow()["start_address"].to_pylist()
        for table in (opened.recording.tables["unwind_functions"], merged.recording.tables["unwind_functions"])
    ]
    assert sorted(starts[0]) == starts[1]


def test_repair_merges_too(tmp_path: Path) -> None:
    done = pf.repair(FIXTURES / "lld22_v2.so", tmp_path / "repaired.so")
    assert {change.code for change in done.changes} == {"SF060"}
    assert not [d for d in pf.check(tmp_path / "repaired.so") if d.is_finding]


def test_a_larger_section_is_not_put_back(tmp_path: Path) -> None:
    opened = sframe.open(FIXTURES / "v3_leaf.so")
    with pytest.raises(ExportError, match="larger"):
        opened.replace(section(3, "s390x"), tmp_path / "new.so")
    objects = sframe.open(FIXTURES / "v1_ld_r_broken.o")
    with pytest.raises(ExportError, match="object files"):
        objects.replace(objects.sections[0], tmp_path / "new.o")


def test_an_archive_is_its_members() -> None:
    member = (FIXTURES / "v2_nest_llvm22.o").read_bytes()
    header = "{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n"
    archive = b"!<arch>\n" + b"".join(
        header.format(name, 0, 0, 0, 644, len(member)).encode() + member for name in ("one.o/", "two.o/")
    )
    opened = sframe.open(archive)
    assert [piece.member for piece in opened.headers] == ["one.o", "two.o"]
    members = opened.recording.tables["unwind_functions"].to_arrow()["member"].to_pylist()
    assert members == ["one.o"] * 5 + ["two.o"] * 5
    with pytest.raises(UsageError, match="functions overlap"):
        opened.find([0])


def test_addresses_of_several_sections_of_an_object_are_refused(tmp_path: Path) -> None:
    """Each section of code begins at 0: a short function may be within a long one, which has other rules."""
    need("clang-22")
    text = """
        void ext(int*);
        int few(void) { return 1; }
        int many(int n) { int a[99]; for (int i = 0; i < n; i++) ext(a + i); return a[n]; }
    """
    flags = ["clang-22", "-O2", "-c", "-Wa,--allow-experimental-sframe", "-Wa,--gsframe", "-x", "c", "-"]
    for name, more in (("one.o", []), ("several.o", ["-ffunction-sections"])):
        subprocess.run([*flags, *more, "-o", tmp_path / name], input=text, text=True, check=True)
    several, one = sframe.open(tmp_path / "several.o"), sframe.open(tmp_path / "one.o")
    starts = one.recording.tables["unwind_functions"].to_arrow()["start_address"].to_pylist()
    assert [row["function_address"] for row in one.find(starts).to_arrow().to_struct_array().to_pylist()] == starts
    # `few` has 6 bytes: at the others only `many` has rows, which a lookup by start would miss.
    for address in (0, 5, 6, 12):
        with pytest.raises(UsageError, match=f"functions overlap around {address:#x}"):
            several.find([address])


def test_files_without_a_section_are_refused() -> None:
    elf = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, 0, 0, 64, 56, 0, 64, 0, 0)
    with pytest.raises(UnreadableInput, match=r"\.sframe section"):
        pf.open(elf)


def test_a_style_without_output_names_one_with_output() -> None:
    opened = sframe.open(FIXTURES / "v3_leaf.so")
    with pytest.raises(UsageError, match=r"--style readelf-2\.47"):
        opened.readelf("readelf-2.40")
    with pytest.raises(UsageError, match=r"no style '2\.47'") as refused:
        opened.readelf("2.47")
    assert "readelf-2.47" in (refused.value.hint or "")


RARE = """
    func idx [0]: pc = 0x1000, size = 128 bytes, attr = "SF"
    STARTPC         CFA       FP        RA           
    0000000000001000  r10+0     c-16      U            
    0000000000001001  (sp+16)   u         f            
    0000000000001002  sp+16     c+8       U            
    0000000000001003  sp+16     u         c-24         
    0000000000001004  sp+300    (r40-7)   r33+1000     
    0000000000001005  RA undefined
"""  # noqa: W291 - as readelf 2.47.50 writes it


def test_rare_rows_are_shown_as_readelf_shows_them() -> None:
    made = sframe.Section(3, "x86_64")
    rows = [
        UnwindRow(0, UnwindRule("r10"), fp=UnwindRule("cfa", -16, deref=True)),
        UnwindRow(1, UnwindRule("sp", 16, deref=True)),
        UnwindRow(2, SP_16, fp=UnwindRule("cfa", 8)),
        UnwindRow(3, SP_16, ra=UnwindRule("cfa", -24, deref=True)),
        UnwindRow(4, UnwindRule("sp", 300), fp=UnwindRule("r40", -7, deref=True), ra=UnwindRule("r33", 1000)),
        UnwindRow(5, None),
    ]
    made.add(0x1000, 0x80, rows, signal=True)
    text = b"".join(sframe.open(made.encode(0)).readelf("readelf-2.47")).decode()
    assert text.partition("Function Index :\n")[2] == RARE


def test_the_text_is_written_to_any_open_file(tmp_path: Path) -> None:
    made = sframe.Section(3, "x86_64")
    for start in range(0x1000, 0x1000 + 3000 * 0x100, 0x100):
        # More than the buffer for rewriting contains.
        rows = [
            UnwindRow(0, UnwindRule("sp", start // 0x100)),
            UnwindRow(1, SP_16, fp=UnwindRule("cfa", -16, deref=True)),
            UnwindRow(2, SP_16),
        ]
        made.add(start, 0x80, rows)
    opened = sframe.open(made.encode(0))
    text = b"".join(opened.readelf("readelf-2.47"))
    assert text.count(b"sp+16     c-16      f            \n") == 3000
    assert all(f"  sp+{number}".encode().ljust(12) + b"u         f            \n" in text for number in range(16, 3016))
    with (tmp_path / "text").open("wb") as file:
        opened.write_readelf("readelf-2.47", file)
    assert (tmp_path / "text").read_bytes() == text
    opened.write_readelf("readelf-2.47", output := BytesIO())
    assert output.getvalue() == text


def test_registers_that_save_values_on_s390x() -> None:
    made = sframe.Section(2, "s390x")
    made.add(
        0x2000,
        0x80,
        [
            UnwindRow(0, UnwindRule("sp", 320), ra=UnwindRule("r16"), fp=UnwindRule("r17")),
            UnwindRow(6, UnwindRule("sp", 320), fp=UnwindRule("r17")),
        ],
    )
    text = b"".join(sframe.open(made.encode(0)).readelf("readelf-2.47")).decode()
    assert [line.split() for line in text.splitlines()[-2:]] == [
        ["0000000000002000", "sp+320", "r17", "r16"],
        ["0000000000002006", "sp+320", "r17", "U"],
    ]
    newer, unsupported = (converted := made.convert(3)).section, converted.unsupported
    assert not unsupported
    found = sframe.open(newer.encode(0)).find([0x2001]).to_arrow()
    assert (found["ra_base"][0].as_py(), found["fp_base"][0].as_py()) == ("r16", "r17")
