"""Targets of single events name the sums by stack that they leave out: time off the processor, calls, allocations."""

import io
import json
import warnings
from pathlib import Path

import pytest

import perfuse as pf
from perfuse.errors import ExportError, ExportWarning, UsageError
from perfuse.exporters import export

ROOT = Path(__file__).parents[2]
SWITCHES = ROOT / "tests" / "truth" / "recorded" / "perf_machine" / "switches.perf.data"
SERVER = ROOT / "examples" / "xray_server" / "xray-log.server.KJtK6H.zst"


@pytest.mark.parametrize("target", ["chrome", "perfetto", "perf-script"])
def test_time_off_the_processor(target: str, tmp_path: Path) -> None:
    with pytest.warns(ExportWarning, match=r"not written to .*: off-cpu, which are sums by stack: firefox") as noted:
        export(pf.fuse(SWITCHES, follow="none"), tmp_path / "out", to=target)
    assert len(noted) == 1


def test_calls_beside_samples(tmp_path: Path) -> None:
    both = pf.fuse(SWITCHES, SERVER, follow="none")
    with pytest.warns(ExportWarning, match="not written to text of perf script: calls, off-cpu, wall-time, which"):
        export(both, tmp_path / "text", to="perf-script")
    with pytest.warns(ExportWarning, match=r"not written to Chrome trace events: off-cpu, which"):
        export(both, tmp_path / "trace", to="chrome")


@pytest.mark.parametrize("target", ["firefox", "speedscope", "pprof", "otlp"])
def test_targets_of_sums_have_them(target: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExportWarning)
        export(pf.fuse(SWITCHES, follow="none"), tmp_path / "out", to=target)
    assert b"off-cpu" in (tmp_path / "out").read_bytes() or b"off_cpu" in (tmp_path / "out").read_bytes()


def test_a_mono_log_has_no_sums() -> None:
    for file, event in ((SWITCHES, "off-cpu"), (SERVER, "wall-time")):
        with pytest.raises(UsageError, match=f"{event} are sums by stack, and a Mono log has single samples"):
            export(pf.fuse(file, follow="none"), io.BytesIO(), to="mono", event=event)


def test_a_filter_of_stacks_leaves_no_counters_of_all_allocations(tmp_path: Path) -> None:
    """Of the strings alone, counters *had* the bytes of all objects."""
    strings = pf.fuse(ROOT / "examples" / "mono_sessions" / "sessions.mlpd.gz").only("System.String")
    with pytest.warns(ExportWarning, match="counters of allocations are not written"):
        export(strings, tmp_path / "out", to="chrome")
    names = {event["name"] for event in json.loads((tmp_path / "out").read_bytes())["traceEvents"]}
    assert "GC: # minor collections" in names or any(name.startswith("GC") for name in names)
    assert not [name for name in names if name.startswith("Allocated so far")]


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("perf-script", "there are only sums by stack, and text of perf script has single samples"),
        ("mono", "the profile has no single allocations, calls or samples"),
    ],
)
def test_collapsed_stacks_are_sums(target: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "stacks.collapsed").write_text("main;work 3\n")
    with pytest.raises(ExportError, match=reason):
        export(pf.fuse(tmp_path / "stacks.collapsed"), io.BytesIO(), to=target)
