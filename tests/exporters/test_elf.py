"""ELF files, read by readelf, llvm-dwarfdump and addr2line."""

import gzip
import io
import re
import struct
from collections import Counter
from pathlib import Path

import pytest
from tools import output_of

import perfuse
from needs import need
from perfuse.errors import ExportError
from perfuse.exporters import export

ROOT = Path(__file__).parents[2]
DUMP = ROOT / "tests" / "cli" / "testdata" / "jit-2345.dump"
POSTCARDS = ROOT / "examples" / "postcards" / "jit-32015.dump.gz"

REAL_DUMPS = 26
EM_X86_64 = 62


def test_every_dump_of_the_corpus(corpus: Path, tmp_path: Path) -> None:
    """readelf and LLVM's verifier find no errors, even for damaged dumps."""
    need("readelf", "llvm-dwarfdump")
    checked = 0
    dumps = [path for folder in ("produced", "fetched", "crafted") for path in (corpus / folder).glob("*.dump*")]
    for dump in sorted(dumps):
        profile = perfuse.fuse(dump)
        if not profile.images.pids():
            continue
        directory = tmp_path / dump.name
        export(profile, f"{directory}/", to="elf")
        for elf in directory.iterdir():
            output_of("readelf", "--all", "--wide", elf)
            assert "No errors." in output_of("llvm-dwarfdump", "--verify", elf), dump
        checked += dump.parent.name != "crafted"
    assert checked == REAL_DUMPS


@pytest.mark.parametrize("dump", [DUMP, POSTCARDS], ids=["small", "postcards"])
def test_each_symbol_is_its_code(dump: Path, tmp_path: Path) -> None:
    """Names and machine code, compared with the records of the dump."""
    need("readelf")
    elf = tmp_path / "jit.elf"
    export(perfuse.fuse(dump), elf)
    image = elf.read_bytes()
    table = output_of("readelf", "--symbols", "--wide", elf)
    row = re.compile(r"^ +\d+: ([0-9a-f]+) +(\d+|0x[0-9a-f]+) FUNC +LOCAL +DEFAULT +2 (.*)$", re.MULTILINE)
    symbols = [(int(at, 16), int(size, 0), name) for at, size, name in row.findall(table)]
    shown = Counter((name, image[at : at + size]) for at, size, name in symbols)
    loads = perfuse.open(dump).records(["JIT_CODE_LOAD"])
    recorded = Counter((" ".join(load.name_text.split()), load.code) for load in map(_Load, loads))
    assert shown == recorded


class _Load:
    def __init__(self, record: perfuse.Record) -> None:
        self.name_text = str(record.fields["name"])
        self.code = bytes(record.fields["code"])


def test_lines_are_those_of_the_table(corpus: Path, tmp_path: Path) -> None:
    """binutils and LLVM give each row of table line_rows its line; perf's own files are 0x40 off for this dump."""
    need("addr2line", "llvm-addr2line", "readelf")
    profile = perfuse.fuse(corpus / "produced" / "llvm14-mcjit.dump")
    elf = tmp_path / "jit.elf"
    export(profile, elf)
    table = output_of("readelf", "--symbols", "--wide", elf)
    places = {name: int(at, 16) for at, name in re.findall(r": ([0-9a-f]+) .* FUNC .* (\S+)$", table, re.MULTILINE)}
    rows = profile.sql("""
        SELECT linkage_name::VARCHAR, code_offset, parse_filename(l.path::VARCHAR), l.line
        FROM line_rows l JOIN code_objects USING (code_object_id) JOIN functions f USING (function_id)
        WHERE l.line > 0 ORDER BY code_object_id, code_offset
    """).fetchall()
    last = {(name, offset): f"{path}:{line}" for name, offset, path, line in rows}
    addresses = [hex(places[name] + offset) for name, offset in last]
    assert len(addresses) > 20
    for program in ("addr2line", "llvm-addr2line"):
        printed = output_of(program, "-s", "-e", elf, *addresses).splitlines()
        lines = [re.sub(r" \(.*", "", line.rpartition("/")[2]) for line in printed]
        assert lines == list(last.values()), program


def test_a_dump_without_a_machine_is_for_that_of_the_samples(corpus: Path, tmp_path: Path) -> None:
    produced = corpus / "produced"
    dump = produced / "cpython313.dump"
    assert perfuse.open(dump).header["elf_mach"] == 0
    export(perfuse.fuse(produced / "cpython313.perf.data", dump), tmp_path / "jit.elf")
    header = (tmp_path / "jit.elf").read_bytes()[:20]
    assert struct.unpack("<16xHH", header) == (3, EM_X86_64)


def test_several_processes(tmp_path: Path) -> None:
    both = perfuse.fuse(DUMP, POSTCARDS)
    first, second = both.images.pids()
    with pytest.raises(ExportError, match=f"2 have JIT code: {first}, {second}"):
        export(both, tmp_path / "jit.elf")
    export(both, tmp_path / "one.elf", pid=first)
    export(both, f"{tmp_path}/all/", to="elf")
    assert {path.name for path in tmp_path.iterdir()} == {"one.elf", "all"}
    assert {path.name for path in (tmp_path / "all").iterdir()} == {f"jit-{first}.elf", f"jit-{second}.elf"}
    one = (tmp_path / "one.elf").read_bytes()
    assert one == (tmp_path / "all" / f"jit-{first}.elf").read_bytes()
    # A pipe, a packed file and memory cannot be written to twice.
    stream = io.BytesIO(b"")
    export(both, stream, to="elf", pid=first)
    export(both, tmp_path / "one.elf.gz", to="elf", pid=first)
    assert stream.getvalue() == gzip.decompress((tmp_path / "one.elf.gz").read_bytes()) == one


def test_no_code(tmp_path: Path) -> None:
    perf_data = DUMP.with_name("perf.data").read_bytes()
    with pytest.raises(ExportError, match="no process has JIT code"):
        export(perfuse.fuse(perf_data), tmp_path / "jit.elf")
    assert list(tmp_path.iterdir()) == []


def test_the_written_files_are_returned(tmp_path: Path) -> None:
    need("readelf")
    profile = perfuse.fuse(POSTCARDS)
    (pid,) = profile.images.pids()
    path = tmp_path / "jit.elf"
    with path.open("xb") as file:
        written = profile.images.write({pid: file, pid + 1: file})
    (image,) = written.images
    assert image.pid == pid
    assert f"Build ID: {image.build_id}" in output_of("readelf", "--notes", path)
    assert image.size_bytes == path.stat().st_size
    assert image.num_functions == profile.tables["code_objects"].num_rows
