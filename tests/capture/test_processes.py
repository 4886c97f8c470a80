"""Which processes are recorded: children, those of wrapper scripts, of containers, running ones, all of a machine."""

from __future__ import annotations

import json
import shlex
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from needs import need

from .recorded import HOT, PROGRAMS, WARM, Run, default_signals, record, record_until

HOT_JS = PROGRAMS / "hot.js"
DATA_SECTION = 40
"""Where the header of perf.data has the offset of its records."""
RECORD_HEADER, SAMPLE = struct.Struct("<IHH"), 9
RECORD = [sys.executable, "-m", "perfuse", "record", "--no-report", "-o", "run"]


@pytest.fixture(autouse=True)
def _tools() -> None:
    need("perf", "node")


def script(path: Path, text: str) -> Path:
    """An executable file."""
    path.write_text(text, encoding="ascii")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("wrapped", ["sh", "script", "npm", "env", "make", "timeout"])
def test_what_a_wrapper_starts_has_names(tmp_path: Path, wrapped: str) -> None:
    """A shell, a script, `npm run`, `env`, `make`: none of them is parsed, the environment reaches what they start."""
    program = f"node {HOT_JS}"
    (tmp_path / "package.json").write_text(json.dumps({"scripts": {"hot": program}}), encoding="ascii")
    (tmp_path / "Makefile").write_text(f"hot:\n\t@{program}\n", encoding="ascii")
    need(*{"npm": ["npm"], "make": ["make"]}.get(wrapped, []))
    commands: dict[str, list[str | Path]] = {
        "sh": ["sh", "-c", f"true; {program}; exit $?"],
        "script": [script(tmp_path / "start", f"#!/bin/sh\n{program}\nexit $?\n")],
        "npm": ["npm", "run", "--silent", "hot"],
        "env": ["env", "-u", "NOTHING", "node", HOT_JS],
        "make": ["make", "--no-print-directory", "hot"],
        "timeout": ["timeout", "600", "node", HOT_JS],
    }
    run = record(commands[wrapped], tmp_path)
    assert run.done.returncode == 0, run.done.stderr
    assert run.done.stdout == "done\n"
    # Starting npm costs as much as the program itself.
    assert run.share(HOT, WARM) >= (0.15 if wrapped == "npm" else 0.5), run.done.stderr
    assert not list(tmp_path.glob("jit-*.dump"))
    assert not list(tmp_path.glob("isolate-*"))


