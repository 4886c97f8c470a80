"""Recordings without build ids, whose programs can have changed since, and dumps that no stack leads through."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

import perfuse
from needs import need

from .producers import run_tool

SPIN = "volatile long sum; __attribute__((noinline)) void %s(void) { for (long i = 0; i < 300000000; i++) sum += i; }\n"


def codes(profile: perfuse.Profile) -> dict[str, str]:
    """The messages of a profile's diagnostics by code."""
    return {found.code: found.message for found in profile.diagnostics}


def build(directory: Path, function: str) -> Path:
    """A program that spends its time in a function of this name."""
    (directory / "p.c").write_text(
        SPIN % function + f"int main(void) {{ {function}(); return 0; }}\n", encoding="utf-8"
    )
    run_tool(["gcc", "-O1", "p.c", "-o", "program"], directory)
    return directory / "program"


@pytest.mark.truth(
    recording="perf_data", path=["api:Profile.diagnostics", "report"], source="the program was built again after it ran"
)
def test_a_program_built_again_after_a_recording_to_a_pipe_is_reported(tmp_path: Path) -> None:
    """The recording has no build ids, and the function that ran has another name in the file at the program's path."""
    need("perf", "gcc")
    program = build(tmp_path, "alpha")
    recording = tmp_path / "perf.data"
    with recording.open("wb") as out:
        command = ["perf", "record", "-qN", "-e", "cpu-clock", "-F", "499", "-o", "-", "--", program]
        subprocess.run(command, stdout=out, stderr=subprocess.DEVNULL, check=True, cwd=tmp_path, timeout=600)
    same = codes(perfuse.fuse(recording))
    assert f"{program} ({program.stat().st_size:,} bytes, changed " in same["FU014"]
    assert "FU015" not in same
    time.sleep(0.01)
    build(tmp_path, "zulu")
    changed = codes(perfuse.fuse(recording))
    assert changed["FU015"].startswith(f"{program} ({program.stat().st_size:,} bytes, changed ")
    assert "after the recording was written" in changed["FU015"]
    printed = subprocess.run(
        [sys.executable, "-m", "perfuse", "report", recording], capture_output=True, text=True, check=False
    ).stdout
    assert "FU015  warning" in printed


@pytest.mark.truth(
    recording="perf_data", path="api:Profile.diagnostics", source="perf has checked the build ids of the file"
)
def test_a_recording_with_build_ids_has_nothing_unverified(tmp_path: Path) -> None:
    need("perf", "gcc")
    program = build(tmp_path, "alpha")
    run_tool(["perf", "record", "-qN", "-e", "cpu-clock", "-o", "perf.data", "--", program], tmp_path)
    assert not {"FU014", "FU015"} & codes(perfuse.fuse(tmp_path / "perf.data")).keys()


@pytest.mark.truth(
    recording="perf_cpython", path=["api:Profile.diagnostics", "report"], source="perf names no frame of the dump, too"
)
def test_python_without_frame_pointers_is_reported(jitdump_corpus: Path) -> None:
    """`perf record -g` of a CPython without frame pointers: no Python function is in any stack."""
    produced = jitdump_corpus / "produced"
    recorded = [produced / "cpython313.perf.data", produced / "cpython313.dump"]
    assert codes(perfuse.fuse(*recorded))["FU016"] == "process 5052, CPython"
    printed = subprocess.run(
        [sys.executable, "-m", "perfuse", "report", *recorded], capture_output=True, text=True, check=False
    ).stdout
    assert "FU016  warning" in printed
    assert "hint: code without frame pointers gives perf record -g wrong return addresses" in printed
    assert "--call-graph dwarf" in perfuse.explain("FU016").action


@pytest.mark.truth(
    recording=["perf_node", "perf_cpython", "perf_openjdk", "perf_llvm", "perf_jsc", "perf_erlang", "perf_postgres"],
    path="api:Profile.diagnostics",
    source="perf names frames of these dumps",
)
@pytest.mark.parametrize(
    "stem",
    [
        "node20",
        "cpython315-dwarf",
        "openjdk17-jvmti",
        "llvm14-mcjit",
        "jsc2.52",
        "erlang27",
        "postgres15",
        "wasmtime50",
    ],
)
def test_dumps_that_stacks_lead_through_are_not_reported(stem: str, jitdump_corpus: Path) -> None:
    produced = jitdump_corpus / "produced"
    profile = perfuse.fuse(produced / f"{stem}.perf.data", produced / f"{stem}.dump")
    assert "FU016" not in codes(profile)


def test_a_filter_does_not_make_a_dump_unseen(jitdump_corpus: Path) -> None:
    produced = jitdump_corpus / "produced"
    profile = perfuse.fuse(produced / "node20.perf.data", produced / "node20.dump").leaf("/./")
    assert profile.sql("SELECT count(code_object_id) FROM frames").fetchall() == [(0,)]
    assert "FU016" not in codes(profile)
