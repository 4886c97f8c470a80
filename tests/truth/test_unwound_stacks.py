"""Programs recorded with copies of their stacks: unwound as perf does, and to the depth that their source defines."""

import gzip
import struct
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import perf_chains
import perfuse as pf
from needs import need

from .producers import PROGRAMS, run_tool

RECORDED = Path(__file__).parent / "recorded"
PAGE_BYTES = 4096
DEPTH = 9
COMPILED = {
    "eh_frame": ("-O2", "-fomit-frame-pointer"),
    "sframe": ("-O2", "-fomit-frame-pointer", "-Wa,--gsframe"),
    "frame_pointer": (
        "-O1",
        "-fno-omit-frame-pointer",
        "-fno-optimize-sibling-calls",
        "-fno-asynchronous-unwind-tables",
    ),
    "debug_frame": ("-O2", "-g", "-fomit-frame-pointer", "-fno-asynchronous-unwind-tables"),
}
"""Unwind information by way of compiling."""


TRIES, LEAST_COPIES = 10, 200
"""Buffers have 32 copies of 16 KiB, which is what comes in 32 ms; a program is busy for longer than 250."""

Compiled = Callable[[str], Path]


def record(directory: Path, *command: str | Path, dump_bytes: int = 16384) -> Path:
    """Records a command with copies of its stacks; again where perf was too late to read most of them."""
    need("perf")
    perf = ["perf", "record", "-qN", "-e", "cpu-clock", "-F", "997", "-k", "mono"]
    for _ in range(TRIES):
        run_tool([*perf, "--call-graph", f"dwarf,{dump_bytes}", "-o", "perf.data", *command], directory)
        if (directory / "perf.data").stat().st_size > LEAST_COPIES * dump_bytes:
            break
    return directory / "perf.data"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """Compiles the program in one of the ways; returns its directory."""

    @cache
    def compile_it(how: str) -> Path:
        need("gcc")
        directory = tmp_path_factory.mktemp(how)
        run_tool(["gcc", *COMPILED[how], PROGRAMS / "recursion.c", "-o", "recursion"], directory)
        return directory

    return compile_it


def output(*command: str | Path) -> str:
    """What a command prints."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def perf_script(perf_data: Path) -> dict[int, perf_chains.Chain]:
    """perf's own answer."""
    fields = ["-F", "comm,time,ip,sym,dso", "--no-inline", "--ns"]
    command = ["perf", "script", "-i", perf_data, *fields]
    return perf_chains.read(output(*command))


SAMPLE, RECORD_HEADER = 9, struct.Struct("<IHH")
DATA_SECTION = 40
"""Where the header of perf.data has the offset and the size of its records."""


def last_words(recording: bytes, copy_bytes: int) -> dict[int, int]:
    """The last word of each whole copy of a stack, by time, read without the decoder."""
    begin, size = struct.unpack_from("<QQ", recording, DATA_SECTION)
    copy_size = struct.pack("<Q", copy_bytes)
    found = {}
    while size > 0:
        kind, _, record_bytes = RECORD_HEADER.unpack_from(recording, begin)
        record = recording[begin : begin + record_bytes]
        if kind == SAMPLE:
            _ip, _pid, _tid, ts = struct.unpack_from("<QIIQ", record, RECORD_HEADER.size)
            at = record.find(copy_size)
            # The copy is between its size and the size that the kernel could copy.
            while at >= 0 and not record.startswith(copy_size, at + 8 + copy_bytes):
                at = record.find(copy_size, at + 1)
            if at >= 0:
                (found[ts],) = struct.unpack_from("<Q", record, at + copy_bytes)
        begin, size = begin + record_bytes, size - record_bytes
    return found


def recursions(profile: pf.Profile) -> list[tuple[str, int]]:
    """For each sample in `spin`: the recursive function below it in the stack, and its depth."""
    return profile.sql("""
        WITH RECURSIVE up AS (
            SELECT sample_id, stack_id FROM samples
            UNION ALL
            SELECT sample_id, parent_stack_id FROM up JOIN stacks USING (stack_id) WHERE parent_stack_id IS NOT NULL),
        named AS (
            SELECT sample_id, name::VARCHAR AS name, unwound_by::VARCHAR AS found_by
            FROM up JOIN stacks USING (stack_id) JOIN frames USING (frame_id) JOIN functions USING (function_id)),
        within AS (SELECT sample_id FROM named WHERE name = 'spin' AND found_by = 'sampled')
        SELECT count(*) FILTER (name = 'level'), count(*) FILTER (name = 'compare'), count(*) FILTER (name = 'main')
        FROM named JOIN within USING (sample_id) GROUP BY sample_id""").fetchall()


