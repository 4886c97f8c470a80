"""Machine code in `perfuse view`, compared with a walk over the recording, and with `perfuse annotate --json`."""

import shlex
from collections import Counter

import pytest

from .command import json_of
from .kinds import Kind
from .outside import jitdump, perf_data
from .test_view import page_of


@pytest.mark.truth(
    recording=["perf_node"],
    path="view",
    source="samples at each offset of JIT code, in a part of the time: a walk over dump and recording",
)
def test_instructions_have_the_samples_of_the_selected_time(kind: Kind) -> None:
    walked = perf_data(kind.paths[0]).samples
    first, last = min(s.time_ns for s in walked), max(s.time_ns for s in walked)
    loads = jitdump(kind.paths[-1]).loads
    with page_of(kind) as page:
        for start, end in ((0, last - first + 1), ((last - first) // 2, last - first)):
            leaves: dict[tuple[int, int], Counter[int]] = {}
            for sample in walked:
                if not start <= sample.time_ns - first < end:
                    continue
                ip = sample.chain[0] if sample.chain else sample.ip
                of = [one for one in loads if one.address <= ip < one.address + one.size]
                of = [one for one in of if one.time_ns <= sample.time_ns]
                if of:
                    load = max(of, key=lambda one: (one.time_ns, one.index))
                    leaves.setdefault((load.address, load.time_ns), Counter())[ip - load.address] += 1
            (address, time_ns), offsets = max(leaves.items(), key=lambda one: one[1].total())
            selection = f"from={start}&to={end}&" if start else ""
            named = next(
                row
                for row in page.get("code?limit=500")["rows"]
                for one in row["compilations"]
                if one["address"] == hex(address) and one["create_ns"] == time_ns - first
            )
            answer = page.get(f"annotate?{selection}function={_handle(named, address, time_ns - first)}")
            shown = {(int(one["address"], 16), one["create_ns"]): one for one in answer["compilations"]}
            assert {key: one["self_samples"] for key, one in shown.items() if one["self_samples"]} == {
                key: leaves[key].total() for key in shown if key in leaves
            }
            (listing,) = answer["listings"]
            assert listing["number"] == shown[address, time_ns]["number"]
            assert Counter({one["offset"]: one["self_samples"] for one in listing["instructions"]}) == offsets
            _, verb, *words = shlex.split(answer["command"])
            report = json_of(verb, *words)
            assert report["compilations"] == answer["compilations"]
            for one in listing["instructions"]:
                del one["shown"], one["called"]
            assert report["listings"] == answer["listings"]
            assert (report["function"], report["event"]) == (answer["function"], answer["event"])


def _handle(row: dict[str, list[dict[str, object]]], address: int, create_ns: int) -> str:
    codes = row["compilations"]
    (code,) = [one["code"] for one in codes if (one["address"], one["create_ns"]) == (hex(address), create_ns)]
    return f"c{code}"
