"""The function of every sampled JIT address is perf's own answer, except where perf is known to be wrong.

perf's answer is `expected/*.script.txt.gz`, printed after `perf inject --jit`. Every difference has to have
one of the reasons below, and as often as listed here for the recording.
"""

import re
from collections import Counter
from itertools import zip_longest
from pathlib import Path

import pytest

from . import named_chains, perf_script
from .named_chains import NamedFrame
from .perf_script import PerfFrame

RETURN_ADDRESS = "perf looks up a return address unchanged: after a call at the very end that is the next function"

NUM_JIT_FRAMES = {
    "cpython313": 0,
    "cpython315-dwarf": 420,
    "erlang27": 217,
    "llvm14-mcjit": 898,
    "node20": 10757,
    "node24": 10499,
    "node24-5k": 19284,
    "openjdk17-jvmti": 19379,
    "postgres15": 176,
    "qemu10-aarch64": 250,
    "wasmtime50": 3397,
}
"""Number of frames perf finds in JIT code. It shows that the parser of perf's text misses none."""

EXCEPTIONS = {"erlang27": {RETURN_ADDRESS: 1}, "node24": {RETURN_ADDRESS: 1}}
"""Number of frames for which perf's answer differs, by reason."""

_JAVA_METHOD = re.compile(r"L(?P<type>[^;]+);(?P<method>[^(]+)\(")

STACK_DUMPS = {"cpython315-dwarf"}
"""Recorded with `--call-graph dwarf`: perf unwinds copied stacks, so only the sampled address is compared."""


@pytest.mark.truth(
    recording=["perf_node", "perf_erlang", "perf_llvm", "perf_openjdk", "perf_postgres", "perf_cpython"],
    path="api:Profile.sql",
    source="perf inject and perf script",
)
@pytest.mark.parametrize("stem", NUM_JIT_FRAMES)
def test_every_jit_frame(stem: str, jitdump_corpus: Path) -> None:
    produced = jitdump_corpus / "produced"
    dump = next(path for path in (produced / f"{stem}.dump", produced / f"{stem}.dump.gz") if path.exists())
    printed = list(perf_script.read(jitdump_corpus / "expected" / f"{stem}.script.txt.gz"))
    named = list(named_chains.read(produced / f"{stem}.perf.data", dump))

    assert sum(frame.code_index is not None for x in printed for frame in x.frames) == NUM_JIT_FRAMES[stem]
    theirs = {(x.pid, x.tid, x.time_us): x.frames for x in printed}
    ours = {(x.pid, x.tid, x.time_us): x.frames for x in named}
    assert len(theirs) == len(printed)
    assert ours.keys() == theirs.keys()

    differences = Counter[str]()
    for key, frames in theirs.items():
        compared = 1 if stem in STACK_DUMPS else max(len(frames), len(ours[key]))
        pairs = zip_longest(frames[:compared], ours[key][:compared])
        for position, (perf, mine) in enumerate(pairs):
            if not _agree(perf, mine):
                differences[_reason(perf, mine, position)] += 1
    assert differences == EXCEPTIONS.get(stem, {})


def _agree(perf: PerfFrame | None, mine: NamedFrame | None) -> bool:
    if perf is None or perf.code_index is None:
        return mine is None or mine.code_index is None
    if mine is None or mine.code_index != perf.code_index or mine.linkage_name is None:
        return False
    return perf.symbol is not None and printed_name(mine.linkage_name, perf.symbol)


def _reason(perf: PerfFrame | None, mine: NamedFrame | None, position: int) -> str:
    unexplained = f"unexplained: perf {perf}, perfuse {mine}"
    if perf is None or perf.code_index is None or mine is None:
        return unexplained
    after_a_call = position > 0 and perf.symbol_offset == 0 and mine.code_index != perf.code_index
    return RETURN_ADDRESS if after_a_call else unexplained


def printed_name(linkage_name: str, symbol: str) -> bool:
    """Whether perf prints this name as this symbol: unchanged, or a JVM's `Lpackage/Class;method(I)I` as Java."""
    java = _JAVA_METHOD.match(linkage_name)
    if java is None or symbol == linkage_name:
        return symbol == linkage_name
    # perf writes no dot before <init>.
    dot = "" if java["method"].startswith("<") else "."
    return symbol.partition("(")[0] == java["type"].replace("/", ".") + dot + java["method"]
