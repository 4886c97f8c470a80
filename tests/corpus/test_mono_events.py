"""Logs of every data version: hand-made ones event by event, real ones by their counts."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import perfuse as pf
from perfuse.records import Record

from .mono_logs import CORPUS, counts, logs, stem

LOADED = {0: "METADATA_name", 2: "METADATA_END_LOAD", 4: "METADATA_END_UNLOAD"}
COVERED = {0: "COVERAGE_ASSEMBLY", 1: "COVERAGE_METHOD", 2: "COVERAGE_STATEMENT", 3: "COVERAGE_CLASS"}
CALLS = {"ENTER", "LEAVE", "EXC_LEAVE", "JIT"}
# Names of fields in the description of the hand-made files, and in the specification.
FIELDS = {
    "obj": "object",
    "ptr": "pointer",
    "text": "name",
    "addr": "address",
    "raw_type": "type",
    "num_gc": "collections",
}
DESCRIPTION = ("section", "category", "name", "type", "unit", "variance", "index")

Event = dict[str, Any]
METADATA, MONITOR, THREAD = "METADATA", "MONITOR", "thread_id"


def _name(event: Event) -> str:
    kind = str(event["event"])
    if kind == METADATA:
        return LOADED[event["sub"]]
    if kind == "COVERAGE":
        return COVERED[event["sub"]]
    return f"METHOD_{kind}" if kind in CALLS else kind


def _entries(record: Record, field: str, *keys: str) -> list[list[Any]]:
    return [[entry.get(key) for key in keys] for entry in record.fields[field]]


def _moves(record: Record, _: Event) -> list[list[int]]:
    flat = [entry["object"] for entry in record.fields["objects"]]
    return [list(pair) for pair in zip(flat[::2], flat[1::2], strict=True)]


def _frames(record: Record, event: Event) -> list[int] | None:
    # Samples before data version 6 have none.
    return None if event["frames"] is None else [entry["method"] for entry in record.fields["frames"]]


def _roots(record: Record, event: Event) -> list[list[Any]]:
    return _entries(record, "roots", *(("object", "type", "extra") if "num_gc" in event else ("slot", "object")))


def _monitor(record: Record, _: Event) -> int:
    # Before data version 14 the record's name contains the event.
    return int(record.fields.get("event", 0) or record.name.split("_")[1][2:])


def _coverage(record: Record, _: Event) -> list[Any]:
    return [value for name, value in record.fields.items() if name != THREAD]


READ: dict[str, Callable[[Record, Event], Any]] = {
    "time": lambda record, _: record.timestamp,
    "frames": _frames,
    "ips": lambda record, _: [entry["ip"] for entry in record.fields["ips"]],
    "moves": _moves,
    "refs": lambda record, _: _entries(record, "references", "offset", "object"),
    "roots": _roots,
    "values": lambda record, _: [_value(entry) for entry in record.fields["values"]],
    "counters": lambda record, _: _entries(record, "counters", *DESCRIPTION),
    "stamp": lambda record, _: record.fields.get("timestamp", record.timestamp),
    "sampled_thread": lambda record, event: record.fields.get("thread") if event["sampled_thread"] else None,
    "COVERAGE values": _coverage,
    "MONITOR type": _monitor,
    "MONITOR_BT type": _monitor,
    "GC_EVENT type": lambda record, _: record.fields["event"],
    "AOT_ID text": lambda record, _: record.fields["id"],
}
"""Functions that read the value for a key of the description; other keys are fields of that name."""


def _field(record: Record, event: Event, key: str) -> Any:
    """A record's value for `key` of the description, in the description's form."""
    read = READ.get(f"{event['event']} {key}") or READ.get(key)
    return read(record, event) if read else record.fields.get(FIELDS.get(key, key))


def _value(entry: dict[str, Any]) -> list[Any]:
    value = entry.get("value")
    return [entry["index"], entry["type"], float(value) if entry["type"] == 5 and value else value]


def _expected(event: Event, key: str) -> Any:
    if key == "counters":
        names = ("section", "section_name", "text", "type", "unit", "variance", "index")
        return [[counter[name] for name in names] for counter in event[key]]
    return event[key]


@pytest.mark.parametrize("path", logs("crafted"), ids=stem)
def test_every_event_has_the_described_fields(path: Path) -> None:
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
    assert all(d.severity in ("info", "warning") or d.code == "ML018" for d in log.findings())


def _exit_statuses() -> dict[str, bool]:
    """Whether each program of the manifest ended by itself, by log."""
    text = (CORPUS / "MANIFEST.md").read_text(encoding="utf-8")
    ended = {}
    for line in text.splitlines():
        name = re.match(r"\| (\S+\.mlpd(?:\.gz)?) \|", line)
        status = re.search(r"\[rc=(\d+)\]", line)
        if name:
            ended[name[1]] = "SIGKILL" not in line and (status is None or status[1] == "0")
    return ended


@pytest.mark.truth(recording="mono_calls", path="check", source="exit statuses of the recorded programs")
@pytest.mark.parametrize("path", logs("v17", "versions"), ids=stem)
def test_only_logs_of_programs_that_crashed_or_were_killed_end_too_early(path: Path) -> None:
    log = pf.open(path)
    is_reported = any(d.code == "ML018" for d in log.findings())
    has_mark = log.header["format"] >= 13
    assert is_reported == (has_mark and not _exit_statuses()[path.name])


@pytest.mark.parametrize("path", logs("malformed"), ids=stem)
def test_damage_is_reported_with_its_offset(path: Path) -> None:
    try:
        log = pf.open(path)
    except pf.PerfuseError as error:
        log, place = None, error.offset
    if log is None:
        assert place is not None
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