@pytest.mark.truth(recording="perf_stacks", path="api:Profile.sql", source="depth of the program's recursion")
@pytest.mark.parametrize("how", COMPILED)
def test_stacks_have_the_depth_of_the_source(compiled: Compiled, how: str) -> None:
    profile = pf.fuse(record(compiled(how), "./recursion"))
    found = recursions(profile)
    assert len(found) > 100
    # A leaf without a frame of its own hides its caller from frame pointers.
    assert set(found) == {(DEPTH - (how == "frame_pointer"), 1, 1)}
    assert profile.unwinding is not None
    assert profile.unwinding.frames[how] >= len(found) * DEPTH


@pytest.mark.truth(recording="perf_stacks", path="api:Profile.sql", source="perf script")
@pytest.mark.parametrize("how", ["eh_frame", "sframe"])
@pytest.mark.parametrize("dump_bytes", [1024, 16384])
def test_stacks_are_those_of_perf(compiled: Compiled, how: str, dump_bytes: int) -> None:
    """perf follows neither `.debug_frame` here nor, into libc, frame pointers.

    perf 6.1 does not read the last word of a copy, though it is whole (`access_mem`: `addr + sizeof(word) >= end`).
    """
    perf_data = record(compiled(how), "./recursion", dump_bytes=dump_bytes)
    profile = pf.fuse(perf_data)
    ours, theirs = perf_chains.of(profile), perf_script(perf_data)
    assert ours.keys() == theirs.keys()
    different = {ts: (ours[ts], theirs[ts]) for ts in ours if ours[ts] != theirs[ts]}
    words = last_words(perf_data.read_bytes(), dump_bytes)
    for ts in [ts for ts in different if ours[ts][:-1] == theirs[ts]]:
        if (ours[ts][-1] + 1 - words[ts]) % PAGE_BYTES == 0:
            del different[ts]
    assert different == {}
    unwinding = profile.unwinding
    assert unwinding is not None
    if dump_bytes == 1024:
        assert (unwinding.cut_bytes, unwinding.stops["cut"] > 100) == (1024, True)
    assert ("FU009" in {found.code for found in profile.diagnostics}) == (dump_bytes == 1024)


@pytest.mark.truth(
    recording="perf_stacks",
    path=["api:Profile.sql", "api:Profile.unwinding"],
    source="return addresses in the copies of the stack",
)
def test_a_return_address_that_ends_a_copy_is_followed(tmp_path: Path) -> None:
    """Frames of 64 bytes in copies of 200: each copy has four return addresses, and ends with the last one."""
    (tmp_path / "perf.data").write_bytes(gzip.decompress((RECORDED / "stack_edge/perf.data.gz").read_bytes()))
    words = last_words((tmp_path / "perf.data").read_bytes(), 200)
    profile = pf.fuse(tmp_path / "perf.data", symbol_dirs=[RECORDED / "stack_edge"])
    chains = profile.sql("""
        WITH RECURSIVE up AS (
            SELECT ts_ns, stack_id FROM samples
            UNION ALL
            SELECT ts_ns, parent_stack_id FROM up JOIN stacks USING (stack_id) WHERE parent_stack_id IS NOT NULL)
        SELECT ts_ns, list(name::VARCHAR ORDER BY depth DESC), first(address ORDER BY depth)
        FROM up JOIN stacks USING (stack_id) JOIN frames USING (frame_id) JOIN functions USING (function_id)
        GROUP BY ts_ns""").fetchall()
    assert {ts: outermost for ts, _, outermost in chains} == words
    assert {tuple(names) for _, names, _ in chains} == {("spin", "level", "level", "level", "level")}
    assert profile.unwinding is not None
    assert (profile.unwinding.cut_bytes, profile.unwinding.stops) == (200, {"cut": len(words)})


@pytest.mark.truth(recording="perf_stacks", path="api:Profile.sql", source="depth of the program's recursion")
@pytest.mark.parametrize("how", ["eh_frame", "sframe", "debug_frame"])
def test_a_signal_handler_is_above_the_interrupted_function(compiled: Compiled, how: str) -> None:
    found = recursions(pf.fuse(record(compiled(how), "./recursion", "signal")))
    assert len(found) > 100
    assert set(found) == {(DEPTH, 1, 1)}


