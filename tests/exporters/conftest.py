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
def golden() -> Any:
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
        subprocess.run(
            ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund"], cwd=build, check=True
        )
    return build / "node_modules"


class ProfilerCli:
    """The Firefox Profiler's own front end, without its windows."""

    def __init__(self, node_modules: Path, home: Path) -> None:
        self._command = [
            "node",
            str(node_modules / "@firefox-devtools" / "profiler-cli" / "dist" / "profiler-cli.js"),
        ]
        # A daemon keeps its socket below the home directory, whose path must be short.
        self._environment = os.environ | {"HOME": str(home)}
        self._session = ""

    def load(self, path: Path) -> None:
        # Its daemon has half a second to start, which a busy machine may not give it.
        for _ in range(20):
            self._session = uuid.uuid4().hex[:8]
            done = self._start("load", str(path), "--session", self._session)
            if "did not become ready" not in done.stderr:
                break
        assert done.returncode == 0, done.stderr

    def stop(self) -> None:
        self._start("stop", "--all")

    def ask(self, *command: str) -> Any:
        done = self._start(*command, "--json", "--session", self._session)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def _start(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._command, *command],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


@pytest.fixture
def profiler(peers: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProfilerCli]:
    cli = ProfilerCli(peers, tmp_path_factory.mktemp("h"))
    yield cli
    cli.stop()
