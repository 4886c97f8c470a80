"""A caller's line is the line of the call in its source, whatever the producer's debug entries stand at.

V8 and LLVM write the address at which the code of a line starts, so the call is at the return address minus one.
HotSpot's tables have the return address itself, and for other code the last instruction of a line.
"""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import perfuse
from needs import need

from .producers import PROGRAMS, node_of, record, run_tool
from .sampled import share

_CALLS = """
    SELECT split_part(split_part(n.name, '(', 1), '.', -1), split_part(split_part(c.name, '(', 1), '.', -1),
        cf.line, cf.path, count(*)
    FROM samples
    JOIN stacks USING (stack_id)
    JOIN frames f ON f.frame_id = stacks.frame_id
    JOIN functions n ON n.function_id = f.function_id
    JOIN stacks cs ON cs.stack_id = stacks.parent_stack_id
    JOIN frames cf ON cf.frame_id = cs.frame_id
    JOIN functions c ON c.function_id = cf.function_id
    WHERE f.kind = 'jit' AND cf.kind = 'jit' GROUP BY ALL
"""
"""Samples by function and by line of its caller, without packages, types and parameters."""

Calls = Counter[tuple[str, int | None, str]]


def lines_of_callers(perf_data: Path, dump: Path, caller: str) -> Calls:
    """Number of samples of each function that `caller` calls, by the line of the call."""
    calls = Calls()
    for callee, name, line, path, num_samples in perfuse.fuse(perf_data, dump).sql(_CALLS).fetchall():
        if name == caller:
            calls[callee, line, Path(path or "").name] += num_samples
    return calls


def lines_of_calls(source: Path) -> set[tuple[str, int, str]]:
    """Each function of a program, and a line that is marked as one that calls it."""
    lines = enumerate(source.read_text(encoding="utf-8").splitlines(), 1)
    return {(m[1], line, source.name) for line, text in lines if (m := re.search(r"called: (\w+)", text))}


def assert_right(calls: Calls, source: Path) -> None:
    """Every line that calls occurs, and at least 99 % of the samples are on a line that calls the function."""
    truth = lines_of_calls(source)
    # V8 writes no debug entries at all for some code of Maglev, and none that can be used for Sparkplug's.
    with_line = Calls({call: count for call, count in calls.items() if call[1] is not None})
    right = Calls({call: count for call, count in with_line.items() if call in truth})
    assert share(right.total(), with_line.total(), at_least=200) >= 0.99, with_line - right
    assert right.keys() == truth


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the agent and the classes of Java's programs."""
    need("perf", "gcc", "java", "javac")
    directory = tmp_path_factory.mktemp("java")
    settings = subprocess.run(
        ["java", "-XshowSettings:properties", "-version"], capture_output=True, text=True, check=True
    )
    home = re.search(r"java\.home = (.*)", settings.stderr)
    include = Path(home[1] if home else "") / "include"
    if not (include / "jvmti.h").exists():
        pytest.skip(f"no jvmti.h in {include}")
    compiler = ["gcc", "-O1", "-shared", "-fPIC", f"-I{include}", f"-I{include}/linux"]
    run_tool([*compiler, PROGRAMS / "jvmti_agent.c", "-o", "agent.so"], directory)
    run_tool(["javac", "-g", "-d", ".", PROGRAMS / "CallLines.java", PROGRAMS / "BusyLine.java"], directory)
    return directory


def java_command(directory: Path, program: str, *arguments: str) -> list[str]:
    """Runs a program with the agent."""
    not_inlined = f"-XX:CompileCommand=dontinline,{program}::*"
    options = ["-XX:+PreserveFramePointer", "-XX:+UseSerialGC", "-XX:CompileCommand=quiet", not_inlined]
    return ["java", *options, f"-agentpath:{directory}/agent.so", "-cp", str(directory), program, *arguments]


@pytest.mark.truth(recording="perf_openjdk", path="api:Profile.sql", source="lines of the program's calls")
def test_java_callers_are_on_the_line_of_the_call(java: Path, tmp_path: Path) -> None:
    run = record(java_command(java, "CallLines", "1000"), tmp_path)
    assert_right(lines_of_callers(run.perf_data, run.dump, "caller"), PROGRAMS / "CallLines.java")


