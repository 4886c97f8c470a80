"""The example's files under the names the documentation gives them, and the pages' own examples."""

import gzip
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perfuse import sframe

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "postcards"
TRACED = ROOT / "examples" / "xray_server"
UNWOUND = ROOT / "examples" / "unwind_tables"
SFRAME = ROOT / "crates" / "formats" / "sframe" / "src" / "testdata"
MANAGED = ROOT / "examples" / "mono_shop" / "output.mlpd.zst"
DUMPS = ("jit-32015.dump", "jit-4242.dump")


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with perf.data and its dump under each name a page uses."""
    (tmp_path / "perf.data").write_bytes(gzip.decompress((EXAMPLE / "perf.data.gz").read_bytes()))
    dump = gzip.decompress((EXAMPLE / "jit-32015.dump.gz").read_bytes())
    for name in DUMPS:
        (tmp_path / name).write_bytes(dump)
    log = next(TRACED.glob("xray-log.*.zst"))
    shutil.copy(log, tmp_path)
    # Of the program, the part that has the names is kept.
    shutil.copy(TRACED / "server.o", tmp_path / "server")
    shots = (ROOT / "examples" / "mono_sessions" / "sessions.mlpd.gz").read_bytes()
    (tmp_path / "sessions.mlpd").write_bytes(gzip.decompress(shots))
    shutil.copy(UNWOUND / "orders", tmp_path)
    # What a command of the page before makes.
    sframe.from_eh_frame(UNWOUND / "orders").section.write_into(UNWOUND / "orders", tmp_path / "orders.new")
    shutil.copy(SFRAME / "lld22_v2.so", tmp_path / "libsmall.so")
    shutil.copy(MANAGED, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """Where `perfuse` is this one, and lines are as wide as in the documentation."""
    here = Path(sys.executable).parent
    return {**os.environ, "PATH": f"{here}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100", "NO_COLOR": "1"}


@pytest.fixture(scope="session", autouse=True)
def _bash() -> None:
    assert shutil.which("bash")
    assert subprocess.run(["bash", "-c", "true"], check=False).returncode == 0
