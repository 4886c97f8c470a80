"""The report of samples as a terminal shows it, from data of its own: no machine's symbols matter."""

import os
from pathlib import Path

import pytest

from perfuse.reports.profile import DiagnosticCount, Input, JoinedDump, ProfileReport, Unnamed
from perfuse.reports.profile_text import profile_lines
from perfuse.reports.style import Style
from perfuse.reports.weights import Event, FunctionWeight, Share

GOLDENS = Path(__file__).parent / "goldens"
CRC = FunctionWeight("crc32", "[jit] V8", "/srv/app/checksum.js", 12, "jit", ["turbofan", "maglev"], 620, 640, 62)
VISIT = "R<int> v8::internal::Scavenger::Visit<v8::internal::FullHeapObjectSlot>(v8::internal::Object*)"
REPORT = ProfileReport(
    title="node --perf-prof app.js",
    inputs=[
        Input("perf.data", "perf_data", "2", "perf 6.1", "x86_64"),
        Input("/tmp/jit-2345.dump", "jitdump", "1", "V8", "x86_64"),
        Input("jit-7.dump", "jitdump", "1", None, None),
    ],
    joins=[
        JoinedDump("/tmp/jit-2345.dump", 2345, "marker", "marker", -1_500_000_000, 20_000),
        JoinedDump("jit-7.dump", None, "unmatched", "none", 0, None),
    ],
    start_ns=5_000_000_000,
    duration_ns=1_420_000_000,
    events=[Event("cpu-clock", 100, 1000, "ns"), Event("cache-misses", 7, 7, "events")],
    top_self=[
        CRC,
        FunctionWeight(VISIT, "/usr/bin/node", None, None, "native", [], 200, 210, 20),
        FunctionWeight("clear_page_erms", "[kernel.kallsyms]", None, None, "kernel", [], 100, 100, 10),
        FunctionWeight("[unknown]", "", None, None, "unknown", [], 80, 80, 8),
    ],
    top_total=[
        FunctionWeight("main \x1b[31m日本", "/usr/bin/node", None, None, "native", [], 0, 1000, 0),
        CRC,
    ],
    processes=[Share("node 2345", "", 1000, 100)],
    threads=[Share("node 2345", "", 900, 90), Share("V8Worker 2346", "", 100, 10)],
    modules=[Share(f"/usr/lib/lib{n}.so", "native", 100 - n, 10) for n in range(10)],
    tiers=[Share("turbofan", "jit", 620, 62), Share("native", "native", 200, 20), Share("kernel", "kernel", 180, 18)],
    unnamed=[Unnamed("module file not found", "/opt/app/native.node", 5, 8), Unnamed("no mapping", "", 1, 0)],
    diagnostics=[DiagnosticCount("JD010", "data_loss", 1, 1), DiagnosticCount("JD007", "info", 2, 2)],
)


@pytest.mark.parametrize("columns", [80, 140])
@pytest.mark.parametrize("colour", [False, True])
def test_report(columns: int, colour: bool) -> None:
    text = "\n".join(profile_lines(REPORT, Style(colour, columns))) + "\n"
    path = GOLDENS / f"profile-{columns}{'-colour' if colour else ''}.txt"
    if os.environ.get("PERFUSE_BLESS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
