"""Samples of other recorders as a Mono log, whose samples state no event: mprof-report counts those of one."""

import re
from collections import Counter
from pathlib import Path

import pytest
from tools import output_of

import perfuse as pf
from needs import need
from perfuse.errors import ExportWarning

RECORDED = Path(__file__).parents[1] / "truth" / "recorded" / "perf_machine"


@pytest.fixture(scope="module")
def delivered() -> Counter[str]:
    """Number of samples of each event that perf 7.2 prints."""
    text = (RECORDED / "group.perf-7.2.txt").read_text()
    return Counter(re.findall(r"^\S+\s+\d+\s+\d+\.\d{9}:\s+\d+\s+([\w-]+):\s*$", text, re.MULTILINE))


def hits(log: Path) -> int:
    found = re.findall(
        r"(?:Unmanaged|Managed|Unresolved) hits: +(\d+)", output_of("mprof-report", "--reports=sample", log)
    )
    return sum(map(int, found))


def test_samples_are_of_the_event_that_reports_show(tmp_path: Path, delivered: Counter[str]) -> None:
    need("mprof-report")
    ((shown, number),) = delivered.most_common(1)
    assert len(delivered) > 1
    with pytest.warns(ExportWarning, match=f"only event {shown} is written, not "):
        pf.fuse(RECORDED / "group.perf.data").export(tmp_path / "a.mlpd")
    assert hits(tmp_path / "a.mlpd") == number


def test_another_event(tmp_path: Path, delivered: Counter[str]) -> None:
    need("mprof-report")
    for event, number in delivered.items():
        pf.fuse(RECORDED / "group.perf.data").export(tmp_path / "a.mlpd", event=event)
        assert hits(tmp_path / "a.mlpd") == number
    with pytest.raises(pf.UsageError, match="no samples of event 'nothing'"):
        pf.fuse(RECORDED / "group.perf.data").export(tmp_path / "b.mlpd", event="nothing")
