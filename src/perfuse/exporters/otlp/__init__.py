"""OTLP profiles: OpenTelemetry's profiles signal, `v1development`, as protobuf or JSON.

A resource is a process, a profile an event in it, a sample a stack with the times and weights of its occurrences.
Functions, locations, stacks, texts and attributes are in the dictionary that all profiles share. The same bytes are
the request of a collector's `/v1development/profiles`.
"""

import hashlib
import warnings
from collections.abc import Iterator
from typing import IO, Any, Literal, NamedTuple

from perfuse import __version__
from perfuse.errors import ExportWarning, UsageError
from perfuse.exporters.contents import contents
from perfuse.exporters.otlp.messages import Message, as_json, encode
from perfuse.exporters.queries import FRAMES, IS_SUM, USUAL_WEIGHTS, type_names, with_exceptions
from perfuse.exporters.source import EventSource, Progress, no_samples_error
from perfuse.exporters.span import realtime_ns, span_ns

CONTENTS = contents(
    samples="each, with its time",
    calls="sums by stack and thread",
    call_sums="sums by stack and thread",
    allocations="sums by stack and thread",
    exceptions="each thrown, with its time",
)

_SAMPLES = f"""
    SELECT process_id, event::VARCHAR AS event, stack_id::BIGINT AS stack_id,
        coalesce(tid, thread_id)::BIGINT AS tid, t.name::VARCHAR AS thread, bool_or({IS_SUM}) AS is_sum,
        list(least(weight, 9223372036854775807)::BIGINT ORDER BY ts_ns, sample_id),
        list(ts_ns ORDER BY ts_ns, sample_id)
    FROM ({{samples}}) JOIN threads t USING (thread_id) JOIN processes p USING (process_id)
    GROUP BY process_id, event, stack_id, tid, thread_id, t.name ORDER BY process_id, event, tid, stack_id NULLS FIRST
"""
_EVENTS = f"SELECT event, unit, if(weight IS NULL, 1, least(weight, 2**62)::BIGINT) FROM ({USUAL_WEIGHTS})"
"""Sums have every occurrence: their period is 1."""
_UNITS = {"ns": "nanoseconds", "bytes": "bytes"}
_FRAME_TYPES = {
    "v8": "v8js", "node": "v8js", "jvmti": "jvm", "openjdk": "jvm", "hotspot": "jvm", "cpython": "cpython",
    "python": "cpython", "erlang": "beam", "beam": "beam", "php": "php", "ruby": "ruby", ".net": "dotnet",
    "coreclr": "dotnet", "mono": "dotnet",
}  # fmt: skip
"""Values of `profile.frame.type` by words in the name of a producer of JIT code."""


def write(
    profile: EventSource,
    out: IO[bytes],
    *,
    encoding: Literal["protobuf", "json"] = "protobuf",
    times: bool = True,
    progress: Progress | None = None,
) -> None:
    """Writes a message `ProfilesData`.

    Threads are attributes of samples (`thread.id`, `thread.name`), tiers of JIT code and kinds of frames are attributes
    of locations (`perfuse.code.tier`, `profile.frame.type`), build ids of mappings. Where no recording has the time of
    day, samples are sums by stack.

    Args:
        profile: The profile.
        out: A binary file object.
        encoding: `protobuf` or `json`.
        times: Whether samples have their times; else they are sums by stack and thread, which Pyroscope needs.
        progress: Called with the name of the current step and the completed share (0 to 1).

    Raises:
        UsageError: `encoding` is neither.
        ExportError: There are no samples, calls or allocations.
    """
    if encoding not in ("protobuf", "json"):
        raise UsageError(f"encoding is 'protobuf' or 'json', not {encoding!r}", field="encoding")
    data = _message(profile, times, progress)
    out.write(encode(data, "ProfilesData") if encoding == "protobuf" else as_json(data, "ProfilesData").encode())


class _Table:
    """A table of the dictionary: each distinct message once; number 0 is the empty one."""

    def __init__(self, empty: Any) -> None:
        self.rows: list[Any] = [empty]
        self._numbers: dict[Any, int] = {}

    def number(self, key: Any, row: Any = None) -> int:
        """The number of a row, which is `row`, or `key` itself."""
        if key not in self._numbers:
            self._numbers[key] = len(self.rows)
            self.rows.append(key if row is None else row)
        return self._numbers[key]


