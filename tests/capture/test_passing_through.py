"""The program runs as it does from a shell: streams, exit codes, signals, arguments, environment."""

from __future__ import annotations

import json
import os
import pty
import select
import shlex
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from needs import need

from .recorded import default_signals, record

PERFUSE = [sys.executable, "-m", "perfuse", "record", "--no-report", "-o"]
IGNORED = ["INT", "QUIT", "HUP", "TERM", "USR1", "USR2", "PIPE", "CHLD"]
STATUS = ["grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status"]


@pytest.fixture(autouse=True)
def _perf() -> None:
    need("perf")


@pytest.mark.parametrize("script", ["exit 0", "exit 7", "exit 255", "kill -SEGV $$", "kill -KILL $$", "kill -USR1 $$"])
def test_exit_codes_are_those_of_a_shell(tmp_path: Path, script: str) -> None:
    in_a_shell = subprocess.run(["sh", "-c", f"sh -c {shlex.quote(script)}; exit $?"], check=False, capture_output=True)
    run = record(["sh", "-c", script], tmp_path)
    assert run.done.returncode == in_a_shell.returncode
    assert run.note["exit_code"] == in_a_shell.returncode
    assert (run.directory / "perf.data").stat().st_size > 0


def test_a_command_that_does_not_exist(tmp_path: Path) -> None:
    run = record(["no-such-program"], tmp_path)
    assert (run.done.returncode, run.done.stdout) == (127, "")
    assert "no-such-program: command not found" in run.done.stderr
    assert not run.directory.exists()


