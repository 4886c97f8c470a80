"""A directory with small real recordings, command lines run in it, and goldens that their output is compared with."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Done, Perfuse

from absent_modules import with_absent_modules
from perfuse.cli import run
from xray_program import program

HERE = Path(__file__).parent
SFRAME = HERE.parents[1] / "crates" / "formats" / "sframe" / "src" / "testdata"


@pytest.fixture
def recordings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory: a dump, its perf.data (without names of native functions, which would depend on the
    machine), a damaged dump, XRay logs with their program, an object file, a library and a program with SFrame, a Mono
    log with heap snapshots."""
    for file in (HERE / "testdata").iterdir():
        shutil.copy(file, tmp_path)
    (tmp_path / "perf.data").write_bytes(with_absent_modules((HERE / "testdata" / "perf.data").read_bytes()))
    (tmp_path / "server").write_bytes(program())
    shutil.copy(SFRAME / "v2_nest_llvm22.o", tmp_path / "a.out")
    shutil.copy(SFRAME / "lld22_v2.so", tmp_path / "libsmall.so")
    shutil.copy(HERE.parents[1] / "examples" / "unwind_tables" / "orders", tmp_path)
    shutil.copy(HERE.parents[1] / "examples" / "mono_sessions" / "sessions.mlpd.gz", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def perfuse(recordings: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Perfuse:
    """Runs a command line, given its words and the width of the terminal."""
    assert recordings.is_dir()

    def call(*words: str, columns: int = 80) -> Done:
        monkeypatch.setenv("COLUMNS", str(columns))
        capfd.readouterr()
        code = run(words)
        captured = capfd.readouterr()
        return Done(code, captured.out, captured.err)

    return call


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compares text with a file in goldens/; PERFUSE_BLESS=1 writes the file."""

    def check(name: str, actual: str) -> None:
        path = HERE / "goldens" / name
        if os.environ.get("PERFUSE_BLESS"):
            path.write_text(actual, encoding="utf-8")
        assert path.exists(), f"no golden {name}: make it with PERFUSE_BLESS=1"
        assert actual == path.read_text(encoding="utf-8")

    return check
