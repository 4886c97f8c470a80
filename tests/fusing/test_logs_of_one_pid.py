"""A log of a runtime and several recordings with a process of its pid: pids are reused, and machines have their own.

Recordings and logs are assembled here: when they were written, and which log belongs to which, is planted.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import perfuse as pf
from fusing import mono_bytes
from perf_crafting import IP, TID, TIME, Attribute, PerfFile, comm, mmap2, sample
from truth.command import command_line

PID = 77
SECOND = 1_000_000_000
CODE = 0x7F0000001000
PERF_CLOCK_FLAG = 1 << 25


def recording(path: Path, start_ns: int, program: str, base: int, *, monotonic: bool = True) -> Path:
    """A recording of process 77 for a second: every sample is at the address of compiled code."""
    event = Attribute.of((1, 0), IP | TID | TIME)
    if not monotonic:
        event = Attribute(
            bytes(event.attr[:40]) + (event.flags & ~PERF_CLOCK_FLAG).to_bytes(8, "little") + event.attr[48:]
        )
    records = [comm(event, PID, PID, program), mmap2(event, PID, f"/bin/{program}", base, 0x1000)]
    records += [
        sample(event, ip=CODE + 4, pid=PID, tid=PID, time=start_ns + number * SECOND // 10) for number in range(10)
    ]
    return PerfFile([event], records).write(path)


def log(path: Path, start_ns: int) -> Path:
    """A log of process 77 that begins at a time, with compiled code."""
    path.write_bytes(mono_bytes.log(PID, [1000, 2000], start_ns=start_ns, code=[(CODE, 64, 10)]))
    return path


def joined(profile: pf.Profile) -> dict[str, str]:
    """The program of the process of each log."""
    rows = profile.sql(
        "SELECT s.path, any_value(p.name) FROM slices JOIN threads USING (thread_id) "
        "JOIN processes p USING (process_id) JOIN sources s ON s.source_id = slices.source_id GROUP BY 1"
    ).fetchall()
    return {Path(path).name: name for path, name in rows}


@pytest.mark.parametrize("swapped", [False, True])
def test_logs_are_of_the_recordings_of_their_time(tmp_path: Path, swapped: bool) -> None:
    recordings = [
        recording(tmp_path / "early.data", 100 * SECOND, "early", 0x10000),
        recording(tmp_path / "late.data", 900 * SECOND, "late", 0x20000),
    ]
    logs = [log(tmp_path / "early.mlpd", 100 * SECOND), log(tmp_path / "late.mlpd", 900 * SECOND)]
    given = [*reversed(recordings), *logs] if swapped else [*recordings, *logs]
    profile = pf.fuse(*given)
    assert joined(profile) == {"early.mlpd": "early", "late.mlpd": "late"}
    assert "FU023" not in {one.code for one in profile.diagnostics}


def test_where_clocks_do_not_state_the_time_the_choice_is_uncertain(tmp_path: Path) -> None:
    paths = [
        recording(tmp_path / f"{name}.data", 100 * SECOND, name, base, monotonic=False)
        for name, base in (("one", 0x10000), ("other", 0x20000))
    ]
    profile = pf.fuse(*paths, log(tmp_path / "a.mlpd", 100 * SECOND))
    (stated,) = [one for one in profile.diagnostics if one.code == "FU023"]
    assert stated.path == str(tmp_path / "a.mlpd")
    assert str(paths[1]) in stated.message
    assert joined(profile) == {"a.mlpd": "one"}


def test_where_clocks_do_not_state_the_time_the_recording_beside_the_log_has_its_process(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    one = recording(tmp_path / "one" / "perf.data", 100 * SECOND, "one", 0x10000, monotonic=False)
    other = recording(tmp_path / "other" / "perf.data", 100 * SECOND, "other", 0x20000, monotonic=False)
    profile = pf.fuse(one, other, log(tmp_path / "other" / "a.mlpd", 100 * SECOND))
    assert joined(profile) == {"a.mlpd": "other"}
    assert "FU023" not in {one.code for one in profile.diagnostics}


def test_threads_of_samples_do_not_count_as_reused_ids_of_the_log(tmp_path: Path) -> None:
    """Threads of samples have ids of the system, and none of the runtime."""
    event = Attribute.of((1, 0), IP | TID | TIME)
    records = [comm(event, PID, tid, "app") for tid in (PID, 90, 91)]
    records += [sample(event, ip=CODE + 4, pid=PID, tid=tid, time=100 * SECOND) for tid in (PID, 90, 91)]
    samples = PerfFile([event], records).write(tmp_path / "perf.data")
    text = command_line("report", samples, log(tmp_path / "a.mlpd", 100 * SECOND), "--section", "threads")
    assert "reused" not in text
    assert "Threads  4 threads" in text