def test_children_in_other_directories(tmp_path: Path) -> None:
    """Two processes of two directories: both dumps are there, and each names the functions of its own process."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "hot.js").write_text(named(name), encoding="utf-8")
    run = record(["sh", "-c", "(cd a && node hot.js) & (cd b && node hot.js); wait"], tmp_path)
    assert run.done.stdout == "done\ndone\n", run.done.stderr
    assert sorted(file["kind"] for file in run.note["files"]) == ["dump", "dump"]
    assert run.share(f"{WARM}_a") >= 0.15
    assert run.share(f"{WARM}_b") >= 0.15
    assert {path.name for path in (tmp_path / "a").iterdir()} == {"hot.js"}


def named(name: str) -> str:
    """The program, with functions of other names."""
    text = HOT_JS.read_text(encoding="utf-8")
    return text.replace(HOT, f"{HOT}_{name}").replace(WARM, f"{WARM}_{name}")


def until_opened(name: str, number: int = 1) -> str:
    """A command for the shell that perfuse starts, which ends when perfuse has opened files of that name.

    Their file systems end with the programs that write them: a program whose input is this command's output can wait.
    """
    opened = f"ls -l /proc/$PPID/fd | grep -c '/{name}$'"
    return f'until [ "$({opened})" = {number} ]; do sleep 0.1; done'


def in_containers(run: Run) -> list[dict[str, object]]:
    """The processes that are the first of their own namespace."""
    return [one for one in run.note["processes"] if one["own_pid"] == 1]


def test_dumps_of_the_same_name_in_two_containers(tmp_path: Path) -> None:
    """Two pid namespaces with a private file system each: both processes are 1 there, and write the same jit-1.dump.

    Their file systems are gone when they end.
    """
    for name in ("a", "b"):
        text = named(name) + 'require("fs").readFileSync(0);\n'
        (tmp_path / f"{name}.js").write_text(text, encoding="utf-8")
    if subprocess.run(["unshare", "-pfm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("namespaces are not permitted")
    inside = "mount -t tmpfs none /mnt && cd /mnt && exec node"
    container = "unshare --pid --fork --mount sh -c"
    wait = until_opened("jit-1.dump", number=2)
    both = " & ".join(f"{wait} | {container} '{inside} {tmp_path}/{name}.js'" for name in ("a", "b"))
    run = record(["sh", "-c", f"{both}; wait"], tmp_path)
    assert run.done.stdout == "done\ndone\n", run.done.stderr
    contained = in_containers(run)
    assert len(contained) == 2
    assert [file["original"] for file in run.note["files"]] == ["/mnt/jit-1.dump"] * 2
    assert {file["pid"] for file in run.note["files"]} == {one["pid"] for one in contained}
    assert run.share(f"{WARM}_a") >= 0.15, run.done.stderr
    assert run.share(f"{WARM}_b") >= 0.15, run.done.stderr
    pids = {join["pid"]: join["found_by"] for join in run.report()["joins"]}
    assert pids == {one["pid"]: "note" for one in contained}


def test_a_map_in_a_container(tmp_path: Path) -> None:
    """CPython's map in a private /tmp, which is named after the process's id there."""
    python = next(iter(Path("~/.pyenv/versions").expanduser().glob("3.12.*/bin/python3.12")), None)
    if python is None or subprocess.run(["unshare", "-pfm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no python3.12, or namespaces are not permitted")
    program = (PROGRAMS / "hot.py").read_text(encoding="utf-8") + "import sys\nsys.stdin.read()\n"
    inside = shlex.quote(f"mount -t tmpfs none /tmp && exec {python} -c {shlex.quote(program)}")
    command = f"{until_opened('perf-1.map')} | unshare --pid --fork --mount sh -c {inside}"
    run = record(["sh", "-c", command], tmp_path, "--stacks", "dwarf")
    assert run.done.stdout == "done\n", run.done.stderr
    (file,) = run.note["files"]
    assert (file["kind"], file["original"]) == ("map", "/tmp/perf-1.map")
    assert file["name"] == f"perf-{file['pid']}.map"
    assert run.share(HOT) >= 0.4


def test_an_old_map_in_a_container(tmp_path: Path) -> None:
    """A map of another process that had the same id in its container: ids there are small, and often the same."""
    if subprocess.run(["unshare", "-pfm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("namespaces are not permitted")
    old = "mount -t tmpfs none /tmp && echo 1000 7fffffffffff of_another > /tmp/perf-1.map"
    busy = "i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done; cat; echo done"
    inside = f"{old} && touch -d 2020-01-01 /tmp/perf-1.map && {busy}"
    command = f"{until_opened('perf-1.map')} | unshare --pid --fork --mount sh -c '{inside}'"
    run = record(["sh", "-c", command], tmp_path)
    assert run.done.stdout == "done\n", run.done.stderr
    assert len(in_containers(run)) == 1
    assert run.note["files"] == []
    assert run.share("of_another") == 0


def is_hot(run: Run) -> bool:
    return run.share(HOT, WARM) >= 0.4


def test_a_running_jvm(tmp_path: Path) -> None:
    """It is asked for a map of its code at the end, and continues to run."""
    need("java", "javac", "jcmd")
    text = (PROGRAMS / "Hot.java").read_text(encoding="utf-8")
    endless = text.replace(
        "long end = used() + 500", 'outer_warm(2000); System.out.println("ready"); long end = used() + 600_000'
    )
    (tmp_path / "Hot.java").write_text(endless, encoding="utf-8")
    subprocess.run(["javac", "Hot.java"], cwd=tmp_path, check=True)
    command = ["java", "-XX:+PreserveFramePointer", "Hot"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            run = record_until(is_hot, [], tmp_path, "--pid", str(process.pid))
            assert process.poll() is None
        finally:
            process.kill()
            Path(f"/tmp/perf-{process.pid}.map").unlink(missing_ok=True)
    assert run.done.returncode == 0, run.done.stderr
    assert is_hot(run)
    assert run.note["pid"] is None
    assert run.report()["title"] == f"java (pid {process.pid})"


def test_a_running_node(tmp_path: Path) -> None:
    """Its dump is copied and stays. V8 has not written all of it yet, which is stated."""
    endless = HOT_JS.read_text(encoding="utf-8").replace("500_000", "60_000_000")
    (tmp_path / "endless.js").write_text(f'console.log("ready");\n{endless}', encoding="utf-8")
    with subprocess.Popen(
        ["node", "--perf-prof", "endless.js"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            run = record_until(lambda run: run.note["files"], [], tmp_path, "--pid", str(process.pid))
            assert process.poll() is None
        finally:
            process.kill()
    assert (tmp_path / f"jit-{process.pid}.dump").exists()
    assert "copy it again when the process has ended" in run.done.stderr
    assert [file["name"] for file in run.note["files"]] == [f"jit-{process.pid}.dump"]


def test_a_process_that_is_not_there(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    run = record([], tmp_path, "--pid", str(ended.pid))
    assert run.done.returncode == 3
    assert "no process of that id" in run.done.stderr
    assert not run.directory.exists()


def pids_of(run: Run) -> set[int]:
    return {one["pid"] for one in run.note["processes"]}


def test_all_processes_for_a_time(tmp_path: Path) -> None:
    """Processes that perfuse did not start are there by name."""
    with subprocess.Popen([sys.executable, "-c", "while True: sum(range(100000))"]) as busy:
        try:
            run = record_until(lambda run: busy.pid in pids_of(run), [], tmp_path, "--system-wide")
        finally:
            busy.kill()
    assert run.done.returncode == 0, run.done.stderr
    assert busy.pid in pids_of(run)


def has_samples(perf_data: Path) -> bool:
    """Whether a recording that is being written has samples so far."""
    data = perf_data.read_bytes() if perf_data.exists() else b""
    at = int.from_bytes(data[DATA_SECTION:][:8], "little") or len(data)
    while at + RECORD_HEADER.size <= len(data):
        kind, _, size = RECORD_HEADER.unpack_from(data, at)
        if kind == SAMPLE or not size:
            return bool(size)
        at += size
    return False


def test_interrupted_while_recording_a_process(tmp_path: Path) -> None:
    """Without a program of its own, Ctrl-C ends the recording, which is whole."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: sum(range(100000))"])
    recording = subprocess.Popen(
        [*RECORD, "--stacks", "fp", "--perf-option=-m16", "--pid", str(busy.pid)],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        preexec_fn=default_signals,  # noqa: PLW1509 - there are no threads
    )
    try:
        while recording.poll() is None and not has_samples(tmp_path / "run" / "perf.data"):
            time.sleep(0.05)
        recording.send_signal(signal.SIGINT)
        _, errors = recording.communicate(timeout=600)
    finally:
        busy.kill()
        busy.wait()
    assert recording.returncode == 0, errors
    assert Run(None, tmp_path / "run").report()["events"][0]["samples"] > 0  # type: ignore[arg-type]


