"""A repair changes nothing that it does not state, and nothing in a file that it wrote; so does a conversion."""

import os
import struct
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

import perf_crafting as crafting
import perfuse as pf
from perf_crafting import Attribute, PerfFile
from perfuse import mono as mono_log
from perfuse import xray as xray_log
from perfuse.cli import run
from perfuse.errors import ExportError, UnreadableInput

ROOT = Path(__file__).parents[2]
BESIDE = ROOT.parent / "shared" / "corpus"
CORPUS = Path(os.environ.get("PERFUSE_CORPUS", BESIDE))
MAX_BYTES = 200_000
SIZE_OFFSET = 32
"""Of `sh_size` in a section header."""
PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ")


def recordings(kind: str) -> list[Path]:
    """Small recordings of a format in the corpus and among the fixtures."""
    folders = [CORPUS / kind, CORPUS / "found" / kind, ROOT / "crates" / "formats" / kind / "src" / "testdata"]
    files = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
    return [path for path in files if path.stat().st_size < MAX_BYTES]


def is_packed(path: Path) -> bool:
    return path.read_bytes().startswith(PACKED)


@pytest.mark.parametrize("kind", ["jitdump", "mono", "sframe", "xray", "perf_data"])
def test_a_repaired_file_is_not_changed(kind: str, tmp_path: Path) -> None:
    once, twice = tmp_path / "once", tmp_path / "twice"
    num_changed = num = 0
    for path in recordings(kind):
        try:
            if pf.open(path).format == "collapsed":
                continue
        except pf.PerfuseError:
            continue
        once.unlink(missing_ok=True)
        twice.unlink(missing_ok=True)
        first = pf.repair(path, once)
        assert first.changes or once.read_bytes() == path.read_bytes() or is_packed(path), path
        second = pf.repair(once, twice)
        assert not second.changes, path
        assert once.read_bytes() == twice.read_bytes(), path
        known = {one.code for one in pf.open(path).check()}
        errors = {one.code for one in first.remaining if one.severity == "error"}
        assert errors <= known | {one.code for one in first.lost}, path
        num += 1
        num_changed += bool(first.changes)
    assert num >= 4
    # The fixtures of perf.data have no damage.
    assert num_changed > 0 or kind == "perf_data" or not CORPUS.is_dir()


@pytest.mark.parametrize("kind", ["mono", "xray"])
def test_a_converted_log_is_not_changed(kind: str, tmp_path: Path) -> None:
    convert = {"mono": mono_log.convert, "xray": xray_log.convert}[kind]
    once, twice = tmp_path / "once", tmp_path / "twice"
    num = 0
    for path in recordings(kind):
        try:
            if pf.open(path).format != kind:
                continue
            convert(path, output=once)
        except (UnreadableInput, ExportError):
            continue
        written = convert(once, output=twice)
        assert once.read_bytes() == twice.read_bytes(), path
        if kind == "xray":
            assert "copies" not in written.unsupported, path
        num += 1
    assert num > 10


def test_an_error_names_the_file_of_the_user(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stacks, out = tmp_path / "stacks.txt", tmp_path / "out"
    stacks.write_text("main;f 1\n", encoding="utf-8")
    with pytest.raises(ExportError, match=f"^cannot repair {stacks}: collapsed stacks files cannot be repaired"):
        pf.repair(stacks, out)
    assert run(["repair", str(stacks), "-o", str(out)]) != 0
    assert str(stacks) in capsys.readouterr().err
    assert not out.exists()


def test_records_in_compressed_ones_have_sizes_of_their_kind(tmp_path: Path) -> None:
    """perf stops at a record of the kernel with a size that 8 does not divide, in compressed records too."""
    clock = Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME)
    before, after = (crafting.sample(clock, ip=0x1000, pid=7, tid=7, time=time).encoded() for time in (1000, 2000))
    odd = struct.pack("<IHHII", crafting.COMM, 0, 110, 7, 7) + b"crafted".ljust(70, b"\0") + clock.sample_id(7, 7, 1500)
    content = before + odd.ljust(110, b"\0") + after
    # A frame of zstd with one block of plain bytes: a segment of 1 byte's length, the last block.
    frame = b"\x28\xb5\x2f\xfd\x20" + bytes([len(content)]) + struct.pack("<I", len(content) << 3 | 1)[:3] + content
    packed = crafting.Record(crafting.COMPRESSED2, 0, struct.pack("<Q", len(frame)) + frame)
    short = crafting.Record(crafting.MMAP2, 2, b"")
    damaged = PerfFile([clock], [short, packed]).write(tmp_path / "damaged")
    once, twice = tmp_path / "once", tmp_path / "twice"
    assert sorted(one.code for one in pf.repair(damaged, once).changes) == ["PD010", "PD012"]
    assert {one.code for one in pf.open(once).check()} == {"PD007"}
    assert not pf.repair(once, twice).changes
    assert once.read_bytes() == twice.read_bytes()
    assert pf.fuse(once).sql("SELECT count(*) FROM samples").fetchall() == [(1,)]


def test_a_section_whose_size_is_wrong_leaves_the_rest_of_the_file(sframe_corpus: Path, tmp_path: Path) -> None:
    """Of a section that reaches to the end of the file, only its own bytes and its headers change."""
    whole = sframe_corpus / "bad" / "v3_flags_ff.elf"
    data = bytearray(whole.read_bytes())
    with whole.open("rb") as file:
        program = ELFFile(file)
        (number,) = (at for at, one in enumerate(program.iter_sections()) if one.name == ".sframe")
        section = program.get_section(number)
        header = program["e_shoff"] + number * program["e_shentsize"]
    begin, end = section["sh_offset"], section["sh_offset"] + section["sh_size"]
    data[header + SIZE_OFFSET + 6] = 0xC1
    damaged, out = tmp_path / "damaged.elf", tmp_path / "out.elf"
    damaged.write_bytes(data)
    assert pf.repair(damaged, out).changes
    repaired = out.read_bytes()
    assert repaired[end : header + SIZE_OFFSET] == data[end : header + SIZE_OFFSET]
    assert repaired[header + SIZE_OFFSET + 8 :] == data[header + SIZE_OFFSET + 8 :]
    with out.open("rb") as file:
        found = ELFFile(file).get_section_by_name(".sframe")
        assert found is not None
        assert found["sh_offset"] == begin
        assert found["sh_size"] <= section["sh_size"]