def test_a_file_that_may_not_be_executed(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text", encoding="ascii")
    run = record([tmp_path / "text"], tmp_path)
    assert run.done.returncode == 126
    assert "chmod +x" in run.done.stderr
    assert not run.directory.exists()


def test_a_script_whose_interpreter_is_missing(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/nowhere/interpreter\n", encoding="ascii")
    script.chmod(0o755)
    run = record([script], tmp_path)
    assert run.done.returncode == 127, run.done.stderr
    assert "No such file" in run.done.stderr
    assert not run.directory.exists()


def test_a_script_without_an_interpreter_is_run_by_a_shell(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text('echo "$1"\nexit 9\n', encoding="ascii")
    script.chmod(0o755)
    run = record([script, "a b"], tmp_path)
    assert (run.done.returncode, run.done.stdout) == (9, "a b\n")


def test_streams_and_arguments_are_the_programs_own(tmp_path: Path) -> None:
    """Arguments that look like options, standard input, and bytes that are not text."""
    script = 'cat; printf "%s|" "$@"; echo error >&2'
    done = subprocess.run(
        [*PERFUSE, "run", "--", "sh", "-c", script, "sh", "--json", "-o", "--", ""],
        input=b"\xff\x00in\n",
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.stdout == b"\xff\x00in\n--json|-o|--||"
    assert done.stderr.startswith(b"error\n")


def test_a_descriptor_is_inherited(tmp_path: Path) -> None:
    (tmp_path / "input").write_text("from 5\n", encoding="ascii")
    command = shlex.join([*PERFUSE, "run", "--", "sh", "-c", "cat <&5"])
    done = subprocess.run(["bash", "-c", f"{command} 5< input"], cwd=tmp_path, capture_output=True, check=False)
    assert done.stdout == b"from 5\n", done.stderr


def test_only_what_was_opened_is_inherited(tmp_path: Path) -> None:
    """The pipes between perfuse, the program and perf are not the program's."""
    script = "ls /proc/self/fd | wc -l"
    bare = subprocess.run(["sh", "-c", script], capture_output=True, check=True, stdin=subprocess.DEVNULL)
    assert record(["sh", "-c", script], tmp_path).done.stdout == bare.stdout.decode()


@pytest.mark.parametrize("ignored", [[], ["INT", "QUIT"], ["HUP", "USR1"], ["PIPE"], IGNORED])
def test_ignored_signals_are_inherited_as_from_a_shell(tmp_path: Path, ignored: list[str]) -> None:
    """Compared with the same shell without perfuse. `exit` keeps the shell: it does not replace itself."""
    trap = f"trap '' {' '.join(ignored)}; " if ignored else ""
    bare = subprocess.run(
        ["bash", "-c", f"{trap}{shlex.join(STATUS)}; exit $?"], capture_output=True, text=True, check=True
    )
    command = shlex.join([*PERFUSE, "run", "--", *STATUS])
    done = subprocess.run(
        ["bash", "-c", f"{trap}{command}; exit $?"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == bare.stdout


def test_ignored_signals_from_python(tmp_path: Path) -> None:
    """Python restores SIGPIPE for its children: the program has it as they have."""
    bare = subprocess.run(
        STATUS,
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=default_signals,
    )
    assert record(STATUS, tmp_path).done.stdout == bare.stdout


def test_the_terminal_is_the_programs(tmp_path: Path) -> None:
    """On a terminal the program sees a terminal, and Ctrl-C is sent to it; the recording is completed afterwards."""
    script = "trap 'echo caught; exit 3' INT; test -t 0 && test -t 1 && echo ready; while :; do sleep 0.05; done"
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        default_signals()
        command = [*PERFUSE, "run", "--", "bash", "-c", script]
        os.execv(command[0], command)
    output = read_until(terminal, b"ready")
    os.write(terminal, b"\x03")
    output += read_until(terminal, None)
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert b"caught" in output, output
    assert os.waitstatus_to_exitcode(status) == 3, output
    assert (tmp_path / "run" / "record.json").exists()


def read_until(terminal: int, text: bytes | None) -> bytes:
    """The output of a terminal until it has a text, or ends."""
    output = b""
    while text is None or text not in output:
        readable, _, _ = select.select([terminal], [], [], 60)
        assert readable, output
        try:
            part = os.read(terminal, 4096)
        except OSError:  # the terminal has no process any more
            break
        if not part:
            break
        output += part
    return output


def test_sigterm_is_sent_on(tmp_path: Path) -> None:
    script = "trap 'echo ended; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
    with subprocess.Popen(
        [*PERFUSE, "run", "--", "bash", "-c", script],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=default_signals,  # noqa: PLW1509 - there are no threads
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=600)
    assert (process.returncode, output) == (5, "ended\n"), errors
    assert (tmp_path / "run" / "perf.data").exists()


def test_the_environment_keeps_what_is_set(tmp_path: Path) -> None:
    """Lists are added to; a value that is there stays; everything else is as it was."""
    given = {"NODE_OPTIONS": "--no-warnings", "JITDUMPDIR": "mine", "UNRELATED": "x y"}
    run = record(["sh", "-c", 'echo "$NODE_OPTIONS|$JITDUMPDIR|$UNRELATED"'], tmp_path, environment=given)
    assert run.done.stdout == "--no-warnings --perf-prof --interpreted-frames-native-stack|mine|x y\n"


def test_the_report_is_not_in_the_programs_output(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "perfuse", "record", "-o", "run", "--", "echo", "data"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "data\n"
    assert "wrote run" in done.stderr
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["run", "run.perfuse"])
def test_the_page_opens_at_the_end(tmp_path: Path, name: str) -> None:
    """The URL is the line after the program's output, and leads to a page about the recording."""
    words = [*PERFUSE, name, "--view", "--", "sh", "-c", "echo output; timeout 0.2 yes > /dev/null"]
    with subprocess.Popen(
        words,
        cwd=tmp_path,
        env={**os.environ, "BROWSER": "true"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        try:
            assert running.stdout.readline() == "output\n"
            address, _, token = running.stdout.readline().strip().partition("#t=")
            request = urllib.request.Request(f"{address}api/state", headers={"X-Perfuse-Token": token})
            with urllib.request.urlopen(request, timeout=600) as answer:
                assert json.load(answer)["state"] in ("opening", "ready")
        finally:
            running.terminate()
        assert running.stderr is not None
        assert "error" not in running.stderr.read()
