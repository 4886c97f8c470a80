"""JSON text in the documented form (docs/reference/json.md)."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from functools import cache
from os import PathLike
from typing import Any

from perfuse.reports.units import hex_text

_CONTROL = "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
"""Control characters that JSON allows in texts, and what changes the direction of text."""


def json_text(value: Any, *, indent: int | None = 2) -> str:
    """A value as JSON: `Hex` numbers as `"0x…"`, bytes as hexadecimal digits, other text unchanged in UTF-8.

    With `indent=None` the text is one line.
    """
    if indent is None:
        import json

        return _without_control(json.dumps(jsonable(value), ensure_ascii=False, default=str))
    return _indented(value, "\n", " " * indent)


def _without_control(text: str) -> str:
    """The same text for a reader of JSON, without characters that a terminal would obey."""
    return re.sub(_CONTROL, lambda found: f"\\u{ord(found[0]):04x}", text)


def _quoted(text: str) -> str:
    """A text as JSON."""
    encode = _encoder()
    return encode(text) if text.isprintable() else _without_control(encode(jsonable(text)))


@cache
def _encoder() -> Callable[[str], str]:
    """Python's own, which is imported when it is needed."""
    from json.encoder import encode_basestring

    return encode_basestring


def _indented(value: Any, newline: str, step: str) -> str:
    """A value as JSON on several lines, as `json.dumps` writes it with `indent`, which takes ten times as long.

    `newline` is the end of a line with the indentation of the value.
    """
    inner = newline + step
    if isinstance(value, Mapping):
        items = [f"{_quoted(str(name))}: {_leaf(item) or _indented(item, inner, step)}" for name, item in value.items()]
        return f"{{{inner}{f',{inner}'.join(items)}{newline}}}" if items else "{}"
    if isinstance(value, list | tuple):
        items = [_leaf(item) or _indented(item, inner, step) for item in value]
        return f"[{inner}{f',{inner}'.join(items)}{newline}]" if items else "[]"
    plain = jsonable(value)
    return _leaf(plain) or (float.__repr__(plain) if isinstance(plain, float) else _quoted(str(plain)))


def _leaf(value: Any) -> str | None:
    """A value of the usual types without members as JSON; None for others."""
    kind = type(value)
    if kind is int:
        return int.__repr__(value)
    if kind is str:
        return _quoted(value)
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    return None


def jsonable(value: Any) -> Any:  # noqa: PLR0911 - a line a type
    """The value converted to types of JSON."""
    # The common types first: this runs for every field of every record.
    kind = type(value)
    if kind is str:
        return value if value.isprintable() else value.encode("utf-8", "backslashreplace").decode()
    if kind is int or value is None or kind is bool:
        return value
    if isinstance(value, int):
        return hex_text(value)
    if isinstance(value, Mapping):
        return {str(name): jsonable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, PathLike):
        return str(value)
    # Only a database makes these, and loads their module.
    decimal = sys.modules.get("decimal")
    if decimal is not None and isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value


def is_address(column: str) -> bool:
    """Whether a column of that name contains addresses, which are `"0x…"` in JSON."""
    return column in {"address", "addresses"} or column.endswith(("_address", "_addresses"))


def address_value(value: Any) -> Any:
    """An address, or a list of them, as in JSON; None stays None."""
    if isinstance(value, list):
        return [address_value(item) for item in value]
    return hex_text(value) if isinstance(value, int) else value
