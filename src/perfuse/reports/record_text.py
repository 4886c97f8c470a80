"""A record in text: one line what it is, its fields below, its bytes where they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from perfuse.reports.style import Role, Style
from perfuse.reports.text import cut, cut_middle, printable
from perfuse.reports.units import count_text, hex_text

if TYPE_CHECKING:
    from perfuse import Record

ENTRIES_SHOWN = 8
BYTES_SHOWN = 24
HEX_COLUMNS = 16
INDENT = "    "


def record_lines(record: Record, style: Style) -> Iterator[str]:
    """The record, its fields wrapped to the width of the terminal."""
    when = "" if record.timestamp is None else f"  time {record.timestamp}"
    place = style.paint(f"#{record.index}  {hex_text(record.offset)}", Role.FAINT)
    size = style.paint(f"{count_text(record.size)} bytes{when}", Role.FAINT)
    yield f"{place}  {style.paint(printable(record.name), Role.TITLE)}  {size}"
    yield from _flowed(record.fields, style)


def hex_lines(data: bytes, offset: int, style: Style) -> Iterator[str]:
    """The bytes, each line with its absolute offset and what of it is text."""
    for start in range(0, len(data), HEX_COLUMNS):
        row = data[start : start + HEX_COLUMNS]
        halves = f"{row[:8].hex(' ')}  {row[8:].hex(' ')}"
        text = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        yield f"{INDENT}{style.paint(f'{offset + start:08x}', Role.FAINT)}  {halves:<48}  {text}"


def _flowed(fields: Mapping[str, Any], style: Style) -> Iterator[str]:
    """`name value` pairs, as many a line as fit; lists of entries come after, an entry a line."""
    room = style.width or 100
    line, used = "", 0
    lists: list[tuple[str, list[Any]]] = []
    for name, value in fields.items():
        if isinstance(value, list):
            lists.append((name, value))
            continue
        text = cut(_value(value), max(room - len(INDENT) - len(name) - 1, 16))
        width = len(name) + 1 + len(text)
        if line and used + 2 + width > room:
            yield line
            line, used = "", 0
        if line:
            line, used = line + "  ", used + 2
        else:
            line, used = INDENT, len(INDENT)
        line, used = line + style.paint(name, Role.NAME) + " " + text, used + width
    if line:
        yield line
    for name, entries in lists:
        yield from _entries(name, entries, room, style)


def _entries(name: str, entries: list[Any], room: int, style: Style) -> Iterator[str]:
    yield f"{INDENT}{style.paint(name, Role.NAME)} {style.paint(f'({count_text(len(entries))})', Role.FAINT)}"
    for entry in entries[:ENTRIES_SHOWN]:
        if isinstance(entry, Mapping):
            text = "  ".join(f"{key} {cut_middle(_value(value), room // 2)}" for key, value in entry.items())
        else:
            text = _value(entry)
        yield f"{INDENT}  {cut(text, room - len(INDENT) - 2)}"
    if len(entries) > ENTRIES_SHOWN:
        yield style.paint(f"{INDENT}  … {count_text(len(entries) - ENTRIES_SHOWN)} more (--json has all)", Role.FAINT)


def _value(value: Any) -> str:
    if isinstance(value, bytes):
        shown = value[:BYTES_SHOWN].hex(" ")
        return f"{shown} … ({count_text(len(value))} bytes)" if len(value) > BYTES_SHOWN else shown
    if isinstance(value, str):
        return '"' + printable(value) + '"'
    return printable(str(value))
