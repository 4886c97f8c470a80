"""The example's files under the names the documentation gives them, and the pages' own examples."""

import gzip
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

import perfuse as pf
from absent_modules import with_absent_modules
from perfuse import sframe

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "postcards"
TRACED = ROOT / "examples" / "xray_server"
UNWOUND = ROOT / "examples" / "unwind_tables"
SFRAME = ROOT / "crates" / "formats" / "sframe" / "src" / "testdata"
MANAGED = ROOT / "examples" / "mono_shop" / "output.mlpd.zst"
DUMPS = ("jit-32015.dump", "jit-4242.dump")


def copy_postcards(directory: Path, dump_names: Iterable[str]) -> None:
    """Writes the example's perf.data, without names of native functions, and its dump under each of the names."""
    perf_data = gzip.decompress((EXAMPLE / "perf.data.gz").read_bytes())
    (directory / "perf.data").write_bytes(with_absent_modules(perf_data))
    dump = gzip.decompress((EXAMPLE / "jit-32015.dump.gz").read_bytes())
    for name in dump_names:
        (directory / name).write_bytes(dump)


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> pf.Profile:
    """The profile that the documentation's queries are about."""
    directory = tmp_path_factory.mktemp("postcards")
    copy_postcards(directory, DUMPS[:1])
    return pf.fuse(directory / "perf.data", directory / DUMPS[0])


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with perf.data and its dump under each name a page uses."""
    copy_postcards(tmp_path, DUMPS)
    log = next(TRACED.glob("xray-log.*.zst"))
    shutil.copy(log, tmp_path)
    # The part of the program that contains its names.
    shutil.copy(TRACED / "server.o", tmp_path / "server")
    heap_log = (ROOT / "examples" / "mono_sessions" / "sessions.mlpd.gz").read_bytes()
    (tmp_path / "sessions.mlpd").write_bytes(gzip.decompress(heap_log))
    shutil.copy(UNWOUND / "orders", tmp_path)
    # The output of an earlier command of the page.
    sframe.from_eh_frame(UNWOUND / "orders").section.write_into(UNWOUND / "orders", tmp_path / "orders.new")
    shutil.copy(SFRAME / "lld22_v2.so", tmp_path / "libsmall.so")
    shutil.copy(MANAGED, tmp_path)
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