class _Stack(NamedTuple):
    """A stack: its number, its locations, and the frames of the last one where more are inlined into them."""

    number: int
    locations: tuple[int, ...]
    last: tuple[int, ...]


class _Dictionary:
    """The tables that all profiles of a file share."""

    def __init__(self, profile: EventSource) -> None:
        self.texts = _Table("")
        self.attributes, self.mappings, self.functions, self.locations, self.stacks = (_Table({}) for _ in range(5))
        self._mapping_of = {key: self._mapping(*row) for key, *row in profile.sql(_MAPPINGS).fetchall()}
        self._frames = {frame: tuple(row) for frame, *row in profile.sql(_FRAME_ROWS).fetchall()}
        self._stacks: dict[int | None, _Stack] = {None: _Stack(0, (), ())}
        for stack, parent, frame in profile.sql(_PARENTS_FIRST).fetchall():
            self._stacks[stack] = self._stack(self._stacks[parent], frame)

    def stack(self, stack_id: int | None) -> int:
        """The number of a stack."""
        return self._stacks[stack_id].number

    def text(self, text: str | None) -> int:
        """The number of a text."""
        return self.texts.number(text) if text else 0

    def attribute(self, key: str, value: str | int) -> int:
        """The number of an attribute."""
        message = {"key_strindex": self.text(key), "value": _any_value(value)}
        return self.attributes.number((key, value), message)

    def _mapping(self, start: int, end: int, offset: int, path: str, build_id: str | None) -> int:
        ids = [self.attribute("process.executable.build_id.gnu", build_id)] if build_id else []
        row = {
            "memory_start": start,
            "memory_limit": end,
            "file_offset": offset,
            "filename_strindex": self.text(path),
            "attribute_indices": ids,
        }
        return self.mappings.number((start, end, offset, path, build_id), row)

    def _stack(self, parent: _Stack, frame: int) -> _Stack:
        """The stack of a frame on top of its caller's; a frame that is inlined is a line of its caller's location."""
        inlined = bool(self._frames[frame][-1]) and bool(parent.last)
        last = (frame, *parent.last) if inlined else (frame,)
        above = parent.locations[:-1] if inlined else parent.locations
        locations = (*above, self._location(last))
        number = self.stacks.number(locations, {"location_indices": list(reversed(locations))})
        return _Stack(number, locations, last)

    def _location(self, frames: tuple[int, ...]) -> int:
        """The location of a frame and the calls inlined into it, innermost first."""
        mapping, address, kind, tier, producer = self._frames[frames[-1]][:5]
        types = (value for word, value in _FRAME_TYPES.items() if word in (producer or "").lower())
        frame_type = {"kernel": "kernel", "native": "native"}.get(kind, next(types, None) if kind == "jit" else None)
        attributes = [("profile.frame.type", frame_type), ("perfuse.code.tier", tier)]
        row = {
            "mapping_index": self._mapping_of.get(mapping, 0),
            "address": address or 0,
            "lines": [self._line(*self._frames[frame][5:11]) for frame in frames],
            "attribute_indices": [self.attribute(key, value) for key, value in attributes if value],
        }
        return self.locations.number(frames, row)

    def _line(
        self, name: str, system_name: str, path: str | None, start: int | None, line: int | None, column: int | None
    ) -> Message:
        function = {
            "name_strindex": self.text(name),
            "system_name_strindex": self.text(system_name),
            "filename_strindex": self.text(path),
            "start_line": start or 0,
        }
        number = self.functions.number((name, system_name, path, start), function)
        return {"function_index": number, "line": line or 0, "column": column or 0}

    def message(self) -> Message:
        """The dictionary; to be asked last."""
        return {
            "mapping_table": self.mappings.rows,
            "location_table": self.locations.rows,
            "function_table": self.functions.rows,
            "link_table": [{}],
            "string_table": self.texts.rows,
            "attribute_table": self.attributes.rows,
            "stack_table": self.stacks.rows,
        }