@pytest.mark.truth(recording="perf_stacks", path="api:Profile.sql", source="nm")
def test_the_code_that_a_signal_handler_returns_to_has_its_name(tmp_path: Path) -> None:
    need("gcc", "nm")
    run_tool(["gcc", *COMPILED["eh_frame"], "-static", PROGRAMS / "recursion.c", "-o", "recursion"], tmp_path)
    symbols = output("nm", tmp_path / "recursion").split()
    address = int(symbols[symbols.index("__restore_rt") - 2], 16)
    found = pf.fuse(record(tmp_path, "./recursion", "signal")).sql(f"""
        WITH RECURSIVE up AS (
            SELECT stack_id FROM samples
            UNION ALL
            SELECT parent_stack_id FROM up JOIN stacks USING (stack_id) WHERE parent_stack_id IS NOT NULL)
        SELECT name::VARCHAR, relative_address, count(*) > 100
        FROM up JOIN stacks USING (stack_id) JOIN frames USING (frame_id) LEFT JOIN functions USING (function_id)
        -- A sample may be in that function, after its first instruction.
        WHERE relative_address = {address} OR name = '__restore_rt' AND relative_address < {address} GROUP BY 1, 2""")
    assert found.fetchall() == [("__restore_rt", address, True)]


HEADER_ARCH = b"x86_64\0"
NUM_REGISTERS = 20
"""In the mask 0xff0fff of x86-64."""


@pytest.mark.truth(recording="perf_stacks", path="api:Profile.unwinding", source="samples, counted in the file")
@pytest.mark.parametrize("changed", ["abi", "architecture"])
def test_stacks_of_machines_that_are_not_supported_are_counted(tmp_path: Path, changed: str) -> None:
    recording = bytearray(gzip.decompress((RECORDED / "stack_edge/perf.data.gz").read_bytes()))
    copies = last_words(bytes(recording), 200)
    if changed == "abi":
        # Before the registers and the size of the copy: 2 for 64-bit code, 1 for 32-bit.
        at = 0
        while (at := recording.find(struct.pack("<Q", 200), at + 1)) >= 0:
            abi = at - 8 * (NUM_REGISTERS + 1)
            if recording[abi : abi + 8] == struct.pack("<Q", 2):
                recording[abi] = 1
    else:
        at = recording.rindex(HEADER_ARCH)
        recording[at : at + len(HEADER_ARCH)] = b"mips64\0"
    (tmp_path / "perf.data").write_bytes(recording)
    profile = pf.fuse(tmp_path / "perf.data", symbol_dirs=[RECORDED / "stack_edge"])
    assert profile.unwinding is not None
    assert (profile.unwinding.num_stacks, profile.unwinding.stops) == (
        len(copies),
        {"unsupported_machine": len(copies)},
    )
    (found,) = (one for one in profile.diagnostics if one.code == "FU010")
    assert (found.count, "unsupported machine" in found.message) == (len(copies), True)


@pytest.mark.truth(recording="perf_node", path="api:Profile.sql", source="perf script after perf inject")
def test_v8_is_unwound_through_its_own_records_and_frame_pointers(tmp_path: Path) -> None:
    need("node")
    script = tmp_path / "down.js"
    script.write_text(
        "function leaf(n) { let s = 0; for (let i = 0; i < 2000; i++) s = (s * 31 + i * n) | 0; return s; }\n"
        "function down(d, n) { return d === 0 ? leaf(n) : down(d - 1, n + 1) + 1; }\n"
        "let total = 0; for (let i = 0; i < 20000; i++) total = (total + down(12, i)) | 0;\n"
        "console.log(total);\n",
        encoding="utf-8",
    )
    node = ["node", "--perf-prof", "--perf-prof-unwinding-info", script]
    perf_data = record(tmp_path, *node, dump_bytes=32768)
    profile = pf.fuse(perf_data, *tmp_path.glob("jit-*.dump"))
    run_tool(["perf", "inject", "--jit", "-i", "perf.data", "-o", "injected.data"], tmp_path)
    ours, theirs = perf_chains.of(profile), perf_script(tmp_path / "injected.data")
    different = [ts for ts in theirs if ours[ts] != theirs[ts]]
    assert len(theirs) > 100
    assert len(different) <= len(theirs) / 100, [(ours[ts], theirs[ts]) for ts in different]
    assert profile.unwinding is not None
    assert {"eh_frame", "jitdump", "frame_pointer"} <= profile.unwinding.frames.keys()
