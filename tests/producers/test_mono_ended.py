"""Logs of Mono programs that ended, were killed, or are cut between two buffers: none of them has a footer."""

import json
import signal
import struct
import subprocess
from pathlib import Path

import pytest

import perfuse as pf
from mlpd_events import read_events
from mono_programs import PATIENCE_S, TRIES, NeverEndsError, compiled, grows, under_profiler
from perfuse.watch import watch
from truth.command import run as run_perfuse

PROGRAM = Path(__file__).parent / "mono" / "Keeper.cs"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, compiled."""
    return compiled(PROGRAM, tmp_path_factory.mktemp("ended"))


def run(program: Path, log: Path, *, kill: bool) -> Path:
    """Runs the program until its log is large enough; then kills it, or lets it end."""
    options = "nodefaults,alloc,gcroot,heapshot=ondemand,heapshot-on-shutdown"
    for _ in range(TRIES):
        log.unlink(missing_ok=True)
        command = under_profiler(program, log, options)
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "running\n"
                # More than the profiler writes at first, which has the start of each thread.
                if not grows(log, 100_000):
                    continue
                if kill:
                    process.send_signal(signal.SIGKILL)
                else:
                    process.communicate("\n", timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                continue
            else:
                return log
            finally:
                process.kill()
    raise NeverEndsError


@pytest.fixture(scope="module")
def whole(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of a program that ended by itself."""
    return run(program, tmp_path_factory.mktemp("whole") / "whole.mlpd", kill=False)


@pytest.fixture(scope="module")
def killed(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of a program that was killed; what was written of its last buffer is cut away."""
    log = run(program, tmp_path_factory.mktemp("killed") / "killed.mlpd", kill=True)
    data = log.read_bytes()
    log.write_bytes(data[: [at for at in buffer_ends(data) if at <= len(data)][-1]])
    return log


def buffer_ends(data: bytes) -> list[int]:
    """Offsets at which the buffers of a log of profiler 3 end."""
    at = 38
    for _ in range(3):
        at += 4 + struct.unpack_from("<I", data, at)[0]
    ends = []
    while at + 48 <= len(data):
        magic, length = struct.unpack_from("<II", data, at)
        assert magic == 0x4D504C01
        at += 48 + length
        ends.append(at)
    return ends


def open_threads(log: Path) -> tuple[int, int]:
    """Number of threads whose start is in a log, and of them those without an end."""
    states = [event.byte for event in read_events(log) if event.byte in (0x22, 0x42) and event.values[0] == 5]
    return states.count(0x22), states.count(0x22) - states.count(0x42)


@pytest.mark.truth(
    recording="mono_allocations",
    path=["check", "info", "report:allocations"],
    source="a program that was killed by the test",
)
def test_a_killed_log_that_ends_with_a_buffer_states_what_is_missing(killed: Path) -> None:
    started, left = open_threads(killed)
    assert left == started > 3
    (found,) = [one for one in pf.open(killed).check() if one.code == "ML018"]
    assert found.message.startswith(f"{left} of {started} threads have no end (")
    assert "the heap shot on shutdown" in found.message
    for verb in ("check", "info", "report"):
        assert run_perfuse(verb, killed).returncode == 1
    assert "ML018" in run_perfuse("check", killed).stdout


@pytest.mark.truth(recording="mono_allocations", path="check", source="a program that ended by itself")
def test_a_log_is_whole_only_with_its_last_buffer(whole: Path, tmp_path: Path) -> None:
    assert open_threads(whole)[1] == 0
    assert run_perfuse("check", whole).returncode == 0
    data = whole.read_bytes()
    ends = buffer_ends(data)
    assert ends[-1] == len(data)
    cut = tmp_path / "cut.mlpd"
    for end in ends[3:-1]:
        cut.write_bytes(data[:end])
        started, left = open_threads(cut)
        codes = [one.message for one in pf.open(cut).findings() if one.code == "ML018"]
        assert len(codes) == (1 if left else 0)
        assert not codes or codes[0].startswith(f"{left} of {started} ")
    assert left, "the last buffer ends a thread"


@pytest.mark.truth(recording="mono_allocations", path="watch", source="a program that ended before the test")
def test_watch_ends_on_a_finished_log(whole: Path) -> None:
    done = run_perfuse("watch", "--json", "--every", "0.1", "--idle", "0.5", whole)
    assert done.returncode == 0
    looks = [json.loads(line) for line in done.stdout.splitlines()]
    assert looks[-1]["records"]["ALLOC_BT"] == sum(event.byte == 0x10 for event in read_events(whole))
    assert all(not look["new"] for look in looks[1:])
    # One each 0.1 s, until 0.5 s have passed.
    assert len(looks) <= 7


def test_watch_ends_with_a_killed_program(killed: Path) -> None:
    done = run_perfuse("watch", "--every", "0.1", "--idle", "0.2", killed)
    assert done.returncode == 1
    assert "1 loss of data" in done.stderr


def test_watch_waits_for_a_writer_that_is_not_visible(whole: Path, tmp_path: Path) -> None:
    """A file that grows although no process is seen to write it is watched until it stops growing."""
    data = whole.read_bytes()
    log = tmp_path / "log.mlpd"
    log.write_bytes(data[: len(data) // 2])
    sizes = []
    for look in watch(log, every_s=0.05, idle_s=0.6):
        sizes.append(look.size_bytes)
        if len(sizes) == 1:
            log.write_bytes(data)
    assert sizes[0] < sizes[1] == len(data)
    assert len(sizes) > 2
