"""What is going to be run, for runtimes that are not installed here too: programs of their names stand for them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from perfuse.capture.plan import Plan, make_plan
from perfuse.capture.program import NotRunnable, resolve
from perfuse.capture.request import Request
from perfuse.errors import UsageError


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A directory of programs, which is all of PATH but the system's own."""
    (tmp_path / "bin").mkdir()
    return tmp_path


def install(machine: Path, name: str, text: str = "exit 0", interpreter: str = "/bin/sh") -> Path:
    """A program that is a script."""
    path = machine / "bin" / name
    path.write_text(f"#!{interpreter}\n{text}\n", encoding="ascii")
    path.chmod(0o755)
    return path


def plan_of(machine: Path, *command: str, environment: Mapping[str, str] | None = None, **options: Any) -> Plan:
    """The plan for a command on that machine."""
    found = {"PATH": f"{machine / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin", **(environment or {})}
    return make_plan(Request(command=command, **options), machine / "out", found)


def settings(plan: Plan) -> dict[str, str]:
    """The variables that a plan sets."""
    return {setting.name: plan.environment[setting.name] for setting in plan.settings}


@pytest.mark.parametrize(
    ("program", "runtime", "variable", "value"),
    [
        ("node", "node", "NODE_OPTIONS", "--perf-prof --interpreted-frames-native-stack"),
        ("deno", "deno", "DENO_V8_FLAGS", "--perf-prof,--interpreted-frames-native-stack"),
        ("bun", "javascriptcore", "BUN_JSC_useJITDump", "1"),
        ("jsc", "javascriptcore", "JSC_useJITDump", "1"),
        ("js115", "spidermonkey", "IONPERF", "func"),
        ("dotnet", "dotnet", "DOTNET_PerfMapEnabled", "1"),
        ("mono", "mono", "MONO_ENV_OPTIONS", "--jitmap"),
        ("erl", "erlang", "ERL_FLAGS", "+JPperf dump"),
        ("julia", "julia", "ENABLE_JITPROFILING", "1"),
        ("psql", "postgresql", "PGOPTIONS", "-c jit_profiling_support=on"),
    ],
)
def test_variables(machine: Path, program: str, runtime: str, variable: str, value: str) -> None:
    """Values are those of the runtimes' own documentation."""
    install(machine, program)
    plan = plan_of(machine, program, "app")
    assert runtime in [one.name for one, _ in plan.runtimes]
    assert settings(plan)[variable] == value


@pytest.mark.parametrize("variable", ["JSC_jitDumpDirectory", "DOTNET_PerfMapJitDumpPath", "JITDUMPDIR"])
def test_directories_are_inside_of_the_recording(machine: Path, variable: str) -> None:
    install(machine, "start")
    assert settings(plan_of(machine, "start"))[variable] == str(machine / "out" / "runtime-files")


@pytest.mark.parametrize(("release", "value"), [("8.0.11", "1"), ("9.0.0", "1"), ("10.0.1", "3")])
def test_dotnet_whose_dump_is_damaged_writes_a_map(machine: Path, release: str, value: str) -> None:
    """dotnet/runtime#132935."""
    install(machine, "dotnet")
    (machine / "bin" / "shared" / "Microsoft.NETCore.App" / release).mkdir(parents=True)
    assert settings(plan_of(machine, "dotnet", "app.dll"))["DOTNET_PerfMapEnabled"] == value


@pytest.mark.parametrize(
    ("version", "flags", "stacks", "variable"),
    [
        ("3 13 2", False, "dwarf", "PYTHON_PERF_JIT_SUPPORT"),
        ("3 15 0", True, "fp", "PYTHON_PERF_JIT_SUPPORT"),
        ("3 12 1", True, "fp", "PYTHONPERFSUPPORT"),
        ("3 12 1", False, "dwarf", "PYTHONPERFSUPPORT"),
    ],
)
def test_python(machine: Path, version: str, flags: bool, stacks: str, variable: str) -> None:
    """Copies of stacks where the interpreter was compiled without frame pointers."""
    name = "python" + ".".join(version.split()[:2])
    install(machine, name, f"echo {version} {flags}")
    plan = plan_of(machine, name, "app.py")
    assert plan.stacks is not None
    assert plan.stacks.stacks == stacks
    assert variable in settings(plan)
    assert bool([one for one in plan.findings if one.name == "frame pointers"]) == (version == "3 12 1" and not flags)


