"""Sections in another version or of several headers, as readelf, llvm-readelf and a walk over their bytes read them."""

import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from command_line import Perfuse
from elftools.elf.elffile import ELFFile

from binutils import readelf, sframe_text
from perfuse import sframe
from perfuse.errors import UsageError

SORTED, PCREL = 1, 4
CONCATENATED = [f"{linker}_v{version}" for linker in ("gold", "lld", "lld22") for version in (1, 2, 3)]


def functions_of(path: Path) -> tuple[int, int, dict[int, int]]:
    """Version, flags, and functions by address with their size, of the only header of a program's section."""
    with path.open("rb") as file:
        section = next(one for one in ELFFile(file).iter_sections() if one.name == ".sframe")
        data, address = section.data(), section["sh_addr"]
    magic, version, flags, *_, auxiliary = struct.unpack_from("<HBBBbbB", data)
    count, _, _, entries, _ = struct.unpack_from("<5I", data, 8)
    assert magic == 0xDEE2
    entry = struct.Struct({1: "<iIIIB", 2: "<iIIIBBH", 3: "<qII"}[version])
    functions = {}
    for at in range(28 + auxiliary + entries, 28 + auxiliary + entries + count * entry.size, entry.size):
        start, size, *_ = entry.unpack_from(data, at)
        functions[address + start + (at if flags & PCREL else 0)] = size
    return version, flags, functions


def symbols_of(path: Path) -> dict[int, int]:
    """Address and size of each function of the library `fn1`, `fn2`, `fn3`."""
    with path.open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".symtab").iter_symbols()
        return {one["st_value"]: one["st_size"] for one in symbols if re.fullmatch(r"fn\d", one.name)}


def rows_of(text: str) -> dict[int, list[list[str]]]:
    """Rows of each function in the text of readelf, by the function's address."""
    rows: dict[int, list[list[str]]] = {}
    for line in text.splitlines():
        if found := re.search(r"func idx \[\d+\]: pc = 0x([0-9a-f]+)", line):
            rows[function := int(found[1], 16)] = []
        elif re.match(r" +[0-9a-f]{16} ", line):
            rows[function].append(line.split())
    return rows


@pytest.mark.truth(
    recording="sframe_program",
    path="sframe",
    source="symbols of libraries that gold and lld linked, and a walk over the written section",
)
@pytest.mark.parametrize("name", CONCATENATED)
@pytest.mark.parametrize("action", ["optimise", "convert 1", "convert 2", "convert 3", "merge"])
def test_sections_that_a_linker_concatenated_become_one(
    perfuse: Perfuse, sframe_corpus: Path, tmp_path: Path, name: str, action: str
) -> None:
    library, changed = sframe_corpus / "concat" / f"{name}.so", tmp_path / "changed.so"
    verb, *version = action.split()
    options = ["--version", *version] if version else []
    done = perfuse("sframe", verb, str(library), *options, "--into", str(library), "-o", str(changed))
    assert done.code == 0, done.err
    symbols = symbols_of(library)
    assert len(symbols) == 3
    written, flags, functions = functions_of(changed)
    assert functions == symbols
    assert written == int(version[0] if version else name[-1])
    assert flags == (SORTED | PCREL if written == 3 else SORTED)
    style = {1: "2.40", 2: "2.44", 3: "2.47"}[written]
    if readelf(style):
        text, errors = sframe_text(style, changed)
        assert set(rows_of(text)) == set(symbols)
        assert errors == ""