def test_the_end_of_the_duration(tmp_path: Path) -> None:
    """The program gets SIGTERM, and the exit code says that this was asked for; one of its own passes through."""
    run = record(["sleep", "600"], tmp_path, "--duration", "0.5")
    assert run.done.returncode == 0, run.done.stderr
    (tmp_path / "own").mkdir()
    own = "trap 'exit 4' TERM; echo ready; while :; do sleep 0.05; done"
    # It has to set its handler in that time.
    run = record_until(lambda run: run.done.stdout == "ready\n", ["bash", "-c", own], tmp_path / "own")
    assert run.done.returncode == 4


def test_an_existing_directory_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    run = record(["true"], tmp_path)
    assert run.done.returncode == 2
    assert "run exists" in run.done.stderr
    assert not list(run.directory.iterdir())


def test_the_default_directories_differ(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "perfuse", "record", "--no-report", "--", "true"]
    for _ in range(2):
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    made = sorted(path.name for path in tmp_path.iterdir())
    assert len(made) == 2
    assert all(name.startswith("perfuse-record-true-") for name in made)


def test_a_link_in_place_of_a_map_is_not_followed(tmp_path: Path) -> None:
    """Anybody may put a link at /tmp/perf-PID.map."""
    secret = tmp_path / "secret"
    secret.write_text("0 ffffffffffff secret\n", encoding="ascii")
    run = record(["sh", "-c", f"ln -s {secret} /tmp/perf-$$.map; echo $$"], tmp_path)
    link = Path(f"/tmp/perf-{run.done.stdout.strip()}.map")
    try:
        assert run.note["files"] == []
        assert link.is_symlink()
    finally:
        link.unlink()
