"""What perf.data states to be missing: records of losses, in every kind that perf reports or does not."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import perf_crafting as crafting
import perfuse as pf
from perf_crafting import Attribute, PerfFile, Record

PID = 700
CLOCK = Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD, ids=[1])
BY_FILTER = 0x8000
"""`PERF_RECORD_MISC_LOST_SAMPLES_BPF`."""


def _found(tmp_path: Path, *records: Record) -> list[tuple[str, str, str]]:
    """Code, severity and message of the findings about records."""
    samples = [crafting.sample(CLOCK, ip=0x1000, pid=PID, tid=PID, time=time) for time in (1000, 3000)]
    file = PerfFile([CLOCK], [crafting.comm(CLOCK, PID, PID, "crafted"), samples[0], *records, samples[1]])
    findings = pf.open(file.write(tmp_path / "perf.data")).check()
    return [(one.code, str(one.severity), one.message) for one in findings if one.code != "PD007"]


@pytest.mark.parametrize(("misc", "code", "severity"), [(0, "PD005", "data_loss"), (BY_FILTER, "PD027", "info")])
def test_samples_that_a_filter_dropped_are_no_loss(tmp_path: Path, misc: int, code: str, severity: str) -> None:
    """perf 7.2 counts the latter as dropped, and `Total Lost Samples` of its report is 0."""
    body = struct.pack("<Q", 5) + CLOCK.sample_id(PID, PID, 2000)
    found = _found(tmp_path, Record(crafting.LOST_SAMPLES, misc, body))
    assert found == [(code, severity, "5 samples dropped")]


def test_losses_of_instruction_traces_are_reported(tmp_path: Path) -> None:
    """perf 7.2 warns of each: `AUX data lost 1 times out of 4!`, `had gaps in it`, `detected collision`."""
    records = [
        Record(crafting.AUX, 0, struct.pack("<QQQ", 64 * flags, 64, flags) + CLOCK.sample_id(PID, PID, 1500 + flags))
        for flags in (0, 1, 2, 4, 8)
    ]
    found = _found(tmp_path, *records)
    assert [(code, severity) for code, severity, _ in found] == [("PD028", "data_loss")] * 3
    assert [message.split()[-1] for _, _, message in found] == ["lost", "gaps", "lost"]


def test_errors_of_decoded_traces_are_reported(tmp_path: Path) -> None:
    """perf 7.2 warns: `1 instruction trace errors`."""
    body = struct.pack("<IIIIIIQQ64s", 1, 5, 0, PID, PID, 1, 0x1000, 2000, b"Lost trace data")
    assert _found(tmp_path, Record(crafting.AUXTRACE_ERROR, 0, body)) == [("PD029", "data_loss", "Lost trace data")]
