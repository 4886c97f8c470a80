"""speedscope: its own schema, and the same stacks as the collapsed export."""

import io
import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fake_profile import FakeProfile
from perf_script import perf_script
from small_profile import MS, add_cache_miss
from traced import NAMES, calls

import perfuse
from perfuse.errors import ExportError, UsageError
from perfuse.exporters import export

_VALIDATE = """
const fs = require('fs'), Ajv = require('ajv');
const read = (path) => JSON.parse(fs.readFileSync(path));
const schema = read(require.resolve('speedscope/dist/release/file-format-schema.json'));
const validate = new Ajv({ allErrors: true, strict: false }).compile(schema);
if (!validate(read(process.argv[1]))) { console.log(validate.errors); process.exit(1); }
"""


def validate(path: Path, peers: Path) -> None:
    done = subprocess.run(
        ["node", "-e", _VALIDATE, str(path)], cwd=peers.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def exported(profile: Any, **options: Any) -> Any:
    out = io.BytesIO()
    export(profile, out, to="speedscope", **options)
    return json.loads(out.getvalue())


def test_small_profile(small: FakeProfile) -> None:
    profile = exported(small)
    assert profile["name"] == "app --jit; demo"
    assert profile["activeProfileIndex"] == 0
    assert profile["shared"]["frames"] == [
        {"name": "main", "file": "app.c", "line": 3},
        {"name": "run", "file": "app.js", "line": 7, "col": 1},
        {"name": "add", "file": "lib.js", "line": 2, "col": 5},
        {"name": "[unknown] app", "file": "/opt/app"},
        {"name": "sys_read", "file": "[kernel]"},
        {"name": "Entry"},
    ]
    main, worker = profile["profiles"]
    assert main == {
        "type": "sampled",
        "name": "app 10/10 cpu-clock",
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": 5 * MS,
        "samples": [[0, 1], [0, 1, 2], [0, 1, 2], [0, 3], [0, 4]],
        "weights": [MS] * 5,
    }
    assert worker["samples"] == [[5], []]


def test_events_that_are_not_a_clock(small: FakeProfile) -> None:
    add_cache_miss(small)
    assert exported(small)["profiles"][0]["weights"] == [1]
    by_events = exported(small, weight="events")["profiles"][0]
    assert (by_events["unit"], by_events["endValue"], by_events["weights"]) == ("none", 100, [100])


def test_refusals(small: FakeProfile) -> None:
    with pytest.raises(ExportError, match="no samples"):
        exported(FakeProfile())
    with pytest.raises(UsageError, match="weight"):
        exported(small, weight="bytes")


def test_its_schema_and_our_stacks(expected_script: Path, peers: Path, tmp_path: Path) -> None:
    profile = perf_script(expected_script)
    path = tmp_path / "p.speedscope.json"
    export(profile, path)
    validate(path, peers)
    written = json.loads(path.read_text())
    names = [frame["name"].replace(";", ":") for frame in written["shared"]["frames"]]
    theirs = Counter(
        ";".join(names[frame] for frame in stack) or "[no stack]"
        for track in written["profiles"]
        for stack in track["samples"]
    )
    out = io.BytesIO()
    export(profile, out, to="collapsed", root="none")
    lines = (line.rpartition(" ") for line in out.getvalue().decode().splitlines())
    assert theirs == {stack: int(count) for stack, _, count in lines}


@pytest.mark.parametrize("name", NAMES)
def test_every_call_of_a_trace(name: str, traces: Path, peers: Path, tmp_path: Path) -> None:
    profile = perfuse.fuse(traces / "fdr" / f"{name}.xray")
    path = tmp_path / "p.speedscope.json"
    profile.export(path)
    validate(path, peers)
    written = json.loads(path.read_text())
    assert set(written) == {"$schema", "exporter", "name", "activeProfileIndex", "profiles", "shared"}
    names = [frame["name"] for frame in written["shared"]["frames"]]
    theirs: Counter[tuple[int, str, int]] = Counter()
    for track in written["profiles"]:
        assert (track["type"], track["unit"]) == ("evented", "nanoseconds")
        stack, last, tid = [], track["startValue"], int(track["name"].rpartition("/")[2])
        for event in track["events"]:
            assert last <= event["at"] <= track["endValue"]
            last = event["at"]
            if event["type"] == "O":
                stack.append(event)
            else:
                begin = stack.pop()
                assert begin["frame"] == event["frame"]
                theirs[tid, names[event["frame"]], event["at"] - begin["at"]] += 1
        assert not stack
    expected: Counter[tuple[int, str, int]] = Counter()
    for call, num in calls(profile).items():
        expected[call.tid, call.name, call.duration_ns] += num
    assert theirs == expected
    most = [len(track["events"]) for track in written["profiles"]]
    assert most[written["activeProfileIndex"]] == max(most)
