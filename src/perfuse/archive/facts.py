"""Facts about recordings in a saved profile, for answers that need nothing else of their copies."""

import json
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any

from perfuse.archive.xz import packed, unpacked
from perfuse.clock import Clock
from perfuse.recording import Recording
from perfuse.records import Hex
from perfuse.summary import Summary
from perfuse.table import names
from perfuse.value_class import field_names, value_class

MEMBER = "resolved/facts.json.xz"
MAX_BYTES = 16 << 20
"""Most bytes that it may become."""
SMALL_COPIES = 64 << 10
"""Copies of this size in all are unpacked sooner than they are worth another member."""

EventSums = tuple[str, str, int, int, int, int]
"""What `_core.sampled_events` states of an event."""

_FIELDS = field_names(Summary)
_TEXT, _NUMBER = (str, NoneType), (int, NoneType)
_HEX = "hex"
"""The only key of the object that stands for a number which is shown in hexadecimal."""


@value_class
class RecordingFacts:
    """What is known of a recording without its copy.

    Attributes:
        summary: Its summary.
        clock: The clock of its time stamps.
        machine: Host name and kernel release of the machine that samples were taken on.
        tables: The tables that have rows of it, as far as that is known without decoding them.
        keys: Number of keys of each kind that its tables take; None where it is not stated.
        span: Its first and last time stamp, in ticks of its clock.
    """

    summary: Summary
    clock: Clock
    machine: tuple[str, str] | None
    tables: frozenset[str]
    keys: Mapping[str, int] | None
    span: tuple[int, int] | None


@value_class
class Facts:
    """What is known without the copies.

    Attributes:
        recordings: Of each recording; None where it is not stated.
        empty_tables: Tables without rows.
        events: Each event with unit, number of samples, sum of weights, and times of the first and the last sample;
            None where they are not stated.
    """

    recordings: tuple[RecordingFacts | None, ...]
    empty_tables: frozenset[str]
    events: list[EventSums] | None


def facts_member(recordings: Sequence[Recording], empty_tables: Sequence[str], events: Sequence[EventSums]) -> bytes:
    """The content of the member; null for a recording whose summary JSON does not represent."""
    document = {"recordings": [_row(one) for one in recordings], "empty_tables": empty_tables, "events": events}
    return packed(json.dumps(document, ensure_ascii=True, separators=(",", ":")).encode("ascii"))


def read_facts(member: bytes, number: int) -> Facts:
    """The facts of a profile of a number of recordings.

    Raises:
        ValueError: The member is damaged, or of another number of recordings.
        TypeError: It contains something else.
        KeyError: A fact is missing.
    """
    try:
        document = json.loads(unpacked(member, MAX_BYTES))
        rows, empty = document["recordings"], document["empty_tables"]
        if not isinstance(rows, list) or len(rows) != number:
            raise ValueError(f"there are not facts about {number} recordings")
        facts = tuple(None if row is None else _facts(row) for row in rows)
        return Facts(facts, _names(empty), _events(document.get("events")))
    except RecursionError as error:
        raise ValueError("the facts about recordings are nested too deeply") from error


def _row(recording: Recording) -> dict[str, Any] | None:
    summary = recording.summary
    stated = {name: _as_json(getattr(summary, name)) for name in _FIELDS}
    clock = recording.clock._asdict()
    tables = [name for name in names() if recording.has(name)]
    row: dict[str, Any] = {"summary": stated, "clock": clock, "machine": recording.machine, "tables": tables}
    keys, row["span"] = recording._core.keys_and_span()
    row["keys"] = {kind: number for kind, number in sorted(keys.items()) if number}
    try:
        again = _facts(json.loads(json.dumps(row)))
    except TypeError:
        return None
    # Not only equal: numbers in hexadecimal are equal to others.
    return row if repr((again.summary, again.clock)) == repr((summary, recording.clock)) else None


def _as_json(value: Any) -> Any:
    if isinstance(value, Hex):
        return {_HEX: int(value)}
    if isinstance(value, Mapping):
        return {key: _as_json(one) for key, one in value.items()}
    return [_as_json(one) for one in value] if isinstance(value, list) else value


def _of_json(value: Any) -> Any:
    if isinstance(value, dict):
        if list(value) == [_HEX] and type(value[_HEX]) is int:
            return Hex(value[_HEX])
        return {key: _of_json(one) for key, one in value.items()}
    return [_of_json(one) for one in value] if isinstance(value, list) else value


def _facts(row: Any) -> RecordingFacts:
    stated, tables = row["summary"], row["tables"]
    known = {name: stated[name] for name in _FIELDS}
    for name in ("records", "header"):
        if not isinstance(known[name], dict):
            raise TypeError(f"{name} of a summary is not an object")
        known[name] = _of_json(known[name])
    for name, kind in (("endian", str), ("clock", str), ("version", _TEXT), ("arch", _TEXT), ("producer", _TEXT)):
        if not isinstance(known[name], kind):
            raise TypeError(f"{name} of a summary is not a text")
    if not isinstance(known["pointer_bytes"], _NUMBER):
        raise TypeError("pointer_bytes of a summary is not a number")
    if known["span"] is not None:
        first, last = known["span"]
        known["span"] = int(first), int(last)
    if not all(type(count) is int for count in known["records"].values()):
        raise TypeError("a number of records is not a number")
    clock = Clock(**{name: row["clock"][name] for name in Clock._fields})
    machine = None if row["machine"] is None else (str(row["machine"][0]), str(row["machine"][1]))
    return RecordingFacts(
        Summary(**known), clock, machine, _names(tables), _keys(row.get("keys")), _span(row.get("span"))
    )


def _span(value: Any) -> tuple[int, int] | None:
    if value is None:
        return None
    first, last = value
    _keys({"first": first, "last": last})
    return first, last


def _keys(value: Any) -> Mapping[str, int] | None:
    if value is None:
        return None
    if not isinstance(value, dict) or not all(type(number) is int and 0 <= number < 2**64 for number in value.values()):
        raise TypeError("keys are not numbers")
    return value


def _events(value: Any) -> list[EventSums] | None:
    if value is None:
        return None
    rows = []
    for row in value:
        name, unit, *numbers = row
        if not (isinstance(name, str) and isinstance(unit, str) and all(type(number) is int for number in numbers)):
            raise TypeError("an event is not a name, a unit and numbers")
        num_samples, weight, first_ns, last_ns = numbers
        rows.append((name, unit, num_samples, weight, first_ns, last_ns))
    return rows


def _names(value: Any) -> frozenset[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise TypeError("tables are not a list of names")
    return frozenset(value)
