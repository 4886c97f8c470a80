"""Logs of every data version: hand-made ones event by event, real ones by their counts."""

import json
from pathlib import Path
from typing import Any

import pytest

import perfuse as pf
from perfuse.recording import Record

from .mono_logs import CORPUS, counts, logs, stem

LOADED = {0: "METADATA_name", 2: "METADATA_END_LOAD", 4: "METADATA_END_UNLOAD"}
COVERED = {0: "COVERAGE_ASSEMBLY", 1: "COVERAGE_METHOD", 2: "COVERAGE_STATEMENT", 3: "COVERAGE_CLASS"}
CALLS = {"ENTER", "LEAVE", "EXC_LEAVE", "JIT"}
# What the hand-made files' description calls a field, and what the specification does.
FIELDS = {
    "obj": "object", "ptr": "pointer", "text": "name", "sampled_thread": "thread", "stamp": "timestamp",
    "addr": "address", "raw_type": "type", "num_gc": "collections",
}  # fmt: skip
METADATA, MONITOR, THREAD = "METADATA", "MONITOR", "thread_id"


def _name(event: dict[str, Any]) -> str:
    kind = str(event["event"])
    if kind == METADATA:
        return LOADED[event["sub"]]
    if kind == "COVERAGE":
        return COVERED[event["sub"]]
    return f"METHOD_{kind}" if kind in CALLS else kind


def _entries(record: Record, field: str, *keys: str) -> list[list[Any]]:
    return [[entry.get(key) for key in keys] for entry in record.fields[field]]


def _field(record: Record, event: dict[str, Any], key: str) -> Any:
    """What a record has where the description has `key`, in the description's own form."""
    match event["event"], key:
        case _, "time":
            return record.timestamp
        case _, "frames" if event[key] is None:
            return record.fields.get(key)
        case _, "frames":
            return [entry["method"] for entry in record.fields["frames"]]
        case _, "ips":
            return [entry["ip"] for entry in record.fields["ips"]]
        case _, "moves":
            flat = [entry["object"] for entry in record.fields["objects"]]
            return [list(pair) for pair in zip(flat[::2], flat[1::2], strict=True)]
        case _, "refs":
            return _entries(record, "references", "offset", "object")
        case _, "roots" if "num_gc" in event:
            return _entries(record, "roots", "object", "type", "extra")
        case _, "roots":
            return _entries(record, "roots", "slot", "object")
        case "COVERAGE", "values":
            return [value for name, value in record.fields.items() if name != THREAD]
        case _, "values":
            return [_value(entry) for entry in record.fields["values"]]
        case _, "counters":
            names = ("section", "category", "name", "type", "unit", "variance", "index")
            return _entries(record, "counters", *names)
        case "MONITOR" | "MONITOR_BT", "type":
            # Before data version 14 the event is in the record's name.
            return record.fields["event"] if "event" in record.fields else int(record.name.split("_")[1][2:])
        case "GC_EVENT", "type":
            return record.fields["event"]
        case "AOT_ID", "text":
            return record.fields["id"]
        case "SAMPLE_HIT", "stamp" if "timestamp" not in record.fields:
            return record.timestamp
        case "SAMPLE_HIT", "sampled_thread" if event[key] is None:
            return None
    return record.fields.get(FIELDS.get(key, key))


def _value(entry: dict[str, Any]) -> list[Any]:
    value = entry.get("value")
    return [entry["index"], entry["type"], float(value) if entry["type"] == 5 and value else value]


def _expected(event: dict[str, Any], key: str) -> Any:
    if key == "counters":
        names = ("section", "section_name", "text", "type", "unit", "variance", "index")
        return [[counter[name] for name in names] for counter in event[key]]
    return event[key]


@pytest.mark.parametrize("path", logs("crafted"), ids=stem)
def test_every_event_is_what_was_put_there(path: Path) -> None:
    events = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["events"]
    records = list(pf.open(path).records())
    assert len(records) == len(events)
    for record, event in zip(records, events, strict=True):
        name = _name(event)
        assert record.name == name or (record.name.startswith("MONITOR_ev") and name.startswith(MONITOR))
        # JITHELPER's `type` is the number of the newest data version; `raw_type` is what is in the file.
        skip = {"event", "sub", "buffer", "thread"} | ({"type"} if "raw_type" in event else set())
        for key in event.keys() - skip:
            assert _field(record, event, key) == _expected(event, key), f"{record} {key}"
        assert record.fields[THREAD] == event["thread"]


@pytest.mark.parametrize("path", logs("crafted", "tiny", "v17", "versions"), ids=stem)
def test_counts(path: Path) -> None:
    log = pf.open(path)
    assert log.summary.records == counts(path)
    assert all(d.severity in ("info", "warning") for d in log.findings())


@pytest.mark.parametrize("path", logs("malformed"), ids=stem)
def test_damage_is_told_with_its_place(path: Path) -> None:
    try:
        log = pf.open(path)
    except pf.PerfuseError as error:
        assert error.offset is not None
        return
    size = log.size_bytes
    assert all(d.offset is None or d.offset <= size for d in log.check())
    assert sum(log.summary.records.values()) == sum(1 for _ in log.records())


LOSSES = {
    "backtrace-count-huge": "ML014",
    "buffer-length-huge": "ML012",
    "buffer-length-negative": "ML012",
    "buffer-length-one-short": "ML014",
    "counter-sample-unknown-index": "ML027",
    "cut-in-buffer-header": "ML011",
    "cut-in-event": "ML010",
    "cut-last-byte": "ML010",
    "flags-nonzero": "ML001",
    "garbage-after-end": "ML013",
    "gc-move-odd-count": "ML024",
    "header-only": "ML015",
    "heap-object-without-start": "ML060",
    "heap-end-without-start": "ML060",
    "leave-without-enter": "ML050",
    "string-without-nul": "ML014",
    "unknown-type-0x0b": "ML014",
}


@pytest.mark.parametrize(("name", "code"), LOSSES.items(), ids=list(LOSSES))
def test_each_kind_of_damage_has_its_code(name: str, code: str) -> None:
    assert code in {d.code for d in pf.open(CORPUS / "malformed" / f"{name}.mlpd").check()}