def test_python_that_ignores_variables_gets_an_option(machine: Path) -> None:
    install(machine, "python3.13", "echo 3 13 0 True", "/bin/sh")
    interpreter = machine / "bin" / "python3.13"
    plan = plan_of(machine, str(interpreter), "-I", "app.py")
    assert "PYTHON_PERF_JIT_SUPPORT" in settings(plan)
    # A shell script that stands for it gets the options of the command as they are.
    assert plan.command == (str(interpreter), "-I", "app.py")


def test_ruby_that_has_yjit(machine: Path) -> None:
    install(machine, "ruby", "echo 3.4.1 yes")
    assert settings(plan_of(machine, "ruby", "app.rb"))["RUBYOPT"] == "--yjit --yjit-perf"


def test_ruby_without_yjit_is_not_given_an_option_that_it_refuses(machine: Path) -> None:
    install(machine, "ruby3.3", "echo 3.3.0 no")
    plan = plan_of(machine, "ruby3.3", "app.rb")
    assert "RUBYOPT" not in settings(plan)
    assert "built without YJIT" in next(one.detail for one in plan.findings if one.name == "ruby")


def elf(machine: Path, name: str) -> None:
    """A binary of a name: that of `true`."""
    path = machine / "bin" / name
    path.write_bytes(Path("/bin/true").read_bytes())
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("wasmtime", "app.wasm", "x"), ("wasmtime", "run", "--profile=jitdump", "app.wasm", "x")),
        (("wasmtime", "run", "app.wasm"), ("wasmtime", "run", "--profile=jitdump", "app.wasm")),
        (("wasmtime", "compile", "app.wasm"), ("wasmtime", "compile", "app.wasm")),
        (("dart", "app.dart", "x"), ("dart", "--generate_perf_jitdump", "app.dart", "x")),
        (("dart", "run", "app.dart"), ("dart", "--generate_perf_jitdump", "run", "app.dart")),
        (("postgres", "--single", "db"), ("postgres", "--single", "-c", "jit_profiling_support=on", "db")),
        (("postgres", "-D", "data"), ("postgres", "-c", "jit_profiling_support=on", "-D", "data")),
    ],
)
def test_options_of_the_runtime_itself(machine: Path, command: tuple[str, ...], expected: tuple[str, ...]) -> None:
    elf(machine, command[0])
    assert plan_of(machine, *command).command == expected


def test_what_a_wrapper_mentions_is_prepared(machine: Path) -> None:
    """`sh -c 'java …'`: Java prints a line for its variable, so it is set only where Java is mentioned."""
    install(machine, "java")
    install(machine, "start")
    assert "JAVA_TOOL_OPTIONS" in settings(plan_of(machine, "sh", "-c", "java Main"))
    assert "JAVA_TOOL_OPTIONS" in settings(plan_of(machine, "timeout", "5", "java", "Main"))
    quiet = settings(plan_of(machine, "start"))
    assert "JAVA_TOOL_OPTIONS" not in quiet
    assert {"NODE_OPTIONS", "PYTHON_PERF_JIT_SUPPORT", "DOTNET_PerfMapEnabled", "MONO_ENV_OPTIONS"} <= quiet.keys()


def test_maven_runs_java(machine: Path) -> None:
    install(machine, "java")
    install(machine, "mvn")
    assert "DumpPerfMapAtExit" in settings(plan_of(machine, "mvn", "test"))["JAVA_TOOL_OPTIONS"]


def test_values_that_are_there(machine: Path) -> None:
    """Lists are added to, once; single values stay."""
    install(machine, "node")
    environment = {"NODE_OPTIONS": "--trace-gc", "JITDUMPDIR": "mine"}
    found = settings(plan_of(machine, "node", "x", environment=environment))
    assert found["NODE_OPTIONS"] == "--trace-gc --perf-prof --interpreted-frames-native-stack"
    assert found["JITDUMPDIR"] == "mine"
    again = settings(plan_of(machine, "node", "x", environment=found))
    assert again["NODE_OPTIONS"] == found["NODE_OPTIONS"]