_MAPPINGS = """
    SELECT mapping_id::BIGINT, start_address::UBIGINT, end_address::UBIGINT, file_offset::UBIGINT,
        path::VARCHAR, build_id::VARCHAR
    FROM mappings ORDER BY mapping_id
"""
_FRAME_ROWS = f"""
    SELECT frame_id, mapping_id::BIGINT, address::UBIGINT, kind, tier, producer, label,
        coalesce(linkage_name, label), coalesce(path, function_path), function_line, line, "column", inline_depth
    FROM ({FRAMES})
"""
_PARENTS_FIRST = "SELECT stack_id::BIGINT, parent_stack_id::BIGINT, frame_id FROM stacks ORDER BY stack_id"


def _any_value(value: str | int) -> Message:
    return {"int_value" if isinstance(value, int) else "string_value": value}


def _message(profile: EventSource, times: bool, progress: Progress | None) -> Message:
    samples_sql, has_exceptions = with_exceptions(profile)
    rows = profile.sql(_SAMPLES.format(samples=samples_sql)).fetchall()
    if not rows:
        raise no_samples_error(profile)
    report = progress or (lambda _step, _share: None)
    report("Stacks", 0.3)
    dictionary = _Dictionary(profile)
    report("Samples", 0.6)
    first_ns, last_ns = span_ns(profile, with_processes=True) or (0, 0)
    epoch_ns = realtime_ns(profile, 0)
    if times and epoch_ns is None and any(not is_sum for *_, is_sum, _weights, _times in rows):
        warnings.warn("the time of day is unknown: samples are sums, without times", ExportWarning, stacklevel=5)
    events = {name: (unit, period) for name, unit, period in profile.sql(_EVENTS).fetchall()}
    if has_exceptions:
        events["exceptions"] = ("count", 1)
    names = type_names(events)
    by_process: dict[int, dict[str, list[Message]]] = {}
    for process, event, stack, tid, thread, is_sum, weights, occurred in rows:
        attributes = [dictionary.attribute("thread.id", tid)]
        if thread:
            attributes.append(dictionary.attribute("thread.name", thread))
        sample: dict[str, Any] = {"stack_index": dictionary.stack(stack), "attribute_indices": attributes}
        if is_sum or epoch_ns is None or not times:
            sample["values"] = [min(sum(weights), 2**63 - 1)]
        else:
            sample |= {"values": weights, "timestamps_unix_nano": [time + epoch_ns for time in occurred]}
        by_process.setdefault(process, {}).setdefault(event, []).append(sample)
    # The end of a profile is exclusive.
    duration_ns = last_ns + 1 - first_ns
    span = {"time_unix_nano": first_ns + epoch_ns if epoch_ns is not None else 0, "duration_nano": duration_ns}

    def profiles(process: int) -> Iterator[Message]:
        for event, samples in by_process[process].items():
            unit, period = events[event]
            value_type = {
                "type_strindex": dictionary.text(names[event]),
                "unit_strindex": dictionary.text(_UNITS.get(unit, "count")),
            }
            key = f"{profile.title}\0{process}\0{event}\0{span}\0{len(samples)}"
            periods = {"period_type": value_type, "period": period}
            identity = {"profile_id": hashlib.blake2b(key.encode(), digest_size=16).digest()}
            yield {"sample_type": value_type, "samples": samples, **span, **periods, **identity}

    scope = {"name": "perfuse", "version": __version__}
    resources = [
        {
            "resource": {"attributes": [{"key": key, "value": _any_value(value)} for key, value in of_process]},
            "scope_profiles": [{"scope": scope, "profiles": list(profiles(process))}],
        }
        for process, of_process in _resources(profile)
        if process in by_process
    ]
    return {"resource_profiles": resources, "dictionary": dictionary.message()}


def _resources(profile: EventSource) -> Iterator[tuple[int, list[tuple[str, str | int]]]]:
    """Attributes of each process."""
    rows = profile.sql("SELECT process_id, pid, name::VARCHAR FROM processes ORDER BY process_id").fetchall()
    for process, pid, name in rows:
        found: list[tuple[str, str | int]] = [
            ("service.name", name or f"pid {pid}"),
            ("process.command_line", profile.title),
        ]
        if pid is not None:
            found.append(("process.pid", int(pid)))
        if name:
            found.append(("process.executable.name", name))
        yield process, found
