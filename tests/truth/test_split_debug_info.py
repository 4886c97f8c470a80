"""Inlined calls of a program whose debug information is beside it, by LLVM's symbolizer for the same addresses."""

import json
import subprocess
from pathlib import Path

import pytest

import perfuse
from needs import need

from .producers import run_tool

_PROGRAM = """
#include <stdio.h>
static inline __attribute__((always_inline)) unsigned mixed(unsigned sum, unsigned i) { return sum * 31 + i; }
static inline __attribute__((always_inline)) unsigned twice(unsigned sum, unsigned i) {
    return mixed(mixed(sum, i) ^ 5, i + 1);
}
__attribute__((noinline)) unsigned busy(unsigned n) {
    unsigned sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum = twice(sum, i) % 1000003;
    return sum;
}
int main(void) { printf("%u\\n", busy(150000000)); }
"""

_STACKS = """
    SELECT f.relative_address, list((fn.name, f.line) ORDER BY f.inline_depth DESC)
    FROM frames f JOIN functions fn USING (function_id) JOIN modules m USING (module_id)
    WHERE m.name LIKE '%/split' AND f.unwound_by = 'sampled' GROUP BY 1
"""


def symbolized(program: Path, addresses: list[int]) -> dict[int, list[tuple[str, int]]]:
    """Functions and lines at addresses, the innermost first, by llvm-symbolizer."""
    command = ["llvm-symbolizer-22", "--obj", program, "--output-style=JSON", *map(hex, addresses)]
    rows = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return {int(row["Address"], 16): [(one["FunctionName"], one["Line"]) for one in row["Symbol"]] for row in rows}


@pytest.mark.truth(recording="perf_data", path="api:Profile.sql", source="llvm-symbolizer of the same addresses")
def test_inlined_calls_of_split_debug_information(tmp_path: Path) -> None:
    need("perf", "gcc", "llvm-symbolizer-22")
    (tmp_path / "busy.c").write_text(_PROGRAM, encoding="ascii")
    run_tool(["gcc", "-O2", "-g", "-gsplit-dwarf", "-c", "busy.c", "-o", "split.o"], tmp_path)
    run_tool(["gcc", "split.o", "-o", "split"], tmp_path)
    run_tool(["perf", "record", "-qN", "-e", "cpu-clock", "-F", "1999", "-o", "perf.data", "./split"], tmp_path)
    profile = perfuse.fuse(tmp_path / "perf.data")
    found = {address: frames for address, frames in profile.sql(_STACKS).fetchall() if len(frames) > 1}
    assert {name for frames in found.values() for name, _ in frames} >= {"mixed", "twice", "busy"}
    assert found == symbolized(tmp_path / "split", list(found))
    assert "FU020" not in {one.code for one in profile.diagnostics}

    (tmp_path / "split.dwo").unlink()
    without = perfuse.fuse(tmp_path / "perf.data")
    assert {name for _, frames in without.sql(_STACKS).fetchall() for name, _ in frames} <= {"busy", "main"}
    (finding,) = [one for one in without.diagnostics if one.code == "FU020"]
    assert "split.dwo was not found" in finding.message
