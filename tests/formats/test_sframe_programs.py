"""Sections written into programs: the programs run as before, and binutils reads the sections."""

import struct
import subprocess
from pathlib import Path

import pytest

import perfuse as pf
from needs import need, program_at
from perfuse import sframe
from perfuse.errors import ExportError, UnreadableInput

FIXTURES = Path(__file__).parents[2] / "crates" / "formats" / "sframe" / "src" / "testdata"
LIBRARY = FIXTURES / "lld22_v2.so"
SOURCE = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) static int twice(int n) { char *room = malloc(n); free(room); return 2 * n; }
int main(int argc, char **argv) { printf("%d of %s\\n", twice(argc), argv[1]); return 7; }
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program without SFrame."""
    need("cc")
    folder = tmp_path_factory.mktemp("program")
    (folder / "program.c").write_text(SOURCE, encoding="utf-8")
    subprocess.run(["cc", "-O2", "-o", folder / "program", folder / "program.c"], check=True)
    return folder / "program"


def output(program: Path) -> tuple[int, bytes]:
    done = subprocess.run([program, "them"], capture_output=True, check=False)
    return done.returncode, done.stdout


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_program_runs_with_its_new_section(program: Path, tmp_path: Path, version: int) -> None:
    before = program.read_bytes()
    made = sframe.from_eh_frame(program, version=version)
    changed = tmp_path / "changed"
    made.section.write_into(program, changed)
    assert program.read_bytes() == before
    assert output(changed) == output(program) == (7, b"4 of them\n")
    opened = sframe.open(changed)
    assert [piece.version for piece in opened.headers] == [version]
    assert opened.coverage[0].agreement.num_disagreements == 0
    left_out = {item.function for item in made.unsupported if item.left_out}
    assert left_out >= {one.address for one in opened.coverage[0].without if one.why != "not in .eh_frame either"}


def test_a_section_that_grows_or_shrinks_keeps_its_address(program: Path, tmp_path: Path) -> None:
    first, second, third = tmp_path / "first", tmp_path / "second", tmp_path / "third"
    sframe.from_eh_frame(program, version=1).section.write_into(program, first)
    sframe.from_eh_frame(program, version=3).section.write_into(first, second)
    small = sframe.Section(3, "x86_64" if sframe.open(second).headers[0].abi == "x86_64" else "aarch64")
    small.write_into(second, third)
    headers = [sframe.open(path).headers for path in (first, second, third)]
    assert len({header.address for [header] in headers}) == 1
    assert [header.version for [header] in headers] == [1, 3, 3]
    assert output(second) == output(third) == output(program)


def test_readelf_reads_the_new_section(program: Path, tmp_path: Path) -> None:
    readelf = program_at("readelf")
    version = subprocess.run([readelf, "--version"], capture_output=True, check=True, text=True).stdout.splitlines()[0]
    minor = int(version.rsplit(" ", 1)[1].split(".")[1])
    version, style = (1, "readelf-2.40") if minor == 40 else (2, "readelf-2.44") if minor < 45 else (3, "readelf-2.47")
    changed = tmp_path / "changed"
    sframe.from_eh_frame(program, version=version).section.optimise().write_into(program, changed)
    text = subprocess.run([readelf, "--sframe", changed], capture_output=True, check=True).stdout
    assert text.strip() == b"".join(sframe.open(changed).readelf(style)).strip()
    headers = subprocess.run([readelf, "-lSW", changed], capture_output=True, check=True, text=True)
    assert "GNU_SFRAME" in headers.stdout
    assert headers.stderr == ""


def test_unmerged_sections_are_merged_into_the_library(tmp_path: Path) -> None:
    opened = sframe.open(LIBRARY)
    assert len(opened.headers) == 3
    opened.merge().write_into(LIBRARY, tmp_path / "merged.so")
    merged = sframe.open(tmp_path / "merged.so")
    [header] = merged.headers
    assert header.num_functions == 3
    assert merged.coverage[0].agreement.num_disagreements == 0
    codes = {found.code for found in pf.check(tmp_path / "merged.so") if found.is_finding}
    assert codes == set()


def test_a_jitdump_has_unwind_rules_for_its_code(tmp_path: Path) -> None:
    # rbp is saved after the first instruction, and restored before the last.
    frame = bytes((0x41, 0x0E, 0x10, 0x86, 0x02, 0x43, 0x0D, 0x06, 0x47, 0x0C, 0x07, 0x08))
    cie = struct.pack("<II", 20, 0) + b"\x01zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01\0\0"
    fde = struct.pack("<IIiI", 28, len(cie) + 4, -(len(cie) + 8), 12) + b"\0" + frame
    eh_frame = cie + fde.ljust(32, b"\0") + bytes(4)
    index = struct.pack("<BBBBiIii", 1, 0x1B, 3, 0x3B, -len(eh_frame), 1, -len(eh_frame), 0)
    dump = tmp_path / "jit-1.dump"
    with pf.jitdump.Writer(dump, arch="x86_64", pid=1) as writer:
        for address in (0x10000, 0x20000):
            writer.code_load("compiled", address, bytes(12), unwind=pf.jitdump.Unwinding(eh_frame, index))
    made = sframe.from_eh_frame(dump)
    assert made.unsupported == []
    found = sframe.open(made.section.encode(0)).find([0x10000, 0x10001, 0x20004, 0x2000B, 0x2000C]).to_arrow()
    assert found["function_address"].to_pylist() == [0x10000, 0x10000, 0x20000, 0x20000, None]
    assert found["cfa_base"].to_pylist() == ["sp", "sp", "fp", "sp", None]
    assert found["fp_offset"].to_pylist() == [None, -16, -16, -16, None]


def test_the_other_byte_order_has_the_same_rows() -> None:
    made = sframe.Section(3, "aarch64")
    made.add(
        0x1000,
        0x20,
        [sframe.UnwindRow(0, sframe.UnwindRule("sp", 0)), sframe.UnwindRow(4, sframe.UnwindRule("sp", 0x1234))],
    )
    swapped = made.convert(3, arch="aarch64_be")
    assert swapped.unsupported == []
    opened = sframe.open(swapped.section.encode(0))
    assert opened.headers[0].abi == "aarch64_be"
    assert opened.find([0x1004]).to_arrow()["cfa_offset"].to_pylist() == [0x1234]
    with pytest.raises(ExportError, match="registers of one kind of machine"):
        made.convert(3, arch="s390x")


def test_object_files_and_files_without_eh_frame_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="link object files first"):
        sframe.Section(2, "x86_64").write_into(FIXTURES / "v2_nest_llvm22.o", tmp_path / "x.o")
    with pytest.raises(UnreadableInput, match="not an ELF file"):
        sframe.from_eh_frame(Path(__file__))
    with pytest.raises(ValueError, match="versions 1, 2 and 3"):
        sframe.from_eh_frame(LIBRARY, version=4)
