"""The examples' files under the names the documentation gives them, and the pages' own examples."""

import gzip
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import perfuse as pf
from absent_modules import with_absent_modules
from perfuse import sframe

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "postcards"
TRACED = ROOT / "examples" / "xray_server"
UNWOUND = ROOT / "examples" / "unwind_tables"
MANAGED = ROOT / "examples" / "mono_shop" / "output.mlpd.zst"
DUMP = "jit-32015.dump"


def copy_postcards(directory: Path) -> None:
    """Writes the example's perf.data, without names of native functions, and its dump."""
    perf_data = gzip.decompress((EXAMPLE / "perf.data.gz").read_bytes())
    (directory / "perf.data").write_bytes(with_absent_modules(perf_data))
    (directory / DUMP).write_bytes(gzip.decompress((EXAMPLE / f"{DUMP}.gz").read_bytes()))


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> pf.Profile:
    """The profile that the documentation's queries are about."""
    directory = tmp_path_factory.mktemp("postcards")
    copy_postcards(directory)
    return pf.fuse(directory / "perf.data", directory / DUMP)


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with the files of the examples under the names that the pages use."""
    copy_postcards(tmp_path)
    log = next(TRACED.glob("xray-log.*.zst"))
    shutil.copy(log, tmp_path)
    # The part of the program that contains its names.
    shutil.copy(TRACED / "server.o", tmp_path / "server")
    heap_log = (ROOT / "examples" / "mono_sessions" / "sessions.mlpd.gz").read_bytes()
    (tmp_path / "sessions.mlpd").write_bytes(gzip.decompress(heap_log))
    shutil.copy(UNWOUND / "orders", tmp_path)
    # The output of an earlier command of the page.
    sframe.from_eh_frame(UNWOUND / "orders").section.write_into(UNWOUND / "orders", tmp_path / "orders.new")
    shutil.copy(UNWOUND / "libsmall.so", tmp_path)
    shutil.copy(MANAGED, tmp_path)
    shutil.copy(EXAMPLE / "postcards.js", tmp_path)
    for side in ("before", "after"):
        shutil.copytree(ROOT / "examples" / "slower" / side, tmp_path / side)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """The environment in which `perfuse` is this one, and lines are as wide as in the documentation."""
    here = Path(sys.executable).parent
    return {**os.environ, "PATH": f"{here}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100", "NO_COLOR": "1"}


@pytest.fixture(scope="session", autouse=True)
def _bash() -> None:
    assert shutil.which("bash")
    assert subprocess.run(["bash", "-c", "true"], check=False).returncode == 0
