"""A program recorded by perf and XRay at once: samples and calls are two parts with units and totals of their own.

`programs/busy_calls.c`: `busy` is called 8 times for 30 ms and 16 times for 10 ms, by functions that jump to it.
"""

import gzip
import json
import re
import subprocess
from pathlib import Path

import pytest

from needs import need
from perfuse.profile import Profile

from .command import output
from .kinds import Kind

CALLS = {"work": 1, "step": 8, "busy_30ms": 8, "busy_10ms": 16, "busy": 24}
BUSY_MS = 8 * 30 + 16 * 10
OPTIONS = ["--limit", "0"]


def report(kind: Kind, *how: str) -> str:
    return output("report", *kind.paths, *kind.map_options, *OPTIONS, *how)


@pytest.fixture
def sampled(kind: Kind, tmp_path: Path) -> list[tuple[str, int]]:
    """Event and period of each sample, as perf prints them."""
    need("perf")
    data = tmp_path / "perf.data"
    data.write_bytes(gzip.decompress(kind.paths[0].read_bytes()))
    command = ["perf", "script", "-i", data, "-F", "event,period"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = (line.split() for line in done.stdout.splitlines() if line.strip())
    return [(event.removesuffix(":"), int(period)) for period, event in rows]


@pytest.mark.truth(
    recording="perf_xray",
    path=["report", "report:profile_with_calls"],
    source="perf script; the calls and times that the program's text states",
)
def test_samples_and_calls_have_their_own_totals(kind: Kind, sampled: list[tuple[str, int]]) -> None:
    document = json.loads(report(kind, "--json"))
    weight = sum(period for _, period in sampled)
    # Sums of calls are not samples.
    assert document["events"] == [{"name": "cpu-clock", "samples": len(sampled), "weight": weight, "unit": "ns"}]
    assert sum(one["self_weight"] for one in document["top_self"]) == weight
    calls = document["calls"]
    assert calls["unit"] == "ns"
    assert calls["totals"]["num_calls"] == sum(CALLS.values())
    assert {one["name"]: one["num_calls"] for one in calls["functions"]} == CALLS
    own = {one["name"]: one["self_ns"] / 1e6 for one in calls["functions"]}
    # A time slice of another program may lie in a call.
    assert BUSY_MS <= own["busy"] < 1.15 * BUSY_MS
    assert sum(own.values()) == pytest.approx(own["busy"], rel=0.001)
    text = report(kind)
    assert re.search(rf"^  samples +{len(sampled)} of cpu-clock over ", text, re.MULTILINE)
    assert re.search(rf"^ +{weight / 1e6:.0f} ms in all$", text, re.MULTILINE)
    assert re.search(rf"^  calls +{sum(CALLS.values())} of {len(CALLS)} functions over ", text, re.MULTILINE)
    assert "of wall-time" not in text
    table = text.partition("\nCalled functions")[2].partition("\n\n")[0]
    for name, count in CALLS.items():
        assert re.search(rf" {count} .* {name}( |$)", table, re.MULTILINE), name


@pytest.mark.truth(recording="perf_xray", path=["query", "api:Profile.sql"], source="perf script; the program's text")
def test_weights_of_each_event_add_up(profile: Profile, sampled: list[tuple[str, int]]) -> None:
    unit = "any_value(weight_unit::VARCHAR)"
    sql = f"SELECT event::VARCHAR, {unit}, sum(weight)::BIGINT FROM samples GROUP BY event ORDER BY event::VARCHAR"
    calls, clock, wall = profile.sql(sql).fetchall()
    assert calls == ("calls", "calls", sum(CALLS.values()))
    assert clock == ("cpu-clock", "ns", sum(period for _, period in sampled))
    assert BUSY_MS <= wall[2] / 1e6 < 1.15 * BUSY_MS
