"""LLVM's MCJIT: every sampled address is on the line that the DWARF of the loaded object has.

LLVM's perf listener writes debug entries 0x40 bytes too high, and `perf inject` copies them as they are.
"""

import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

import perfuse
from needs import need

from .dwarf_lines import LineTable
from .producers import PROGRAMS, Phase, Run, record, run_tool
from .sampled import Leaf, leaves, share

SOURCE = PROGRAMS / "phases.c"
FUNCTIONS = ("hash", "checksum", "collatz")
PERF_TEXT_OFFSET = 0x80
"""Where `perf inject` puts the code in its files."""


@dataclass(frozen=True, slots=True)
class Recorded:
    run: Run
    lines: LineTable
    load_bias: int
    leaves: list[Leaf]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    need("perf", "g++", "clang", "llvm-config", "objdump", "nm")
    directory = tmp_path_factory.mktemp("llvm")
    compiler, linker = _llvm_config("--cxxflags"), _llvm_config("--ldflags", "--libs")
    run_tool(["g++", "-O1", *compiler, PROGRAMS / "mcjit.cpp", "-o", "mcjit", *linker], directory)
    run_tool(["clang", "-g", "-O2", "-S", "-emit-llvm", SOURCE, "-o", "phases.ll"], directory)
    command = ["./mcjit", "phases.ll", "phases.o", "1000", *FUNCTIONS]
    run = record(command, directory, {"JITDUMPDIR": str(directory)})
    loaded = directory / "phases.o"
    return Recorded(run, LineTable(loaded), _load_bias(loaded, run.phases), leaves(run.perf_data, run.dump))


@pytest.mark.truth(recording="perf_llvm", path="api:Profile.sql", source="the program's own times")
def test_samples_are_in_the_function_that_was_busy(recorded: Recorded) -> None:
    for phase in recorded.run.phases:
        inside = [leaf for leaf in recorded.leaves if phase.start_ns <= leaf.ts_ns <= phase.end_ns]
        right = [leaf for leaf in inside if leaf.name == phase.function and leaf.start_address == phase.address]
        assert share(len(right), len(inside), at_least=200) >= 0.99, phase.function


@pytest.mark.truth(recording="perf_llvm", path="api:Profile.sql", source="objdump: DWARF of the loaded object")
def test_lines_are_those_of_the_loaded_object(recorded: Recorded) -> None:
    wrong = Counter[tuple[str, int, int | None, int | None]]()
    for leaf in recorded.leaves:
        truth = recorded.lines.line(leaf.address - recorded.load_bias)
        if leaf.line != truth or (truth is not None and leaf.path != str(SOURCE)):
            wrong[leaf.name, leaf.code_offset, truth, leaf.line] += 1
    right = len(recorded.leaves) - wrong.total()
    assert share(right, len(recorded.leaves), at_least=600) >= 0.99, wrong.most_common(10)


@pytest.mark.truth(recording="jitdump", path="repair", source="perf inject and objdump read the repaired file")
def test_perf_inject_is_shifted_and_right_after_repair(recorded: Recorded) -> None:
    """perf's own answer for the same samples, from the line tables of the files it writes: mostly wrong, and right once
    `perfuse repair` has taken the skew off.
    """
    assert _perf_is_right(recorded) < 0.75
    as_written = recorded.run.dump.rename(recorded.run.directory / "as-written.dump")
    result = perfuse.repair(as_written, recorded.run.dump)
    assert {change.code for change in result.changes} == {"JD052"}
    assert not result.lost
    assert _perf_is_right(recorded) >= 0.99


def _perf_is_right(recorded: Recorded) -> float:
    """The share of samples whose line `perf inject` gets right."""
    run = recorded.run
    run_tool(["perf", "inject", "--jit", "-i", run.perf_data, "-o", run.directory / "injected.data"], run.directory)
    tables = {path.stem.rpartition("-")[2]: LineTable(path) for path in run.dump.parent.glob("jitted-*.so")}
    right = sum(
        tables[str(leaf.code_index)].line(leaf.code_offset + PERF_TEXT_OFFSET)
        == recorded.lines.line(leaf.address - recorded.load_bias)
        for leaf in recorded.leaves
    )
    return share(right, len(recorded.leaves), at_least=600)


def _llvm_config(*flags: str) -> list[str]:
    return subprocess.run(["llvm-config", *flags], capture_output=True, text=True, check=True).stdout.split()


def _load_bias(loaded: Path, phases: list[Phase]) -> int:
    """Difference between an address in memory and in the object."""
    printed = subprocess.run(["nm", loaded], capture_output=True, text=True, check=True).stdout
    symbols = {name: int(value, 16) for value, _, name in (line.split() for line in printed.splitlines())}
    biases = {phase.address - symbols[phase.function] for phase in phases if phase.address is not None}
    assert len(biases) == 1, f"the object's text was not loaded in one piece: {biases}"
    return biases.pop()
