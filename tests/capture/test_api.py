"""`perfuse.record` in Python: the run that it returns, and what it refuses."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import perfuse
from needs import need

from .recorded import HOT, PROGRAMS, WARM


@pytest.fixture(autouse=True)
def _perf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("perf", "cc")
    monkeypatch.chdir(tmp_path)


def test_a_recorded_run(tmp_path: Path) -> None:
    subprocess.run(["cc", "-g", "-O0", "-o", "hot", PROGRAMS / "hot.c"], check=True)
    run = perfuse.record(["./hot"], directory="run", frequency=199)
    assert (run.exit_code, run.recorder, run.command, run.error) == (0, "perf", ("./hot",), None)
    assert run.directory == tmp_path / "run"
    assert run.files == (tmp_path / "run" / "perf.data",)
    assert run.pid in {process.pid for process in run.processes}
    profile = run.profile()
    assert profile.title == "hot"
    names = {name for (name,) in profile.sql("SELECT name FROM functions").fetchall()}
    assert {HOT, WARM, "main"} <= names
    (period,) = {
        weight for (weight,) in profile.sql("SELECT DISTINCT weight FROM samples WHERE weight_unit = 'ns'").fetchall()
    }
    assert profile.sql("SELECT bool_and(cpu IS NOT NULL) FROM samples").fetchall() == [(True,)]
    # 199 samples per second of processor time.
    assert abs(period - 1e9 / 199) < 2


def test_a_recording_as_one_file(tmp_path: Path) -> None:
    """The file has the names, the lines and the machine code when program and sources are gone."""
    source = tmp_path / "hot.c"
    source.write_bytes((PROGRAMS / "hot.c").read_bytes())
    subprocess.run(["cc", "-g", "-O0", "-o", "hot", source], check=True)
    run = perfuse.record(["./hot"], directory="hot.perfuse", frequency=199)
    assert (run.exit_code, run.error) == (0, None)
    assert run.directory == tmp_path / "hot.perfuse"
    assert run.files == (run.directory,)
    for path in (source, tmp_path / "hot"):
        path.unlink()
    assert [path.name for path in tmp_path.iterdir()] == ["hot.perfuse"]
    words = [sys.executable, "-m", "perfuse", "annotate", "hot.perfuse", HOT, "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    assert "sum += (sum ^ 0x5DEECE6) / i;" in done.stdout
    with pytest.raises(perfuse.UsageError, match="exists"):
        perfuse.record(["true"], directory="hot.perfuse")


def test_a_program_that_a_signal_ends() -> None:
    run = perfuse.record(["sh", "-c", "kill -TERM $$"], directory="run")
    assert run.exit_code == 128 + signal.SIGTERM


def test_in_a_thread() -> None:
    """Signals are delivered to the main thread: here the program is recorded without changing their handlers."""
    before = signal.getsignal(signal.SIGTERM)
    runs: list[perfuse.RecordedRun] = []
    thread = threading.Thread(target=lambda: runs.append(perfuse.record(["true"], directory="run")))
    thread.start()
    thread.join()
    assert [run.exit_code for run in runs] == [0]
    assert signal.getsignal(signal.SIGTERM) is before


def test_handlers_are_restored_and_descriptors_closed() -> None:
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)]
    gc.collect()  # files of earlier tests
    descriptors = set(os.listdir("/proc/self/fd"))  # noqa: PTH208 - descriptors, not files
    perfuse.record(["true"], directory="run")
    gc.collect()  # an open recording is a reference cycle
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)] == handlers
    assert set(os.listdir("/proc/self/fd")) <= descriptors  # noqa: PTH208


def test_what_cannot_be_recorded(tmp_path: Path) -> None:
    with pytest.raises(perfuse.RecordingError) as missing:
        perfuse.record(["true"], perf="/nowhere/perf")
    assert missing.value.hint is not None
    assert "linux-perf" in missing.value.hint
    with pytest.raises(perfuse.RecordingError, match="command not found"):
        perfuse.record(["no-such-program"])
    with pytest.raises(perfuse.UsageError, match="nothing to record"):
        perfuse.record()
    with pytest.raises(perfuse.RecordingError, match="perf did not start: event syntax error") as event:
        perfuse.record(["touch", "made"], event="no-such-event", directory="out")
    assert event.value.hint == "`perf list` lists the events that --event takes"
    with pytest.raises(perfuse.RecordingError, match="unknown option `no-such'") as option:
        perfuse.record(["touch", "made"], perf_options=["--no-such"], directory="out")
    assert option.value.hint == "`perf record -h` lists what --perf-option takes"
    with pytest.raises(perfuse.UsageError, match="there is no directory") as nowhere:
        perfuse.record(["touch", "made"], directory=tmp_path / "no" / "out")
    assert nowhere.value.hint == f"`mkdir -p {tmp_path / 'no'}` makes it"
    assert not list(tmp_path.iterdir())


UNTIL_BUSY = """
busy() { read -a fields < /proc/$1/stat; echo ${fields[13]}; }
end=$(($(busy $1) + 20)); while [ $(busy $1) -lt $end ]; do sleep 0.1; done
"""
"""A program that ends when a process has used another 0.2 s of the processor's time."""


def test_files_of_other_processes_stay(tmp_path: Path) -> None:
    """A recording of the whole machine removes nothing of processes that it did not start."""
    program = "import os, time; open(f'/tmp/perf-{os.getpid()}.map', 'w').close(); print(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout is not None
            other.stdout.readline()
            os.utime(f"/tmp/perf-{other.pid}.map", (4e9, 4e9))  # as if it was still being written
            run = perfuse.record(["bash", "-c", UNTIL_BUSY, "bash", str(other.pid)], system_wide=True, directory="run")
            assert other.pid in {process.pid for process in run.processes}
            assert Path(f"/tmp/perf-{other.pid}.map").exists()
        finally:
            other.kill()
            Path(f"/tmp/perf-{other.pid}.map").unlink(missing_ok=True)
    assert (tmp_path / "run" / f"perf-{other.pid}.map").exists()
