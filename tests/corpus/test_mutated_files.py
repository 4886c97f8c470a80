"""Copies of recordings with a few changed bytes are decoded as LLVM's and GNU's readers and pyelftools decode them,
where these do not refuse them or crash; after a repair LLVM's and GNU's accept each.

The bytes are chosen with the seed of property tests, `pytest --hypothesis-seed=N`; PERFUSE_MUTATIONS is their number.
"""

import os
import random
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elftools.dwarf.callframe import FDE
from elftools.elf.elffile import ELFFile

import perfuse
from needs import program_at
from perfuse import sframe
from perfuse import xray as xray_log

LOGS = ["fdr/small-v5", "fdr/typed-v5", "fdr/wrap-v5", "fdr/lz4-small-v5", "fdr-old/small_nc-v3", "fdr-old/small_nc-v4"]
PROGRAMS = ["small_O0.elf", "small_fp.elf", "small_nopie.elf", "small_omitfp.elf", "exc_omitfp.elf", "nest.so"]
PERF_DATA = Path(__file__).parents[2] / "crates" / "formats" / "perf_data" / "src" / "testdata"
RECORDINGS = ["fork.perf.data", "switches.perf.data", "group.perf.data"]
XRAY_HEADER_BYTES = 32
PERF_HEADER_BYTES = 104
SFRAME_MAGIC_BYTES = 4

EVENT = re.compile(rb"cpu: \d+, thread: -?\d+, process: -?\d+, kind: [a-z]+-event, tsc: \d+")
SIZE = re.compile(rb"size = (-?\d+) bytes")


def num_mutations() -> int:
    return int(os.environ.get("PERFUSE_MUTATIONS", "40"))


def mutated(data: bytes, begin: int, end: int, choice: random.Random) -> bytes:
    """A copy with one to three changed bytes in a range."""
    changed = bytearray(data)
    for _ in range(choice.randint(1, 3)):
        at = choice.randrange(begin, end)
        bit = changed[at] ^ (1 << choice.randrange(8))
        changed[at] = choice.choice([bit, choice.randrange(256), 0, 1, 0x7F, 0x80, 0xFF])
    return bytes(changed)


def records(yaml: bytes) -> Counter[bytes]:
    """The records of llvm-xray's YAML. It gives events the function of the record before, and raw bytes."""
    found = Counter[bytes]()
    for record in yaml.split(b"\n  - { type"):
        event = EVENT.search(record)
        found[event.group() if event else record.strip()] += 1
    return found


def as_unsigned(text: bytes) -> bytes:
    """readelf 2.40 prints sizes of functions as signed numbers."""
    return SIZE.sub(lambda size: b"size = %d bytes" % (int(size[1]) % 2**32), text).strip()


def test_xray_logs_are_decoded_as_llvm_xray_does(
    xray_corpus: Path, llvm_xray: str, tmp_path: Path, choice: random.Random
) -> None:
    log, out = tmp_path / "log.xray", tmp_path / "log.yaml"
    num_same = 0
    for _ in range(num_mutations()):
        name = choice.choice(LOGS)
        data = (xray_corpus / f"{name}.xray").read_bytes()
        log.write_bytes(mutated(data, XRAY_HEADER_BYTES, len(data), choice))
        theirs = subprocess.run([llvm_xray, "convert", "-f", "yaml", log], capture_output=True, check=False)
        if theirs.returncode == 0:
            xray_log.convert(log, output=out, yaml=True)
            assert records(out.read_bytes()) == records(theirs.stdout), kept(log)
            num_same += 1
    assert num_same > num_mutations() // 4


def test_sframe_sections_are_decoded_as_readelf_does(
    sframe_corpus: Path, tmp_path: Path, choice: random.Random
) -> None:
    """A difference is one of rows which `check` reports: readelf prints what it finds after them."""
    readelf = program_at("readelf")
    program = tmp_path / "program.elf"
    num_same = 0
    for _ in range(num_mutations()):
        source = sframe_corpus / "v1" / "x86_64" / choice.choice(PROGRAMS)
        begin, size = section(source)
        program.write_bytes(mutated(source.read_bytes(), begin + SFRAME_MAGIC_BYTES, begin + size, choice))
        theirs = subprocess.run([str(readelf), "--sframe", program], capture_output=True, check=False, timeout=600)
        if theirs.returncode != 0 or theirs.stderr:
            continue
        if as_unsigned(b"".join(readelf_text(program))) == as_unsigned(theirs.stdout):
            num_same += 1
        else:
            assert any(one.severity == "error" for one in perfuse.open(program).check()), kept(program)
    assert num_same > num_mutations() // 8


def repaired(source: Path, folder: Path) -> Path | None:
    """The file after a repair; None where it cannot be read."""
    out = folder / "repaired"
    out.unlink(missing_ok=True)
    try:
        perfuse.repair(source, out)
    except perfuse.UnreadableInput:
        return None
    return out


def test_llvm_xray_accepts_repaired_logs(
    xray_corpus: Path, llvm_xray: str, tmp_path: Path, choice: random.Random
) -> None:
    log = tmp_path / "log.xray"
    num_accepted = 0
    for _ in range(num_mutations()):
        data = (xray_corpus / f"{choice.choice(LOGS)}.xray").read_bytes()
        log.write_bytes(mutated(data, XRAY_HEADER_BYTES, len(data), choice))
        out = repaired(log, tmp_path)
        if out is not None:
            done = subprocess.run([llvm_xray, "fdr-dump", "--verify", out], capture_output=True, check=False)
            assert done.returncode == 0, (kept(log), done.stderr)
            num_accepted += 1
    assert num_accepted > num_mutations() // 2


