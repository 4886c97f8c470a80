"""A Mono program that runs while its log is read: the complete part of the log, and heap snapshots on demand."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

import perfuse as pf
from mono_programs import PATIENCE_S, TRIES, NeverEndsError, compiled, grows, recorded, under_profiler

PROGRAM = Path(__file__).parent / "mono" / "Keeper.cs"

LEAST_BYTES = 100_000
"""More than the profiler writes at first, which has allocations."""
OPTIONS = "nodefaults,alloc,gc,gcroot,heapshot=ondemand"


@dataclass
class Running:
    """A program, and the log it writes."""

    process: subprocess.Popen[str]
    log: Path
    has_ended: bool = False

    def ends(self) -> bool:
        """Asks the program to end; whether it does."""
        with suppress(subprocess.TimeoutExpired):
            self.process.communicate("\n", timeout=PATIENCE_S)
            self.has_ended = True
        return self.has_ended


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, compiled."""
    return compiled(PROGRAM, tmp_path_factory.mktemp("keeper"))


def runs(program: Path, directory: Path, options: str = OPTIONS) -> Iterator[Running]:
    """Runs of the program, each after it began to write its log, until one has ended when it was asked to."""
    log = directory / "live.mlpd"
    for _ in range(TRIES):
        log.unlink(missing_ok=True)
        command = under_profiler(program, log, options)
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "running\n"
                running = Running(process, log)
                if grows(log, LEAST_BYTES):
                    yield running
            finally:
                process.kill()
        if running.has_ended:
            return
    raise NeverEndsError


@pytest.mark.parametrize("more", ["", ",zip"], ids=["plain", "zip"])
def test_the_complete_part_is_read(program: Path, tmp_path: Path, more: str) -> None:
    for running in runs(program, tmp_path, OPTIONS + more):
        for _ in range(5):
            log = pf.open(running.log)
            assert log.is_growing
            assert log.summary.records["ALLOC_BT"] > 0
            assert not [d for d in log.findings() if d.is_finding]
            time.sleep(0.2)
        if running.ends():
            whole = pf.open(running.log)
            assert not whole.is_growing
            assert not [d for d in whole.findings() if d.severity != "info"]
            assert whole.summary.records["ALLOC_BT"] > log.summary.records["ALLOC_BT"]


def test_a_snapshot_on_demand(program: Path, tmp_path: Path) -> None:
    for running in runs(program, tmp_path):
        assert [pf.mono.heapshot(running.log, timeout_s=PATIENCE_S) for _ in range(2)] == [1, 2]
        command = [sys.executable, "-m", "perfuse", "mono", "heapshot", "--timeout", str(PATIENCE_S), running.log]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout == f"{running.log} has 3 heap snapshots\n"
        port = pf.open(running.log).header["port"]
        if running.ends():
            sql = "SELECT snapshot_id, count(*) FROM heap_objects GROUP BY 1 ORDER BY 1"
            snapshots = pf.fuse(running.log).sql(sql).fetchall()
            assert len(snapshots) == 3
            assert snapshots[0][1] < snapshots[2][1]
            # The port is the test's now, so that no other program listens on it.
            with socket.socket() as own:
                own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                own.bind(("", port))
                with pytest.raises(pf.UnreadableInput, match="no profiler listens"):
                    pf.mono.heapshot(running.log, port=port)


def test_watch_ends_with_the_program(program: Path, tmp_path: Path) -> None:
    for running in runs(program, tmp_path):
        command = [sys.executable, "-m", "perfuse", "watch", "--every", "0.2", "--json", running.log]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watch:
            assert watch.stdout is not None
            first = [watch.stdout.readline() for _ in range(3)]
            if not running.ends():
                watch.kill()
                continue
            rest, _ = watch.communicate(timeout=PATIENCE_S)
        looks = [json.loads(line) for line in [*first, *rest.splitlines()]]
        assert watch.returncode == 0
        records = pf.open(running.log).summary.records
        assert looks[-1]["records"] == records
        assert sum(look["new"].get("ALLOC_BT", 0) for look in looks) == records["ALLOC_BT"]


def test_a_profiler_without_a_command_port(program: Path, tmp_path: Path) -> None:
    log = recorded(program, tmp_path / "log.mlpd", "alloc", given="\n")
    with pytest.raises(pf.UsageError, match="no heap snapshots on demand"):
        pf.mono.heapshot(log)
    with pytest.raises(pf.UsageError, match="the profiler's port is unknown"):
        pf.mono.heapshot()
    with pytest.raises(pf.UsageError, match="65536 is not a port"):
        pf.mono.heapshot(port=65536)
