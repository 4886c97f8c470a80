"""Copies of recordings that are cut or damaged at a known place: what `check`, `records` and `repair` make of them.

The place is that of a record which a walk over the structures of the file finds (`walks.py`); of SFrame, that of a
function entry which pyelftools' section headers lead to.
"""

import io
import json
import struct
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile

from .command import json_of, run
from .kinds import Kind
from .outside import num_records, read
from .walks import Place, places, sframe_functions

LOSSES = ("data_loss", "error")
FINISHED_ROUND = 68


@dataclass(frozen=True)
class Damaged:
    """The files of an example, one of them with damage.

    Attributes:
        files: The files, those without damage as they are.
        path: The damaged file.
        place: Its record with the damage.
        end: Its size.
        whole: Its records before the damage.
    """

    files: list[Path]
    path: Path
    place: Place
    end: int
    whole: list[Place]


def damaged(kind: Kind, file: int, folder: Path, *, cut: bool) -> Damaged:
    """A copy of the example with one file cut within a record, or with a record that no specification has."""
    source, of = kind.paths[file], kind.formats[file]
    data = read(source)
    found = places(of, data)
    place = found[len(found) * 2 // 3]
    changed = data[: place.inside] if cut else with_wrong_record(of, data, place)
    path = folder / source.name.removesuffix(".gz")
    path.write_bytes(changed)
    files = [path if number == file else other for number, other in enumerate(kind.paths)]
    return Damaged(files, path, place, len(changed), [one for one in found if one.end <= place.offset])


def with_wrong_record(of: str, data: bytes, place: Place) -> bytes:
    """A copy in which the size or the kind of a record is one that the format does not have."""
    changed = bytearray(data)
    at = place.offset
    if of == "perf_data":
        struct.pack_into("<H", changed, at + 6, 4)  # a record has 8 bytes at least
    elif of == "jitdump":
        struct.pack_into("<I", changed, at + 4, 8)  # 16 at least
    elif of == "mono":
        changed[at] |= 0xF
    else:
        changed[at] = 0x1F if data[2] == 1 else 9
    return bytes(changed)


def losses(*files: Path) -> dict[Path, list[dict[str, Any]]]:
    """What `check` finds missing or unreadable, by file."""
    found = json_of("check", *files)["recordings"]
    return {Path(one["path"]): [row for row in one["diagnostics"] if row["severity"] in LOSSES] for one in found}


@pytest.mark.truth(
    recording=["perf_*", "xray_*", "mono_*", "jitdump", "collapsed"],
    path="check",
    source="offset of the damaged record: a walk over the structures of the file",
)
def test_check_names_where_a_file_is_cut(kind: Kind, tmp_path: Path) -> None:
    for file in range(len(kind.files)):
        copy = damaged(kind, file, tmp_path, cut=True)
        found = losses(*copy.files)
        assert any(copy.place.offset <= row["offset"] <= copy.end for row in found.pop(copy.path))
        assert not any(found.values()), "files without damage"


@pytest.mark.truth(
    recording=["perf_*", "xray_[!p]*", "mono_*", "jitdump"],
    path="check",
    source="offset of the damaged record: a walk over the structures of the file",
)
def test_check_names_a_record_that_cannot_be_read(kind: Kind, tmp_path: Path) -> None:
    for file in range(len(kind.files)):
        copy = damaged(kind, file, tmp_path, cut=False)
        found = losses(*copy.files)[copy.path]
        assert any(copy.place.offset <= row["offset"] <= copy.place.end for row in found)


@pytest.mark.truth(
    recording=["perf_*", "xray_*", "mono_*", "jitdump", "collapsed"],
    path="check",
    source="a walk over the structures of the file ends at its last byte",
)
def test_whole_files_have_no_losses(kind: Kind) -> None:
    for path, of in zip(kind.paths, kind.formats, strict=True):
        data = read(path)
        end = places(of, data)[-1].end
        if of == "perf_data":
            assert end == sum(struct.unpack_from("<QQ", data, 40))
        elif of != "mono":  # buffers without events follow
            assert end == len(data)
    # The log that was made by hand lacks the record which states that its program ended.
    expected = [["ML018"]] if kind.name == "mono_coverage" else [[] for _ in kind.files]
    assert [[row["code"] for row in found] for found in losses(*kind.paths).values()] == expected


@pytest.mark.truth(
    recording=["perf_data", "xray_*", "mono_*", "jitdump"],
    path="records",
    source="offsets of whole records: a walk over the structures of the file",
)
def test_records_lists_what_is_whole_and_exits_with_findings(kind: Kind, tmp_path: Path) -> None:
    copy = damaged(kind, 0, tmp_path, cut=True)
    done = run("records", copy.path, "--json", "--limit", "0")
    assert [json.loads(line)["offset"] for line in done.stdout.splitlines()] == [one.offset for one in copy.whole]
    assert done.returncode == 1, "it is not all that was recorded"
    assert run("records", copy.path, "--limit", "1").returncode == 1
    # As text, and a part of it, of the whole file.
    assert run("records", kind.paths[0], "--limit", "1").returncode == (kind.name == "mono_coverage")


@pytest.mark.truth(recording="collapsed", path="records", source="the lines by hand")
def test_records_of_a_line_without_a_count(kind: Kind, tmp_path: Path) -> None:
    copy = damaged(kind, 0, tmp_path, cut=True)
    done = run("records", copy.path, "--json")
    assert len(done.stdout.splitlines()) >= len(copy.whole)
    assert done.returncode == 1


@pytest.mark.truth(
    recording=["perf_data", "xray_*", "mono_*", "jitdump"],
    path="repair",
    source="whole records before the cut, by kind: a walk over the structures of both files",
)
def test_repair_keeps_every_whole_record(kind: Kind, tmp_path: Path) -> None:
    copy = damaged(kind, 0, tmp_path, cut=True)
    out = tmp_path / "out"
    stated = json_of("repair", copy.path, "-o", out)
    kept = places(kind.formats[0], out.read_bytes())
    assert by_kind(kept) == by_kind(copy.whole)
    assert (stated["records_in"], stated["records_out"]) == (len(copy.whole), len(kept))
    assert any(copy.place.offset <= row["offset"] <= copy.end for row in stated["lost"])
    assert run("repair", copy.path, "-o", tmp_path / "again").returncode == 1
    # The result is whole, except that the end of the program, or of a snapshot of its heap, is not in it.
    places_of = [
        [(row["code"], row["offset"], row["path"]) for row in rows] for rows in (losses(out)[out], stated["remaining"])
    ]
    assert places_of[0] == places_of[1]
    assert {row["code"] for row in stated["remaining"]} <= {"ML018", "ML061"}


def by_kind(found: list[Place]) -> Counter[int]:
    """Number of records by kind; rounds of a perf.data are written anew, since records are sorted by time."""
    return Counter(one.kind for one in found if one.kind != FINISHED_ROUND)


FUNCTION_INFO = 16
"""Offset of `sfde_func_info` in a function entry of version 2; its lowest four bits are the size of row addresses."""


def with_wrong_function(kind: Kind, folder: Path) -> tuple[Path, Place]:
    """A copy in which the rows of one function have a size that SFrame does not define, and the place of its entry."""
    data = bytearray(read(kind.paths[0]))
    functions = sframe_functions(bytes(data))
    place = functions[len(functions) // 2]
    data[place.offset + FUNCTION_INFO] |= 0xF
    path = folder / kind.paths[0].name
    path.write_bytes(data)
    return path, place


@pytest.mark.truth(
    recording=["sframe_program", "sframe_object", "sframe_archive"],
    path=["check", "records"],
    source="offset of a function entry: pyelftools' section headers and a walk over the section",
)
def test_sframe_names_the_function_that_cannot_be_read(kind: Kind, path: str, tmp_path: Path) -> None:
    copy, place = with_wrong_function(kind, tmp_path)
    if path == "check":
        assert [row for row in losses(kind.paths[0])[kind.paths[0]] if row["code"] != "SF075"] == []
        assert any(place.offset <= row["offset"] < place.end for row in losses(copy)[copy])
    assert run("records", copy, "--limit", "1").returncode == 1


@pytest.mark.truth(
    recording="sframe_program",
    path="repair",
    source="start addresses of functions: pyelftools' section headers and a walk over both sections",
)
def test_repair_of_a_program_leaves_out_the_function(kind: Kind, tmp_path: Path) -> None:
    copy, place = with_wrong_function(kind, tmp_path)
    done = run("repair", copy, "-o", tmp_path / "out", "--json")
    stated = json.loads(done.stdout)
    before, after = (addresses(path) for path in (copy, tmp_path / "out"))
    assert len(after) == len(before) - 1
    assert set(after) < set(before)
    assert [place.offset <= row["offset"] < place.end for row in stated["lost"]] == [True]
    assert done.returncode == 1, "its rows are lost"
    names = {one["kind"]: one["records_in"] - one["records_out"] for one in stated["differences"]}
    assert names["sframe_func_desc_entry"] == 1


def addresses(path: Path) -> list[int]:
    """Start addresses of functions, which count from the section or from their own field."""
    data = path.read_bytes()
    section = ELFFile(io.BytesIO(data)).get_section_by_name(".sframe")
    flags = data[section["sh_offset"] + 3]
    base = section["sh_addr"]
    return [one.kind + base + (one.offset - section["sh_offset"] if flags & 4 else 0) for one in sframe_functions(data)]


@pytest.mark.truth(
    recording=["sframe_object", "sframe_archive"],
    path="repair",
    source="the bytes of the file: sections with relocations are not repaired",
)
def test_repair_of_an_object_names_what_remains(kind: Kind, tmp_path: Path) -> None:
    copy, place = with_wrong_function(kind, tmp_path)
    done = run("repair", copy, "-o", tmp_path / "out", "--json")
    assert (tmp_path / "out").read_bytes() == copy.read_bytes()
    stated = json.loads(done.stdout)
    for rows in (stated["lost"], stated["remaining"]):
        assert [place.offset <= row["offset"] < place.end for row in rows] == [True]
    assert done.returncode == 1


@pytest.mark.truth(
    recording="sframe_program",
    path="repair",
    source="the wrong row of .plt.got that the corpus lists (MANIFEST): GNU ld takes it for another layout",
)
def test_repair_names_errors_that_remain(kind: Kind, tmp_path: Path) -> None:
    done = run("repair", kind.paths[0], "-o", tmp_path / "out", "--json")
    stated = json.loads(done.stdout)
    assert [row["code"] for row in stated["remaining"]] == ["SF075"]
    assert (stated["lost"], stated["changes"], done.returncode) == ([], [], 1)
    assert "`perfuse check" in done.stderr


@pytest.mark.truth(
    recording="sframe_archive",
    path=["check", "records", "repair", "info"],
    source="functions and rows of the first member that readelf printed; sizes in the archive's headers",
)
def test_an_archive_that_was_cut_is_not_whole(kind: Kind, path: str, tmp_path: Path) -> None:
    data = read(kind.paths[0])
    second = sframe_functions(data, 1)[0].offset
    copy = tmp_path / "cut.a"
    copy.write_bytes(data[:second])
    header = data.index(b"small_fp.o/")
    expected = num_records("sframe_object")
    if path == "check":
        (row,) = [one for one in losses(copy)[copy] if one["code"] == "SF067"]
        assert row["offset"] == header
        assert f"ends at {header + 60 + int(data[header + 48 : header + 58]):#x}" in row["message"]
        return
    options = {"repair": ["-o", tmp_path / "out"], "records": ["--limit", "0"]}.get(path, [])
    done = run(path, copy, "--json", *options)
    assert done.returncode == 1
    if path == "info":
        assert json.loads(done.stdout)["recordings"][0]["records"] == expected
    elif path == "records":
        assert Counter(json.loads(line)["name"] for line in done.stdout.splitlines()) == expected
    else:
        assert [row["offset"] for row in json.loads(done.stdout)["lost"]] == [header]
