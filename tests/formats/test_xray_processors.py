"""Processors of XRay logs: where the runtime reads a clock in place of the counter, it states 0 for each.

LLVM's `fdr_logging.cpp` and `xray_basic_logging.cpp`: `CPU = 0` beside `clock_gettime`; the rate in the header is that
of nanoseconds.
"""

import struct
import subprocess
import sys
from pathlib import Path

import pytest

import perfuse as pf
from xray_bytes import HZ, buffer, log

CALLS = [(0, 1, 10), (1, 1, 100)]


def cpus(path: Path) -> list[int | None]:
    rows = pf.fuse(path).sql("SELECT cpu FROM call_events ORDER BY ts_ns").fetchall()
    slices = pf.fuse(path).sql("SELECT cpu FROM slices ORDER BY start_ns").fetchall()
    assert [cpu for (cpu,) in slices] == [cpu for (cpu,) in rows][::2]
    return [cpu for (cpu,) in rows]


@pytest.mark.truth(recording="xray_fdr", path="report:calls", source="LLVM's fdr_logging.cpp; logs assembled here")
@pytest.mark.parametrize(
    ("hz", "numbers", "expected"),
    [(HZ, (0, 0), (None, None)), (HZ, (0, 3), (0, 3)), (2_500_000_000, (0, 0), (0, 0))],
)
def test_a_clock_has_no_processor(
    hz: int, numbers: tuple[int, int], expected: tuple[int | None, int | None], tmp_path: Path
) -> None:
    first, second = (
        buffer(begin * HZ, CALLS, tid=tid, cpu=cpu) for begin, tid, cpu in zip((1, 2), (7, 8), numbers, strict=True)
    )
    path = log(tmp_path / "xray-log.a.AAAAAA", first, second, hz=hz)
    assert cpus(path) == [expected[0], expected[0], expected[1], expected[1]]


@pytest.mark.truth(recording="xray_basic", path="report:calls", source="LLVM's xray_basic_logging.cpp")
@pytest.mark.parametrize(("hz", "cpu", "expected"), [(HZ, 0, None), (HZ, 2, 2), (3_000_000_000, 0, 0)])
def test_a_clock_in_basic_mode(hz: int, cpu: int, expected: int | None, tmp_path: Path) -> None:
    records = (struct.pack("<HBBiQIIQ", 0, cpu, kind, 1, at, 7, 7, 0) for kind, at in ((0, 1000), (1, 2000)))
    path = tmp_path / "xray-log.b.AAAAAA"
    path.write_bytes(struct.pack("<HHIQ16x", 3, 0, 3, hz) + b"".join(records))
    assert cpus(path) == [expected, expected]


def test_the_report_states_that_there_is_none(tmp_path: Path) -> None:
    buffers = [buffer(begin * HZ, CALLS, tid=begin) for begin in (1, 2)]
    path = log(tmp_path / "xray-log.a.AAAAAA", *buffers)
    command = [sys.executable, "-m", "perfuse", "report", path]
    done = subprocess.run([*command, "--by", "cpu"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no processor was recorded" in done.stderr
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "2 threads" in text
    assert "moved" not in text
