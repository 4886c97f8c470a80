"""`perfuse view` as a process: its first line, how it ends, and what it refuses."""

import http.client
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from perfuse.cli.app import context_of

DUMP = "jit-2345.dump"


RUN = """
import signal
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
from perfuse.cli import main
main()
"""
"""Runs the command. Signals may be ignored where tests run, and a process inherits that."""


class Running:
    """A running command, and requests to it."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        assert process.stdout is not None
        self.url = process.stdout.readline().strip()
        address, _, self.token = self.url.partition("/#t=")
        self.port = int(address.rpartition(":")[2])

    def get(self, question: str) -> Any:
        """The answer to a question."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request("GET", f"/api/{question}", headers={"X-Perfuse-Token": self.token})
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer

    def wait_until(self, *states: str) -> Any:
        """The state, when it is one of these."""
        state = self.get("state")
        while state["state"] not in states:
            state = self.get(f"state?after={state['generation']}")
        return state

    def end(self) -> tuple[int, str]:
        """Exit code and standard error, when it has ended."""
        _, err = self.process.communicate(timeout=600)
        return self.process.returncode, err


@contextmanager
def viewing(folder: Path, *words: str) -> Iterator[Running]:
    """The command in a folder; it is ended with the block."""
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, "view", "--no-browser", *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    )
    try:
        yield Running(process)
    finally:
        process.kill()
        process.communicate()


def test_the_first_line_is_the_url_of_a_page_that_has_the_recording(recordings: Path) -> None:
    with viewing(recordings, "perf.data", DUMP) as view:
        assert view.url.startswith(f"http://127.0.0.1:{view.port}/#t=")
        assert len(view.token) >= 43
        view.wait_until("ready")
        overview = view.get("overview")
        assert overview["events"] == [
            {"name": "cpu-clock", "unit": "ns", "samples": 553, "weight": 138250000, "is_sum": False}
        ]
        assert overview["command"] == f"perfuse report perf.data {DUMP}"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_ends_with_ctrl_c_and_with_the_terminal(recordings: Path, number: signal.Signals) -> None:
    with viewing(recordings, DUMP) as view:
        view.wait_until("ready")
        view.process.send_signal(number)
        assert view.end() == (0, "")
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", view.port)):
        pass


def test_it_ends_when_no_page_is_open(recordings: Path) -> None:
    with viewing(recordings, DUMP, "--idle", "0.1") as view:
        assert view.end() == (0, "perfuse: no page was open for 0.1 s\n")


@pytest.mark.parametrize("example", context_of("view").command.examples)
def test_examples_run(recordings: Path, example: str) -> None:
    _, _, *words = shlex.split(example.replace("2..5.5", "0..1"))
    (recordings / "src").mkdir(exist_ok=True)
    with viewing(recordings, *words) as view:
        assert view.wait_until("ready", "failed")["error"] is None
        view.process.send_signal(signal.SIGTERM)
        assert view.end()[0] in (0, 1)


def test_the_selection_of_the_command_line(recordings: Path) -> None:
    with viewing(recordings, "perf.data", DUMP, "--between", "..0.05") as view:
        view.wait_until("ready")
        part = view.get("functions?limit=0")["samples"]
    assert 0 < part < 553


def test_a_file_that_is_not_a_recording_is_an_error(recordings: Path) -> None:
    (recordings / "noise").write_bytes(b"no recording at all")
    with viewing(recordings, "noise") as view:
        code, err = view.end()
    assert code == 3
    assert err.startswith("perfuse: noise: unknown magic")


def test_a_file_that_does_not_exist_is_an_error_before_anything_is_served(recordings: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "perfuse", "view", "--no-browser", "jit-2346.dump"],
        cwd=recordings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert f"did you mean {DUMP}?" in done.stderr


def test_a_port_that_is_in_use_is_an_error(recordings: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "perfuse", "view", "--no-browser", "--port", str(port), DUMP],
            cwd=recordings,
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stdout) == (2, "")
    assert f"port {port} cannot be used" in done.stderr


def test_the_token_is_not_in_the_arguments_of_the_browser(recordings: Path, tmp_path: Path) -> None:
    """Every user can see the arguments of a process; the file that they name can be read by its owner only."""
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {seen}.new && mv {seen}.new {seen}\n', encoding="utf-8")
    browser.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, "view", DUMP],
        cwd=recordings,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "BROWSER": f"{browser} %s", "XDG_RUNTIME_DIR": str(tmp_path)},
    )
    try:
        view = Running(process)
        view.wait_until("ready")
        while not seen.exists():
            view.get("state?after=1")
        path = Path(seen.read_text(encoding="utf-8").strip().removeprefix("file://"))
        assert path.parent == tmp_path
        assert path.stat().st_mode & 0o777 == 0o600
        assert view.token not in seen.read_text(encoding="utf-8")
        assert view.url in path.read_text(encoding="utf-8")
        process.send_signal(signal.SIGTERM)
        assert view.end()[0] == 0
        assert not path.exists()
    finally:
        process.kill()
        process.communicate()
