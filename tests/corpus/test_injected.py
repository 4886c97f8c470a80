"""perf itself names every JIT address as perfuse does, in what `convert --to perf-data` writes, by one ELF file.

That perfuse is right is what test_perf_answer shows for recordings that perf can inject. Here are also those it
refuses (no `-k mono`, stray header flags, a newer perf's file) or passes over (pid namespaces, JSC's file names).
"""

import subprocess
from collections import Counter
from itertools import zip_longest
from pathlib import Path

import pytest

import perfuse
from needs import program_at

from . import named_chains, perf_script
from .named_chains import NamedFrame
from .perf_script import PerfFrame
from .test_perf_answer import RETURN_ADDRESS, printed_name

NUM_JIT_FRAMES = {
    "erlang27": 217,
    "jsc2.52": 1404,
    "jsc2.54-source": 459,
    "llvm14-mcjit": 898,
    "llvm19-orc": 352,
    "node20": 10757,
    "node20-noclock": 10897,
    "node20-nsz": 8913,
    "node24": 10498,
    "node24-5k": 19284,
    "openjdk17-jvmti": 19379,
    "postgres15": 176,
    "qemu10-aarch64": 250,
    "wasmtime50": 3397,
}
"""Number of frames in JIT code. It shows that frames were compared."""

EXCEPTIONS = {
    "erlang27": {RETURN_ADDRESS: 1},
    "jsc2.52": {RETURN_ADDRESS: 1},
    "jsc2.54-source": {RETURN_ADDRESS: 2},
    "node24": {RETURN_ADDRESS: 1},
}
"""Number of frames for which perf's answer differs, by reason."""


@pytest.fixture(scope="session")
def perf() -> str:
    return program_at("perf")


@pytest.mark.truth(
    recording=["perf_node", "perf_erlang", "perf_llvm", "perf_openjdk", "perf_postgres", "perf_jsc"],
    path="convert:perf-data",
    source="perf script of the converted file",
)
@pytest.mark.parametrize("stem", NUM_JIT_FRAMES)
def test_perf_names_every_frame(stem: str, perf: str, jitdump_corpus: Path, tmp_path: Path) -> None:
    produced = jitdump_corpus / "produced"
    recording = produced / f"{stem}.perf.data"
    dump = next(path for path in (produced / f"{stem}.dump", produced / f"{stem}.dump.gz") if path.exists())
    written = tmp_path / "out.perf.data"
    perfuse.fuse(recording, dump).export(written)
    (elf,) = tmp_path.glob("out.perf.data.jit-*.elf")
    assert {path.name for path in tmp_path.iterdir()} == {written.name, elf.name}

    script = tmp_path / "script.txt"
    fields = "comm,pid,tid,time,event,ip,sym,symoff,dso"
    with script.open("wb") as out:
        command = [perf, "script", "--no-inline", "-i", written, "-F", fields]
        subprocess.run(command, stdout=out, check=True)
    theirs = {(x.pid, x.tid, x.time_us): x.frames for x in perf_script.read(script)}
    ours = {(x.pid, x.tid, x.time_us): x.frames for x in named_chains.read(recording, dump)}
    assert ours.keys() == theirs.keys()
    assert sum(frame.linkage_name is not None for x in ours.values() for frame in x) == NUM_JIT_FRAMES[stem]

    ends = _ends(dump)
    differences = Counter[str]()
    for key, frames in theirs.items():
        for position, (printed, mine) in enumerate(zip_longest(frames, ours[key])):
            if not _agree(printed, mine, str(elf)):
                differences[_reason(printed, mine, position, ends)] += 1
    assert differences == EXCEPTIONS.get(stem, {})


def _ends(dump: Path) -> set[int]:
    """The first address after each code object."""
    query = "SELECT DISTINCT start_address + size_bytes FROM code_objects"
    return {end for (end,) in perfuse.fuse(dump).sql(query).fetchall()}


def _agree(printed: PerfFrame | None, mine: NamedFrame | None, elf: str) -> bool:
    name = None if mine is None else mine.linkage_name
    if printed is None or printed.dso != elf:
        return name is None
    return name is not None and printed.symbol is not None and printed_name(name, printed.symbol)


def _reason(printed: PerfFrame | None, mine: NamedFrame | None, position: int, ends: set[int]) -> str:
    # The return address of a call at the end of a function is in another function, or in none with a name.
    if position > 0 and printed is not None and (printed.symbol_offset == 0 or printed.ip in ends):
        return RETURN_ADDRESS
    return f"unexplained: perf {printed}, perfuse {mine}"
