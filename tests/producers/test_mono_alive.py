"""A Mono program that runs while its log is read: the complete part of the log, and heap snapshots on demand."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import perfuse as pf

PROGRAM = Path(__file__).parent / "mono" / "Keeper.cs"

pytestmark = pytest.mark.skipif(
    shutil.which("mono") is None or shutil.which("mcs") is None, reason="mono is not installed"
)


@dataclass(frozen=True)
class Running:
    """A program, and the log it writes."""

    process: subprocess.Popen[str]
    log: Path

    def stop(self) -> None:
        """Ends the program."""
        self.process.communicate("\n", timeout=30)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, compiled."""
    out = tmp_path_factory.mktemp("keeper") / "Keeper.exe"
    subprocess.run(["mcs", f"-out:{out}", PROGRAM], check=True, capture_output=True)
    return out


@pytest.fixture(params=["plain", "zip"])
def running(request: pytest.FixtureRequest, program: Path, tmp_path: Path) -> Iterator[Running]:
    """The program under the profiler, after it began to write."""
    log = tmp_path / "live.mlpd"
    options = "nodefaults,alloc,gc,gcroot,heapshot=ondemand" + (",zip" if request.param == "zip" else "")
    command = ["mono", f"--profile=log:{options},output={log}", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        end = time.monotonic() + 20
        while (not log.exists() or log.stat().st_size < 20_000) and time.monotonic() < end:
            time.sleep(0.1)
        yield Running(process, log)
        if process.poll() is None:
            process.kill()


def test_the_complete_part_is_read(running: Running) -> None:
    for _ in range(5):
        log = pf.open(running.log)
        assert log.is_growing
        assert log.summary.records["ALLOC_BT"] > 0
        assert not [d for d in log.findings() if d.is_finding]
        time.sleep(0.2)
    running.stop()
    whole = pf.open(running.log)
    assert not whole.is_growing
    assert not [d for d in whole.findings() if d.severity != "info"]
    assert whole.summary.records["ALLOC_BT"] > log.summary.records["ALLOC_BT"]


@pytest.mark.parametrize("running", ["plain"], indirect=True)
def test_a_snapshot_on_demand(running: Running) -> None:
    assert [pf.mono.heapshot(running.log), pf.mono.heapshot(running.log)] == [1, 2]
    command = [sys.executable, "-m", "perfuse", "mono", "heapshot", running.log]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"{running.log} has 3 heap snapshots\n"
    port = pf.open(running.log).header["port"]
    running.stop()
    snapshots = (
        pf.fuse(running.log).sql("SELECT snapshot_id, count(*) FROM heap_objects GROUP BY 1 ORDER BY 1").fetchall()
    )
    assert len(snapshots) == 3
    assert snapshots[0][1] < snapshots[2][1]
    with pytest.raises(pf.UnreadableInput, match="no profiler listens"):
        pf.mono.heapshot(running.log, port=port)


@pytest.mark.parametrize("running", ["plain"], indirect=True)
def test_watch_ends_with_the_program(running: Running) -> None:
    command = [sys.executable, "-m", "perfuse", "watch", "--every", "0.2", "--json", running.log]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watch:
        time.sleep(0.8)
        running.stop()
        out, _ = watch.communicate(timeout=30)
    looks = [json.loads(line) for line in out.splitlines()]
    assert len(looks) > 2
    assert watch.returncode == 0
    records = pf.open(running.log).summary.records
    assert looks[-1]["records"] == records
    assert sum(look["new"].get("ALLOC_BT", 0) for look in looks) == records["ALLOC_BT"]


def test_a_profiler_without_a_command_port(program: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.mlpd"
    command = ["mono", f"--profile=log:alloc,output={log}", program]
    subprocess.run(command, input="\n", text=True, check=True, stdout=subprocess.DEVNULL)
    with pytest.raises(pf.UsageError, match="no heap snapshots on demand"):
        pf.mono.heapshot(log)
    with pytest.raises(pf.UsageError, match="the profiler's port is unknown"):
        pf.mono.heapshot()
    with pytest.raises(pf.UsageError, match="65536 is not a port"):
        pf.mono.heapshot(port=65536)