@pytest.mark.parametrize("name", ["small_omitfp.elf", "small_fp.elf", "exc_omitfp.elf"])
def test_version_2_of_version_3_is_what_readelf_244_reads(
    perfuse: Perfuse, sframe_corpus: Path, tmp_path: Path, name: str
) -> None:
    """Without PCREL by default: binutils 2.41 to 2.44 do not know the flag, and refuse sections that have it."""
    program, changed = sframe_corpus / "v3" / "x86_64" / name, tmp_path / name
    expected = rows_of((program.parent / f"{name}.readelf.txt").read_text(encoding="utf-8"))
    into = ["--into", str(program), "-o", str(changed)]
    done = perfuse("sframe", "convert", str(program), "--version", "2", *into)
    omitted = {one.function for one in sframe.open(program).convert(2).unsupported if one.left_out}
    assert done.code == (1 if omitted else 0)
    assert f"; {len(omitted)} omitted" in done.err
    version, flags, functions = functions_of(changed)
    assert (version, flags) == (2, SORTED)
    assert set(functions) == set(expected) - omitted
    if readelf("2.44"):
        rows = rows_of(sframe_text("2.44", changed)[0])
        # The outermost frame has a row without words in version 2, which readelf 2.44 prints with an offset of -1.
        assert {start: one for start, one in rows.items() if "fp+-1" not in str(one)} == {
            start: one for start, one in expected.items() if start not in omitted and "undefined" not in str(one)
        }
    done = perfuse("sframe", "convert", str(program), "--version", "2", "--pcrel", *into)
    assert functions_of(changed) == (2, SORTED | PCREL, functions)
    if shutil.which("llvm-readelf-22"):
        command = ["llvm-readelf-22", "--sframe", str(changed)]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert {int(one, 16) for one in re.findall(r"PC: 0x([0-9A-F]+)", text)} == set(functions)


def test_pcrel_of_version_2_is_kept_and_can_be_cleared(perfuse: Perfuse, sframe_corpus: Path, tmp_path: Path) -> None:
    program, changed = sframe_corpus / "v3" / "x86_64" / "small_omitfp.elf", tmp_path / "changed"
    again, sections = tmp_path / "again", ["sframe", "convert"]
    perfuse(*sections, str(program), "--version", "2", "--pcrel", "--into", str(program), "-o", str(changed))
    assert functions_of(changed)[1] == SORTED | PCREL
    functions = functions_of(changed)[2]
    assert perfuse("sframe", "optimise", str(changed), "--into", str(changed), "-o", str(again)).code == 0
    assert functions_of(again) == (2, SORTED | PCREL, functions)
    assert perfuse(*sections, str(changed), "--no-pcrel", "--into", str(changed), "-o", str(again)).code == 0
    assert functions_of(again) == (2, SORTED, functions)


def test_pcrel_is_an_option_of_version_2(sframe_corpus: Path) -> None:
    opened = sframe.open(sframe_corpus / "v3" / "x86_64" / "small_omitfp.elf")
    with pytest.raises(UsageError, match="start addresses of version 3 are always relative to their fields"):
        opened.convert(3, pcrel=False)
    with pytest.raises(UsageError, match="start addresses of version 1 are never relative to their fields"):
        opened.convert(1, pcrel=True)


def test_unsorted_functions_are_relative_to_the_section_once_they_are_sorted() -> None:
    """An assembler's entries are relative to their fields; readers take sorted entries for a linker's."""
    entries = b"".join(struct.pack("<iIIIBBH", start - at, 16, 0, 1, 0, 0, 0) for start, at in ((64, 28), (32, 48)))
    head = struct.pack("<HBBBbbB5I", 0xDEE2, 2, 0, 3, 0, -8, 0, 2, 2, 3, 0, 40)
    (section,) = sframe.open(head + entries + bytes([0, 3, 8]), address=0).sections
    fields = struct.unpack_from("<i16xi", section.encode(0), 28)
    assert fields == (32, 64)


def test_omitted_functions_are_counted_once(perfuse: Perfuse, sframe_corpus: Path, tmp_path: Path) -> None:
    """`small_fp` has one function that realigns its stack, in five rows that version 2 cannot represent."""
    program = sframe_corpus / "v3" / "x86_64" / "small_fp.elf"
    done = perfuse("sframe", "convert", str(program), "--version", "2", "-o", str(tmp_path / "section"))
    assert done.out.count("left out") == 5
    assert "10 functions" in done.err
    assert "; 1 omitted" in done.err