def test_readelf_accepts_repaired_sections(sframe_corpus: Path, tmp_path: Path, choice: random.Random) -> None:
    readelf = program_at("readelf")
    program = tmp_path / "program.elf"
    num_accepted = 0
    for _ in range(num_mutations()):
        source = sframe_corpus / "v1" / "x86_64" / choice.choice(PROGRAMS)
        begin, size = section(source)
        program.write_bytes(mutated(source.read_bytes(), begin + SFRAME_MAGIC_BYTES, begin + size, choice))
        out = repaired(program, tmp_path)
        if out is not None:
            done = subprocess.run([readelf, "--sframe", out], capture_output=True, check=False, timeout=600)
            assert (done.returncode, done.stderr) == (0, b""), (kept(program), done.stderr)
            num_accepted += 1
    assert num_accepted > num_mutations() // 2


def test_perf_accepts_repaired_recordings(tmp_path: Path, choice: random.Random) -> None:
    """Records of kinds that perf does not know are kept, and reported: a newer perf may know them."""
    perf = program_at("perf")
    recording = tmp_path / "perf.data"
    num_accepted = 0
    for _ in range(num_mutations()):
        data = (PERF_DATA / choice.choice(RECORDINGS)).read_bytes()
        recording.write_bytes(mutated(data, PERF_HEADER_BYTES, len(data), choice))
        out = repaired(recording, tmp_path)
        if out is not None:
            done = subprocess.run([perf, "script", "-D", "-i", out], capture_output=True, check=False, timeout=600)
            if done.returncode != 0:
                assert "PD006" in {one.code for one in perfuse.open(out).check()}, (kept(recording), done.stderr)
            num_accepted += done.returncode == 0
    assert num_accepted > num_mutations() // 2


def test_rules_of_changed_eh_frame_are_those_of_pyelftools(
    sframe_corpus: Path, tmp_path: Path, choice: random.Random
) -> None:
    """The CFA of each function that both decode and that no other overlaps, at each address where a row starts."""
    program, made = tmp_path / "program.elf", tmp_path / "made.elf"
    num_same = 0
    for _ in range(num_mutations() // 2):
        source = sframe_corpus / "v1" / "x86_64" / choice.choice(PROGRAMS)
        begin, size = section(source, ".eh_frame")
        program.write_bytes(mutated(source.read_bytes(), begin, begin + size, choice))
        theirs = cfa_of_pyelftools(program)
        try:
            sframe.from_eh_frame(program).section.write_into(program, made)
        except perfuse.UnreadableInput:
            continue
        for function, rows in cfa_of_perfuse(made).items():
            if function in theirs:
                at = sorted({address for address, _ in [*rows, *theirs[function]]})
                assert [cfa_at(rows, one) for one in at] == [cfa_at(theirs[function], one) for one in at], kept(program)
                num_same += 1
    assert num_same > num_mutations()


RETURN_ADDRESS = 16

# Address at which a row starts, and register (DWARF's number) and offset of its CFA; none in an outermost frame.
Rows = list[tuple[int, tuple[int, int] | None]]


def cfa_at(rows: Rows, address: int) -> tuple[int, int] | None:
    return [cfa for start, cfa in rows if start <= address][-1]


def cfa_of_perfuse(program: Path) -> dict[tuple[int, int], Rows]:
    """Rows of each function, by its start and size, without PLTs, whose rows repeat."""
    tables = perfuse.open(program).tables
    functions = tables["unwind_functions"].to_arrow().to_struct_array().to_pylist()
    starts = {one["unwind_function_id"]: one for one in functions if one["repeat_bytes"] is None}
    found: dict[tuple[int, int], Rows] = {}
    for row in tables["unwind_rows"].to_arrow().to_struct_array().to_pylist():
        if function := starts.get(row["unwind_function_id"]):
            start = function["start_address"]
            cfa = None if row["outermost"] else (dwarf_register(row["cfa_base"]), row["cfa_offset"])
            found.setdefault((start, function["size_bytes"]), []).append((start + row["start_offset"], cfa))
    return found


def cfa_of_pyelftools(program: Path) -> dict[tuple[int, int], Rows]:
    """The same of pyelftools; nothing where it refuses the section."""
    with program.open("rb") as file:
        try:
            entries = [one for one in ELFFile(file).get_dwarf_info().EH_CFI_entries() if isinstance(one, FDE)]
            decoded = [(one.header, one.get_decoded().table) for one in entries]
        except Exception:  # it has no error of its own for most damage
            return {}
    ranges = [(one["initial_location"], one["initial_location"] + one["address_range"]) for one, _ in decoded]
    found: dict[tuple[int, int], Rows] = {}
    for (start, end), (_, table) in zip(ranges, decoded, strict=True):
        is_alone = sum(begin < end and start < other for begin, other in ranges) == 1
        if is_alone and all(start <= row["pc"] < end and row["cfa"].reg is not None for row in table):
            rows = [(row["pc"], None if is_outermost(row) else (row["cfa"].reg, row["cfa"].offset)) for row in table]
            if rows and rows[0][0] == start:
                found[start, end - start] = rows
    return found


def dwarf_register(name: str) -> int:
    return {"sp": 7, "fp": 6}.get(name) or int(name.removeprefix("r"))


def is_outermost(row: dict[Any, Any]) -> bool:
    rule = row.get(RETURN_ADDRESS)
    return rule is not None and rule.type == "UNDEFINED"


def readelf_text(program: Path) -> Iterator[bytes]:
    return iter(sframe.open(program).readelf("readelf-2.40"))


def section(program: Path, name: str = ".sframe") -> tuple[int, int]:
    """Offset and size of a section."""
    with program.open("rb") as file:
        found = ELFFile(file).get_section_by_name(name)
        assert found is not None
        return found["sh_offset"], found["sh_size"]


def kept(path: Path) -> str:
    return f"the readers disagree about {path}"
