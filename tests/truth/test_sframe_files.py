"""SFrame of programs, objects and archives: reports, conversions and findings, compared with pyelftools and walks."""

import io
import json
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile

from perfuse.profile import Profile

from .command import command_line, json_of, run
from .kinds import CORPUS, Kind
from .outside import ARCHIVED, num_records
from .walks import sframe_functions

PCREL = 4


def members(kind: Kind) -> list[bytes]:
    """The ELF files of a kind's example: its file, or the members of its archive, which the corpus has too."""
    (path,) = kind.paths
    return [(CORPUS / one).read_bytes() for one in ARCHIVED] if path.suffix == ".a" else [path.read_bytes()]


def covered(data: bytes) -> dict[str, list[tuple[int, int]]]:
    """Start and size of each function of a section of version 2, by the section of its code."""
    elf = ELFFile(io.BytesIO(data))
    section = elf.get_section_by_name(".sframe")
    found: dict[str, list[tuple[int, int]]] = {}
    if elf["e_type"] == "ET_REL":
        relocations = {one["r_offset"]: one for one in elf.get_section_by_name(".rela.sframe").iter_relocations()}
        symbols = elf.get_section_by_name(".symtab")
    for entry in sframe_functions(data):
        (size,) = struct.unpack_from("<I", data, entry.offset + 4)
        if elf["e_type"] == "ET_REL":
            relocation = relocations[entry.offset - section["sh_offset"]]
            symbol = symbols.get_symbol(relocation["r_info_sym"])
            code, start = elf.get_section(symbol["st_shndx"]), symbol["st_value"] + relocation["r_addend"]
        else:
            # GNU ld of 2.44 writes starts that are relative to the section.
            address = section["sh_addr"] + entry.kind
            code = next(one for one in elf.iter_sections() if 0 <= address - one["sh_addr"] < one["sh_size"])
            start = address
        found.setdefault(code.name, []).append((start, size))
    return found


def functions_without_rows(data: bytes) -> set[tuple[str, int]]:
    """Names and sizes of the functions of the symbol table that the section does not contain."""
    elf, rows = ELFFile(io.BytesIO(data)), covered(data)
    found = set()
    for symbol in elf.get_section_by_name(".symtab").iter_symbols():
        if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_size"] and symbol["st_shndx"] != "SHN_UNDEF":
            code = elf.get_section(symbol["st_shndx"])
            if (symbol["st_value"], symbol["st_size"]) not in rows.get(code.name, []):
                found.add((symbol.name, symbol["st_size"]))
    return found


@pytest.mark.truth(
    recording="sframe_*",
    path="report:unwind_tables",
    source="pyelftools: sizes of sections, symbols of functions, relocations; a walk over the function entries",
)
def test_the_report_of_unwind_tables_has_the_covered_bytes_and_the_missing_functions(kind: Kind) -> None:
    shown: dict[str, Any] = json_of("report", *kind.paths, "--limit", "0")
    sections, elves = shown["sections"], members(kind)
    assert len(sections) == len(elves)
    records = [section["pieces"][0] for section in sections]
    expected = num_records(kind.name)
    assert sum(one["num_functions"] for one in records) == expected["sframe_func_desc_entry"]
    assert sum(one["num_rows"] for one in records) == expected["sframe_frame_row_entry"]
    for section, data in zip(sections, elves, strict=True):
        elf = ELFFile(io.BytesIO(data))
        assert section["size_bytes"] == elf.get_section_by_name(".sframe")["sh_size"]
        rows = covered(data)
        for code in section["code"]:
            assert code["size_bytes"] == elf.get_section_by_name(code["name"])["sh_size"]
            assert code["covered_bytes"] == sum(size for _, size in rows.get(code["name"], []))
        assert set(rows) <= {code["name"] for code in section["code"]}
        assert {(one["name"], one["size_bytes"]) for one in section["without"]} == functions_without_rows(data)


@pytest.mark.truth(
    recording=["sframe_object", "sframe_archive"],
    path="sframe",
    source="a walk over the function entries of the object and of the written section; ar extracts members",
)
def test_sections_of_objects_are_converted(kind: Kind, tmp_path: Path) -> None:
    """An archive has several sections: its members are converted after `ar x`."""
    (path,) = kind.paths
    objects = [path]
    if path.suffix == ".a":
        refused = run("sframe", "convert", path, "--version", "3", "-o", tmp_path / "section")
        assert refused.returncode == 2
        assert "several members with sections: extract one with `ar x`" in refused.stderr
        subprocess.run(["ar", "x", path.resolve()], cwd=tmp_path, check=True)
        objects = [tmp_path / Path(one).name for one in ARCHIVED]
    for one, data in zip(objects, members(kind), strict=True):
        out = tmp_path / "section"
        command_line("sframe", "convert", one, "--version", "3", "-o", out, codes=(0,))
        written = out.read_bytes()
        magic, version, flags, count, entries = struct.unpack_from("<HBB4xI8xI", written)
        assert (magic, version, flags) == (0xDEE2, 3, 1 | PCREL)
        sizes = [struct.unpack_from("<I", written, 28 + entries + 16 * index + 8)[0] for index in range(count)]
        assert sorted(sizes) == sorted(size for rows in covered(data).values() for _, size in rows)


@pytest.mark.truth(
    recording="sframe_*",
    path="api:Profile.diagnostics",
    source="pyelftools: the type of the file, its segment and section; a walk over the flags of the headers",
)
def test_findings_are_what_headers_show(kind: Kind, profile: Profile) -> None:
    found = {one.code: one.count for one in profile.diagnostics}
    expected = dict.fromkeys(("SF062", "SF065"), 0)
    for data in members(kind):
        elf = ELFFile(io.BytesIO(data))
        section = elf.get_section_by_name(".sframe")
        is_pcrel = section.data()[3] & PCREL
        # Starts that relocations made relative to their fields, without the flag that states it.
        expected["SF062"] += elf["e_type"] == "ET_REL" and not is_pcrel
        # PT_GNU_SFRAME is 0x6474e554.
        segments = [one["p_filesz"] for one in elf.iter_segments() if one["p_type"] in (0x6474E554, "PT_GNU_SFRAME")]
        expected["SF065"] += any(size > section["sh_size"] for size in segments)
    assert {code: found.get(code, 0) for code in expected} == expected
    # readelf prints each of them without a complaint.
    assert {one.severity for one in profile.diagnostics} <= {"info"}


@pytest.mark.truth(
    recording="sframe_*", path="assert:duration", source="the specification: no field of the format has a time"
)
def test_a_file_without_times_has_no_duration(kind: Kind) -> None:
    done = run("report", *kind.paths, "--assert", "duration >= 0")
    assert done.returncode == 1
    assert "not recorded" in done.stdout + done.stderr
    checked = json.loads(run("report", *kind.paths, "--assert", "duration >= 0", "--json").stdout)
    assert [one["value"] for one in checked["assertions"]] == [None]
