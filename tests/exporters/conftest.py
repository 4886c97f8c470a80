"""Peers: the viewers' own loaders, installed into build/ on first use."""

import json
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small_profile import small_profile

from node_peers import node_modules

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CORPORA = Path(os.environ.get("PERFUSE_CORPUS", ROOT.parent / "shared" / "corpus"))
CORPUS = CORPORA / "jitdump"


@pytest.fixture
def small() -> Any:
    return small_profile()


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Real recordings, which are stored beside the repository."""
    if not CORPUS.exists():
        pytest.skip(f"no corpus at {CORPUS}")
    return CORPUS


@pytest.fixture(scope="session")
def heap_shots() -> Path:
    """A log of a runtime without samples, calls and allocations, which is stored beside the repository."""
    log = CORPORA / "mono" / "v17" / "heapshot.mlpd"
    if not log.exists():
        pytest.skip(f"no corpus at {log}")
    return log


@pytest.fixture(scope="session")
def traces() -> Path:
    """Real logs of calls, which are stored beside the repository."""
    if not (CORPORA / "xray").exists():
        pytest.skip(f"no corpus at {CORPORA / 'xray'}")
    return CORPORA / "xray"


@pytest.fixture(scope="session", params=["node24", "cpython313", "erlang27", "postgres15", "wasmtime50"])
def expected_script(request: pytest.FixtureRequest, corpus: Path) -> Path:
    """perf's own output for a real recording."""
    return corpus / "expected" / f"{request.param}.script.txt.gz"


@pytest.fixture
def golden() -> Any:
    """Compares text with a file in testdata/; PERFUSE_BLESS=1 writes the file."""

    def check(name: str, actual: str) -> None:
        path = HERE / "testdata" / name
        if os.environ.get("PERFUSE_BLESS"):
            path.write_text(actual, encoding="utf-8")
        assert actual == path.read_text(encoding="utf-8")

    return check


@pytest.fixture(scope="session")
def peers() -> Path:
    """node_modules with the viewers."""
    return node_modules(HERE / "peers" / "package.json")


class ProfilerCli:
    """The Firefox Profiler's own front end, without a window: a server with a profile that answers queries."""

    def __init__(self, node_modules: Path, sessions: Path) -> None:
        script = node_modules / "@firefox-devtools" / "profiler-cli" / "dist" / "profiler-cli.js"
        self._command = ["node", str(script)]
        self._known, self._socket = sessions / "test.json", sessions / "test.sock"
        self._environment = os.environ | {"PROFILER_CLI_SESSION_DIR": str(sessions)}
        self._server: subprocess.Popen[bytes] | None = None

    def load(self, path: Path | str) -> None:
        # Its own `load` gives the server half a second to start, which a busy machine may need longer for.
        command = [*self._command, "--daemon", str(path), "--session", "test"]
        self._server = subprocess.Popen(command, env=self._environment, stdout=subprocess.DEVNULL)
        # The command finds the server by this file.
        while (answer := self._answer({"type": "status"}))["type"] != "ready" or not self._known.exists():
            assert answer["type"] != "error", answer
            assert self._server.poll() is None, "the front end refused the profile"
            time.sleep(0.05)

    def ask(self, *command: str) -> Any:
        command = (*self._command, *command, "--json", "--session", "test")
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def functions(self, thread: str) -> list[dict[str, Any]]:
        """All functions of a thread."""
        return self._of_thread("functions", thread, functionFilters={})["functions"]  # type: ignore[no-any-return]

    def call_tree(self, thread: str) -> list[dict[str, Any]]:
        """The roots of a thread's whole tree of callees."""
        found = self._of_thread("samples-top-down", thread, callTreeOptions={"maxNodes": 1_000_000})
        return found["regularCallTree"]["children"]  # type: ignore[no-any-return]

    def markers(self, thread: str) -> list[dict[str, Any]]:
        """All markers of a thread."""
        found = self._of_thread("markers", thread, markerFilters={"list": True})
        return found.get("flatMarkers", [])  # type: ignore[no-any-return]

    def stop(self) -> None:
        if self._server:
            self._server.terminate()
            self._server.wait()

    def _of_thread(self, question: str, thread: str, **options: Any) -> Any:
        """What the command sends for a question: to start it for each of many threads takes longer than the answers."""
        command = {"command": "thread", "subcommand": question, "thread": thread, "includeIdle": True, **options}
        answer = self._answer({"type": "command", "command": command})
        assert answer["type"] == "success", answer
        return answer["result"]

    def _answer(self, message: dict[str, Any]) -> Any:
        """The server's answer to a message: a line each."""
        with socket.socket(socket.AF_UNIX) as connection:
            try:
                connection.connect(str(self._socket))
            except (FileNotFoundError, ConnectionRefusedError):
                return {"type": "loading"}
            connection.sendall(json.dumps(message).encode() + b"\n")
            return json.loads(connection.makefile("rb").readline())


@pytest.fixture
def profiler(peers: Path) -> Iterator[ProfilerCli]:
    # The path of a socket in it must be short.
    with tempfile.TemporaryDirectory(prefix="pq") as sessions:
        cli = ProfilerCli(peers, Path(sessions))
        yield cli
        cli.stop()