def test_node_where_it_cannot_write(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """V8 would print its log to the program's standard output. Root may write anywhere: the refusal is simulated."""
    install(machine, "node")
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != "." and access(path, mode))
    plan = plan_of(machine, "node", "x")
    assert "NODE_OPTIONS" not in settings(plan)
    assert [one.state for one in plan.findings if one.name == "directory"] == ["limited"]


@pytest.mark.parametrize(("script", "states"), [("app.ts", ["limited"]), ("app.js", [])])
def test_deno_makes_javascript_of_typescript(machine: Path, script: str, states: list[str]) -> None:
    install(machine, "deno")
    plan = plan_of(machine, "deno", "run", script)
    assert [one.state for one in plan.findings if one.name == "deno"] == states


def test_runtimes_that_are_named(machine: Path) -> None:
    install(machine, "start")
    assert set(settings(plan_of(machine, "start", runtimes=("node",)))) == {"NODE_OPTIONS"}
    assert settings(plan_of(machine, "start", runtimes=())) == {}
    with pytest.raises(UsageError) as caught:
        plan_of(machine, "start", runtimes=("nod",))
    assert caught.value.hint is not None
    assert "node" in caught.value.hint


@pytest.mark.parametrize(
    "interpreter", ["/usr/bin/env {}", "/usr/bin/env -S {} --flag", "/usr/bin/env A=b {}", "{path}"]
)
def test_interpreters_of_scripts(machine: Path, interpreter: str) -> None:
    elf(machine, "node")
    line = interpreter.format("node", path=machine / "bin" / "node")
    if " A=b" in line:
        line = line.replace("env A=b", "env -S A=b")
    install(machine, "app", "console.log(1)", line)
    program = resolve(("app",), {"PATH": str(machine / "bin")})
    assert program.executable.name == "node"
    assert next(one.name for one, _ in plan_of(machine, "app").runtimes) == "node"


def test_interpreters_in_a_circle_end(machine: Path) -> None:
    install(machine, "a", "", str(machine / "bin" / "b"))
    install(machine, "b", "", str(machine / "bin" / "a"))
    assert resolve(("a",), {"PATH": str(machine / "bin")}).path.name == "a"


def test_a_name_that_is_a_directory_of_path(machine: Path) -> None:
    """As exec does: a directory and a file that may not be executed are passed over."""
    (machine / "bin" / "tool").mkdir()
    with pytest.raises(NotRunnable) as caught:
        plan_of(machine, "tool")
    assert caught.value.exit_code == 127
    (machine / "bin" / "text").write_text("x", encoding="ascii")
    with pytest.raises(NotRunnable) as caught:
        plan_of(machine, "text")
    assert caught.value.exit_code == 126