@pytest.mark.truth(recording="perf_openjdk", path="api:Profile.sql", source="18 of 19 multiplications are on one line")
def test_java_samples_are_on_the_line_that_is_busy(java: Path, tmp_path: Path) -> None:
    """A debug entry of the JVM is at the end of its line's code; read as its start, another line has the samples."""
    run = record(java_command(java, "BusyLine", "1000"), tmp_path)
    source = PROGRAMS / "BusyLine.java"
    (busy,) = (n for n, line in enumerate(source.read_text().splitlines(), 1) if line.endswith("// busy"))
    lines = dict(
        perfuse.fuse(run.perf_data, run.dump)
        .sql("""SELECT frames.line, count(*) FROM samples JOIN stacks USING (stack_id) JOIN frames USING (frame_id)
                JOIN functions USING (function_id) WHERE functions.name = 'BusyLine.mix(long)' GROUP BY ALL""")
        .fetchall()
    )
    assert share(lines[busy], sum(lines.values()), at_least=200) >= 0.75, lines


@pytest.mark.truth(recording="perf_openjdk", path="api:Profile.sql", source="lines of the program's calls")
def test_callers_of_a_stored_java_recording(jitdump_corpus: Path) -> None:
    """29 % of these callers had the line before the call."""
    recorded = jitdump_corpus.parent / "found" / "jitdump" / "openjdk-lines"
    calls = lines_of_callers(recorded / "perf.data", recorded / "jit-21884.dump", "driver")
    compiled = {(callee, line): n for (callee, line, _), n in calls.items() if callee.startswith("heavy")}
    assert compiled.keys() == {("heavyA", 8), ("heavyB", 10), ("heavyC", 13), ("heavyC", 15)}
    assert sum(compiled.values()) == 1602


@pytest.mark.truth(recording="perf_node", path="api:Profile.sql", source="lines of the program's calls")
@pytest.mark.parametrize("which", ["system", "wheel"])
def test_javascript_callers_are_on_the_line_of_the_call(which: str, tmp_path: Path) -> None:
    need("perf")
    source = PROGRAMS / "call_lines.js"
    options = ["--perf-prof", "--no-turbo-inlining", "--no-maglev"]
    run = record([node_of(which), *options, source, "1000"], tmp_path)
    assert_right(lines_of_callers(run.perf_data, run.dump, "caller"), source)


@pytest.mark.truth(recording="perf_node", path="api:Profile.sql", source="lines of the program's calls")
def test_baseline_code_of_v8_has_no_lines(tmp_path: Path) -> None:
    """V8 writes offsets in bytecode for it, so that callers seemed to be on the last lines of their functions."""
    need("perf")
    command = [node_of("system"), "--perf-prof", "--always-sparkplug", "--no-opt", PROGRAMS / "call_lines.js", "1000"]
    run = record(command, tmp_path)
    calls = lines_of_callers(run.perf_data, run.dump, "caller")
    # A few samples are in V8's own code for operators, such as `Add_Baseline`.
    assert {"first", "second"} <= {callee for callee, _, _ in calls}
    assert {line for _, line, _ in calls} == {None}
    assert "JD067" in {found.code for found in perfuse.check(run.dump)}


@pytest.mark.truth(recording="perf_llvm", path="api:Profile.sql", source="lines of the program's calls")
def test_callers_in_llvm_code_are_on_the_line_of_the_call(tmp_path: Path) -> None:
    need("perf", "g++", "clang", "llvm-config")
    printed = subprocess.run(
        ["llvm-config", "--cxxflags", "--ldflags", "--libs"], capture_output=True, text=True, check=True
    )
    run_tool(["g++", "-O1", PROGRAMS / "mcjit.cpp", "-o", "mcjit", *printed.stdout.split()], tmp_path)
    source = PROGRAMS / "call_lines.c"
    compiler = ["clang", "-g", "-O1", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"]
    run_tool([*compiler, "-S", "-emit-llvm", source, "-o", "call_lines.ll"], tmp_path)
    command = ["./mcjit", "call_lines.ll", "call_lines.o", "1000", "caller"]
    run = record(command, tmp_path, {"JITDUMPDIR": str(tmp_path)})
    assert_right(lines_of_callers(run.perf_data, run.dump, "caller"), source)


@pytest.mark.truth(
    recording="perf_jsc", path="api:Profile.sql", source="the program, whose functions have one line each"
)
def test_callers_in_javascriptcore_are_on_the_line_of_the_call(jitdump_corpus: Path) -> None:
    produced = jitdump_corpus / "produced"
    recorded = produced / "jsc2.54-source.perf.data", produced / "jsc2.54-source.dump"
    truth = {"addmul": 2, "inner": 4, "fib": 5}
    for caller, line in truth.items():
        found = {at for _, at, _ in lines_of_callers(*recorded, caller)}
        assert found == {line}, caller
