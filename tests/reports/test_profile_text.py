"""The report of samples in a terminal, from data defined here, so that the symbols of the machine do not matter."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

import perfuse as pf
from perfuse.analysis.sampled import Event
from perfuse.analysis.weights import FunctionWeight, GroupWeight, UnnamedFrames
from perfuse.joins import Join, Unwinding
from perfuse.reports.inputs import DiagnosticCount, Input
from perfuse.reports.profile import ProfileReport, profile_lines, profile_report
from perfuse.reports.text import Style

GOLDENS = Path(__file__).parent / "goldens"


def function(name: str, module: str | None, kind: str, weights: tuple[int, int], **known: Any) -> FunctionWeight:
    """A function with self and total weight; a sample weighs 10."""
    unknown = dict.fromkeys(("function_id", "path", "line", "column", "unnamed_because"))
    own, total = weights
    counts = {"self_weight": own, "total_weight": total, "self_samples": own // 10, "total_samples": total // 10}
    return FunctionWeight(
        **{"tiers": (), "is_declaration": True, **unknown, **counts, **known},
        name=name,
        module=module,
        kind=kind,
        origin=kind,
    )


CRC = function(
    "crc32", "[jit] V8", "jit", (620, 640), path="/srv/app/checksum.js", line=12, tiers=("turbofan", "maglev")
)
VISIT = "R<int> v8::internal::Scavenger::Visit<v8::internal::FullHeapObjectSlot>(v8::internal::Object*)"
REPORT = ProfileReport(
    title="node --perf-prof app.js",
    inputs=[
        Input("perf.data", "perf_data", "2", "perf 6.1", "x86_64"),
        Input("/tmp/jit-2345.dump", "jitdump", "1", "V8", "x86_64"),
        Input("jit-7.dump", "jitdump", "1", None, None),
    ],
    joins=[
        Join("/tmp/jit-2345.dump", 2345, "marker", "marker", -1_500_000_000, 20_000),
        Join("jit-7.dump", None, "unmatched", "none", 0, None),
    ],
    unwound=Unwinding(
        1234,
        {"sampled": 1234, "sframe": 8100, "eh_frame": 1500, "frame_pointer": 400},
        {"outermost": 1219, "cut": 12, "no_rule": 3},
        2048,
    ),
    start_ns=5_000_000_000,
    duration_ns=4_000_000_000,
    events=[
        Event("cpu-clock", "ns", 100, 1000, 5_010_000_000, 6_430_000_000),
        Event("cache-misses", "events", 7, 7, 5_000_000_000, 9_000_000_000),
    ],
    num_functions=6,
    top_self=[
        CRC,
        function(VISIT, "/usr/bin/node", "native", (200, 210)),
        function("clear_page_erms", "[kernel.kallsyms]_text", "kernel", (100, 100)),
        function("[unknown]", None, "unknown", (80, 80)),
    ],
    top_total=[
        function("main \x1b[31m日本", "/usr/bin/node", "native", (0, 1000)),
        CRC,
    ],
    processes=[GroupWeight("node 2345", "", 1000, 100)],
    threads=[GroupWeight("node 2345", "", 900, 90), GroupWeight("V8Worker 2346", "", 100, 10)],
    modules=[GroupWeight(f"/usr/lib/lib{n}.so", "native", 100 - n, 10) for n in range(10)],
    tiers=[
        GroupWeight("turbofan", "jit", 620, 62),
        GroupWeight("native", "native", 200, 20),
        GroupWeight("kernel", "kernel", 180, 18),
    ],
    unnamed=[
        UnnamedFrames("module file not found", "/opt/app/native.node", 5, 8),
        UnnamedFrames("no mapping", "", 1, 0),
    ],
    diagnostics=[DiagnosticCount("JD010", "data_loss", 1, 1, []), DiagnosticCount("JD007", "info", 2, 2, [])],
)


@pytest.mark.parametrize("columns", [80, 140])
@pytest.mark.parametrize("colour", [False, True])
def test_report(columns: int, colour: bool) -> None:
    text = "\n".join(profile_lines(REPORT, Style(colour, columns))) + "\n"
    path = GOLDENS / f"profile-{columns}{'-colour' if colour else ''}.txt"
    if os.environ.get("PERFUSE_BLESS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_json_is_as_documented() -> None:
    document = REPORT.as_json()
    assert document["events"][0] == {"name": "cpu-clock", "samples": 100, "weight": 1000, "unit": "ns"}
    assert document["top_self"][3] == {
        "name": "[unknown]",
        "module": "",
        "path": None,
        "line": None,
        "kind": "unknown",
        "tiers": [],
        "self_weight": 80,
        "total_weight": 80,
        "samples": 8,
    }
    assert document["tiers"][0] == {"name": "turbofan", "kind": "jit", "self_weight": 620, "samples": 62}
    contract = Path(__file__).parents[2] / "docs" / "reference" / "json.md"
    rows = re.search(r"\| `title`.*?\n\n", contract.read_text(encoding="utf-8"), re.DOTALL)
    assert rows is not None
    named = {name for row in rows[0].splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1] if row else "")}
    assert document.keys() == named | {"kind"}


def test_advice_for_code_of_a_dump_that_ends_early(jitdump_corpus: Path, tmp_path: Path) -> None:
    """V8 loses up to 2 MiB of a dump when its process is killed: the advice is not that a dump is missing."""
    produced = jitdump_corpus / "produced"
    dump = produced / "node20.dump"
    cut = tmp_path / dump.name
    cut.write_bytes(dump.read_bytes()[: dump.stat().st_size * 9 // 10 + 1])

    def advice(path: Path) -> str:
        report = profile_report(pf.fuse(produced / "node20.perf.data", path))
        return "".join(line for line in profile_lines(report, Style(width=None)) if "jit-PID.dump" in line)

    assert advice(cut).endswith(
        "records were lost (data_loss below), which may be those of this code; or its jit-PID.dump is missing"
    )
    assert "lost" not in advice(dump)