def test_a_directory_of_path_that_may_not_be_searched(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is passed over, as by exec. Root may search any directory: the refusal is simulated."""
    install(machine, "node")
    closed = str(machine / "closed")
    status = os.stat

    def refusing(path: Any, *arguments: Any, **options: Any) -> os.stat_result:
        if str(path).startswith(closed):
            raise PermissionError(13, "Permission denied", str(path))
        return status(path, *arguments, **options)

    monkeypatch.setattr(os, "stat", refusing)
    found = resolve(("node",), {"PATH": f"{closed}{os.pathsep}{machine / 'bin'}"})
    assert found.path == machine / "bin" / "node"


@pytest.mark.parametrize("name", ["docker", "sudo", "systemd-run", "ssh"])
def test_programs_that_nothing_follows(machine: Path, name: str) -> None:
    install(machine, name)
    assert any(one.name == name for one in plan_of(machine, name, "x").findings)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "nothing to record"),
        ({"pids": (1,), "command": ("true",)}, "neither a command"),
        ({"recorder": "xray", "pids": (1,)}, "starts a program"),
        ({"recorder": "mono", "command": ("true",), "hz": 9}, "--frequency: of perf"),
        ({"command": ("true",), "mono_events": ("calls",)}, "--with mono"),
        ({"command": ("true",), "stacks": "lbr"}, "no stacks 'lbr'"),
        ({"command": ("true",), "stacks": "fp,8"}, "no stacks"),
        ({"command": ("true",), "stacks": "dwarf,65536"}, "not a size"),
        ({"command": ("true",), "stacks": "dwarf,7"}, "not a size"),
    ],
)
def test_contradictions_are_refused(machine: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_plan(Request(**options), machine / "out", {"PATH": "/usr/bin:/bin"})


def dry_run(directory: Path, *words: str, environment: Mapping[str, str] | None = None) -> tuple[int, str, str]:
    """`perfuse record --dry-run`."""
    done = subprocess.run(
        [sys.executable, "-m", "perfuse", "record", "--dry-run", *words],
        cwd=directory,
        env={**os.environ, "NO_COLOR": "1", **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return done.returncode, done.stdout, done.stderr


def test_a_dry_run_prints_commands_that_record_the_same(tmp_path: Path) -> None:
    """Its lines run in a shell, and leave a perf.data."""
    code, output, errors = dry_run(tmp_path, "-o", "out dir", "--", "sh", "-c", "echo 'a b'")
    assert code == 0, errors
    assert not list(tmp_path.iterdir())
    done = subprocess.run(["bash", "-c", output], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "a b\n"
    assert (tmp_path / "out dir" / "perf.data").stat().st_size > 0


def test_a_dry_run_as_json(tmp_path: Path) -> None:
    code, output, _ = dry_run(tmp_path, "--json", "-o", "out", "-F", "99", "--stacks", "dwarf,8192", "--", "true")
    assert code == 0
    document = json.loads(output)
    assert document["recorder"] == "perf"
    assert document["command"] == ["true"]
    words = document["perf"]
    assert words[words.index("-F") + 1] == "99"
    assert words[words.index("--call-graph") + 1] == "dwarf,8192"
    assert words[words.index("-k") + 1] == "mono"
    assert document["stacks"]["stacks"] == "dwarf"


def test_without_perf_the_cure_is_stated(tmp_path: Path) -> None:
    """The program is not run."""
    code, _, errors = dry_run(tmp_path, "--perf", "/nowhere/perf", "--", "true")
    assert code == 3
    assert "apt install linux-perf" in errors
    command = [sys.executable, "-m", "perfuse", "record", "--perf", "/nowhere/perf", "--", "touch", "made"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "apt install linux-perf" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "words", "named"),
    [
        ("perf version 4.18.0", (), "5.10"),
        ("perf version 6.1.0", ("--off-cpu",), "BUILD_BPF_SKEL"),
    ],
)
def test_a_perf_that_is_not_sufficient(tmp_path: Path, text: str, words: tuple[str, ...], named: str) -> None:
    perf = tmp_path / "perf"
    perf.write_text(f"#!/bin/sh\necho '{text}'\n", encoding="ascii")
    perf.chmod(0o755)
    code, _, errors = dry_run(tmp_path, "--perf", str(perf), *words, "--", "true")
    assert code == 3
    assert named in errors


def test_a_perf_that_records_waiting_time(tmp_path: Path) -> None:
    perf = tmp_path / "perf"
    perf.write_text(
        "#!/bin/sh\necho 'perf version 6.8.0'\necho ' bpf_skeletons: [ on  ]  # HAVE_BPF_SKEL'\n", encoding="ascii"
    )
    perf.chmod(0o755)
    code, output, errors = dry_run(tmp_path, "--json", "--perf", str(perf), "--off-cpu", "--", "true")
    assert code == 0, errors
    assert "--off-cpu" in json.loads(output)["perf"]


def test_xray_of_a_program_that_was_not_compiled_for_it(tmp_path: Path) -> None:
    code, _, errors = dry_run(tmp_path, "--with", "xray", "--", "/bin/true")
    assert code == 3
    assert "clang -fxray-instrument" in errors


def test_json_needs_a_dry_run(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "perfuse", "record", "--json", "--", "true"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--dry-run" in done.stderr
