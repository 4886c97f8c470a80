"""Peers: the viewers' own loaders, installed into build/ on first use."""

import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small_profile import small_profile

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CORPUS = Path(os.environ.get("PERFUSE_CORPUS", ROOT.parent / "shared" / "corpus")) / "jitdump"


@pytest.fixture
def small() -> Any:
    return small_profile()


@pytest.fixture(scope="session", params=["node24", "cpython313", "erlang27", "postgres15", "wasmtime50"])
def expected_script(request: pytest.FixtureRequest) -> Path:
    """What perf itself printed of a real recording."""
    path = CORPUS / "expected" / f"{request.param}.script.txt.gz"
    if not path.exists():
        pytest.skip(f"no corpus at {CORPUS}")
    return path


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Any:
    """Holds text against a file in testdata/; PERFUSE_BLESS=1 writes it anew."""

    def check(name: str, actual: str) -> None:
        path = HERE / "testdata" / name
        if os.environ.get("PERFUSE_BLESS"):
            path.write_text(actual, encoding="utf-8")
        assert actual == path.read_text(encoding="utf-8")

    return check


@pytest.fixture(scope="session")
def peers() -> Path:
    """node_modules with the viewers."""
    if not shutil.which("npm"):
        pytest.skip("npm is not installed")
    build = ROOT / "build" / "exporter-peers"
    build.mkdir(parents=True, exist_ok=True)
    wanted = (HERE / "peers" / "package.json").read_text()
    here = build / "package.json"
    if not here.exists() or here.read_text() != wanted or not (build / "node_modules").exists():
        here.write_text(wanted)
        subprocess.run(["npm", "install", "--no-package-lock", "--no-audit", "--no-fund"], cwd=build, check=True)
    return build / "node_modules"


class ProfilerCli:
    """The Firefox Profiler's own front end, without its windows."""

    def __init__(self, node_modules: Path, home: Path) -> None:
        self._command = ["node", str(node_modules / "@firefox-devtools" / "profiler-cli" / "dist" / "profiler-cli.js")]
        # A daemon keeps its socket below the home directory, whose path must be short.
        self._environment = os.environ | {"HOME": str(home)}
        self._session = uuid.uuid4().hex[:8]

    def load(self, path: Path) -> None:
        self._run("load", str(path))

    def stop(self) -> None:
        self._run("stop", self._session, session=False)

    def ask(self, *command: str) -> Any:
        return json.loads(self._run(*command, "--json"))

    def _run(self, *command: str, session: bool = True) -> str:
        arguments = [*self._command, *command, *(["--session", self._session] if session else [])]
        done = subprocess.run(arguments, env=self._environment, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout


@pytest.fixture
def profiler(peers: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProfilerCli]:
    cli = ProfilerCli(peers, tmp_path_factory.mktemp("h"))
    yield cli
    cli.stop()
