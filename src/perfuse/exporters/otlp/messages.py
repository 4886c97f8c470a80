"""Messages of OpenTelemetry's profiles signal, `opentelemetry.proto.profiles.v1development`, as protobuf and JSON.

A message is a dict of its fields; absent fields have the default of their type. The numbers and types are those of
opentelemetry-proto 1.10 (in 1.9 some fields of `Sample` had other numbers) and of PyPI's opentelemetry-proto 1.45.
"""

import base64
import json
import struct
from array import array
from collections.abc import Mapping
from typing import Any, NamedTuple

Message = Mapping[str, Any]
"""The fields of a message by name."""


class Field(NamedTuple):
    """A field of a message: its number, its type or the name of its message, and whether it is repeated."""

    number: int
    type: str
    repeated: bool = False


MESSAGES: dict[str, dict[str, Field]] = {
    "ProfilesData": {
        "resource_profiles": Field(1, "ResourceProfiles", True),
        "dictionary": Field(2, "ProfilesDictionary"),
    },
    "ProfilesDictionary": {
        "mapping_table": Field(1, "Mapping", True),
        "location_table": Field(2, "Location", True),
        "function_table": Field(3, "Function", True),
        "link_table": Field(4, "Link", True),
        "string_table": Field(5, "string", True),
        "attribute_table": Field(6, "KeyValueAndUnit", True),
        "stack_table": Field(7, "Stack", True),
    },
    "ResourceProfiles": {
        "resource": Field(1, "Resource"),
        "scope_profiles": Field(2, "ScopeProfiles", True),
        "schema_url": Field(3, "string"),
    },
    "Resource": {"attributes": Field(1, "KeyValue", True)},
    "KeyValue": {"key": Field(1, "string"), "value": Field(2, "AnyValue")},
    "AnyValue": {"string_value": Field(1, "string"), "int_value": Field(3, "int64")},
    "ScopeProfiles": {"scope": Field(1, "InstrumentationScope"), "profiles": Field(2, "Profile", True)},
    "InstrumentationScope": {"name": Field(1, "string"), "version": Field(2, "string")},
    "Profile": {
        "sample_type": Field(1, "ValueType"),
        "samples": Field(2, "Sample", True),
        "time_unix_nano": Field(3, "fixed64"),
        "duration_nano": Field(4, "uint64"),
        "period_type": Field(5, "ValueType"),
        "period": Field(6, "int64"),
        "profile_id": Field(7, "bytes"),
        "attribute_indices": Field(11, "int32", True),
    },
    "ValueType": {"type_strindex": Field(1, "int32"), "unit_strindex": Field(2, "int32")},
    "Sample": {
        "stack_index": Field(1, "int32"),
        "attribute_indices": Field(2, "int32", True),
        "link_index": Field(3, "int32"),
        "values": Field(4, "int64", True),
        "timestamps_unix_nano": Field(5, "fixed64", True),
    },
    "Mapping": {
        "memory_start": Field(1, "uint64"),
        "memory_limit": Field(2, "uint64"),
        "file_offset": Field(3, "uint64"),
        "filename_strindex": Field(4, "int32"),
        "attribute_indices": Field(5, "int32", True),
    },
    "Location": {
        "mapping_index": Field(1, "int32"),
        "address": Field(2, "uint64"),
        "lines": Field(3, "Line", True),
        "attribute_indices": Field(4, "int32", True),
    },
    "Line": {"function_index": Field(1, "int32"), "line": Field(2, "int64"), "column": Field(3, "int64")},
    "Function": {
        "name_strindex": Field(1, "int32"),
        "system_name_strindex": Field(2, "int32"),
        "filename_strindex": Field(3, "int32"),
        "start_line": Field(4, "int64"),
    },
    "Link": {"trace_id": Field(1, "bytes"), "span_id": Field(2, "bytes")},
    "Stack": {"location_indices": Field(1, "int32", True)},
    "KeyValueAndUnit": {
        "key_strindex": Field(1, "int32"),
        "value": Field(2, "AnyValue"),
        "unit_strindex": Field(3, "int32"),
    },
}
"""The messages that are written, with the fields that are."""

_NUMBERS = ("int32", "int64", "uint64")


def encode(message: Message, name: str) -> bytes:
    """A message in protobuf's wire format."""
    out = bytearray()
    fields = MESSAGES[name]
    for key, value in message.items():
        field = fields[key]
        if field.repeated and field.type in _NUMBERS:
            if value:
                _delimited(out, field.number, b"".join(map(_varint, value)))
        elif field.repeated and field.type == "fixed64":
            if value:
                _delimited(out, field.number, _fixed64(value))
        elif field.repeated:
            for one in value:
                _delimited(out, field.number, _bytes(one, field.type))
        elif value or field.type in MESSAGES or name == "AnyValue":
            _single(out, field, value)
    return bytes(out)


def _single(out: bytearray, field: Field, value: Any) -> None:
    if field.type in _NUMBERS:
        out += _varint(field.number << 3) + _varint(value)
    elif field.type == "fixed64":
        out += _varint(field.number << 3 | 1) + struct.pack("<Q", value)
    else:
        _delimited(out, field.number, _bytes(value, field.type))


def _bytes(value: Any, kind: str) -> bytes:
    if kind == "string":
        return str(value).encode()
    return bytes(value) if kind == "bytes" else encode(value, kind)


def _delimited(out: bytearray, number: int, content: bytes) -> None:
    out += _varint(number << 3 | 2)
    out += _varint(len(content))
    out += content


def _varint(value: int) -> bytes:
    if 0 <= value < 128:
        return bytes((value,))
    value &= 2**64 - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _fixed64(values: list[int]) -> bytes:
    packed = array("Q", values)
    if struct.pack("=H", 1) != struct.pack("<H", 1):
        packed.byteswap()
    return packed.tobytes()


def as_json(message: Message, name: str) -> str:
    """A message in protobuf's JSON: names in camel case, 64-bit numbers as strings, bytes in base64."""
    return json.dumps(_plain(message, name), ensure_ascii=False, separators=(",", ":"))


def _plain(message: Message, name: str) -> dict[str, Any]:
    found = {}
    for key, value in message.items():
        field = MESSAGES[name][key]
        head, *rest = key.split("_")
        values = [_plain_value(one, field.type) for one in value] if field.repeated else _plain_value(value, field.type)
        found[head + "".join(word.capitalize() for word in rest)] = values
    return found


def _plain_value(value: Any, kind: str) -> Any:
    if kind in MESSAGES:
        return _plain(value, kind)
    if kind == "bytes":
        return base64.b64encode(value).decode()
    return str(value) if kind in ("int64", "uint64", "fixed64") else value
