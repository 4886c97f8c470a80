"""`perfuse records`"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

import perfuse
from perfuse.cli.console import Console
from perfuse.cli.options import JSON, STRICT, limit, note_data_loss
from perfuse.cli.verbs import verb
from perfuse.errors import require_known
from perfuse.reports.json_text import json_text
from perfuse.reports.text import Role, Style, cut, cut_middle, printable
from perfuse.reports.units import count_text, hex_text

if TYPE_CHECKING:
    from perfuse import Record, Recording


TEXT_LIMIT = 100


class RecordRange(click.ParamType[Any]):
    """`10..20` by index, `0x100..0x200` by offset; half-open, either end may be missing."""

    name = "range"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Callable[[Record], int], int, int | None]:
        """A function from a record to its index or offset, the start of the range, and its end."""
        if isinstance(value, tuple):
            return value
        match = re.fullmatch(r"(0x[0-9a-f]+|\d+)?\.\.(0x[0-9a-f]+|\d+)?", value, re.IGNORECASE)
        if match is None or not any(match.groups()):
            self.fail(f"{value!r} is not a range: write 10..20 for indexes, 0x100..0x200 for offsets", param, ctx)
        kinds = {part.lower().startswith("0x") for part in match.groups() if part}
        if len(kinds) > 1:
            self.fail(f"{value!r} mixes an index and an offset", param, ctx)
        first, last = (int(part, 0) if part else None for part in match.groups())
        of: Callable[[Record], int] = (lambda r: r.offset) if kinds == {True} else (lambda r: r.index)
        return of, first or 0, last


@verb(
    "records",
    examples=[
        "perfuse records jit-2345.dump --limit 5",
        "perfuse records jit-2345.dump --kind JIT_CODE_LOAD --range 2..5 --hex",
        "perfuse records --json jit-2345.dump",
        "perfuse records --style readelf-2.47 libleaf.so",
    ],
)
@click.argument("file")
@click.option("--kind", "kinds", multiple=True, metavar="NAME", help="Only records with that name; repeats.")
@click.option("--range", "span", type=RecordRange(), metavar="A..B", help="Indexes 10..20 or offsets 0x100..0x200.")
@limit(None, f"records [{TEXT_LIMIT} as text]")
@click.option("--hex", "with_hex", is_flag=True, help="Include the bytes of each record.")
@click.option(
    "--style",
    metavar="NAME",
    help="Print the text of another tool: readelf-2.40, readelf-2.44 or readelf-2.47 (SFrame).",
)
@JSON
@STRICT
def command(
    console: Console,
    file: str,
    kinds: tuple[str, ...],
    span: tuple[Callable[[Record], int], int, int | None] | None,
    limit: int | None,
    with_hex: bool,
    style: str | None,
    as_json: bool,
    strict: bool,
) -> int:
    """Records have the names of the specification. With --json, each is one line with a JSON object."""
    recording = perfuse.open(file, strict=strict)
    if style is not None:
        if kinds or span or with_hex or as_json:
            raise click.UsageError(
                "--style prints the text of another tool: it excludes --kind, --range, --hex or --json"
            )
        _write_styled(console, recording, style)
        return note_data_loss(console, recording.findings())
    known = dict(recording.summary.records)
    selected = [require_known(kind, list(known), "record kind") for kind in kinds]
    found = _within(recording.records(selected or None), span)
    if limit is None and not as_json:
        limit = TEXT_LIMIT
    shown = 0
    for shown, record in enumerate(islice(found, limit or None), 1):  # noqa: B007 - counted past the loop
        if as_json:
            console.line(json_text(record_json(record), indent=None))
            continue
        console.lines(record_lines(record, console.style))
        if with_hex:
            console.lines(hex_lines(recording.read_bytes(record.offset, record.size), record.offset, console.style))
    if not shown:
        console.note("no record has that kind and is in that range", f"kinds: {', '.join(known)}")
    if not limit:
        return note_data_loss(console, recording.findings())
    rest = sum(1 for _ in found) if span else max(sum(known[kind] for kind in selected or known) - limit, 0)
    if rest and as_json:
        console.note(f"{count_text(rest)} more records", "--limit 0 shows all")
    elif rest:
        console.line(console.style.paint(f"… {count_text(rest)} more records (--limit 0 shows all)", Role.FAINT))
    return note_data_loss(console, recording.findings())


def _write_styled(console: Console, recording: Recording, style: str) -> None:
    from perfuse.formats import sframe

    require_known(style, list(sframe.STYLES), "style")
    console.out.flush()
    sframe.open(recording).write_readelf(style, console.out.buffer)
    console.out.buffer.flush()


def record_json(record: Record) -> dict[str, Any]:
    """A line of `records --json`."""
    return {
        "index": record.index,
        "offset": record.offset,
        "size": record.size,
        "name": record.name,
        "timestamp": record.timestamp,
        "fields": record.fields,
    }


def _within(
    records: Iterator[Record], span: tuple[Callable[[Record], int], int, int | None] | None
) -> Iterator[Record]:
    if span is None:
        yield from records
        return
    of, first, last = span
    for record in records:
        at = of(record)
        if last is not None and at >= last:
            return
        if at >= first:
            yield record


ENTRIES_SHOWN = 8
BYTES_SHOWN = 24
HEX_COLUMNS = 16
INDENT = "    "


def record_lines(record: Record, style: Style) -> Iterator[str]:
    """A line with index, offset, name and size, then the fields, wrapped to the width of the terminal."""
    when = "" if record.timestamp is None else f"  time {record.timestamp}"
    place = style.paint(f"#{record.index}  {hex_text(record.offset)}", Role.FAINT)
    size = style.paint(f"{count_text(record.size)} bytes{when}", Role.FAINT)
    yield f"{place}  {style.paint(printable(record.name), Role.TITLE)}  {size}"
    yield from _field_lines(record.fields, style)


def hex_lines(data: bytes, offset: int, style: Style) -> Iterator[str]:
    """The bytes in hexadecimal, each line with its absolute offset and its printable ASCII."""
    for start in range(0, len(data), HEX_COLUMNS):
        row = data[start : start + HEX_COLUMNS]
        halves = f"{row[:8].hex(' ')}  {row[8:].hex(' ')}"
        text = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        yield f"{INDENT}{style.paint(f'{offset + start:08x}', Role.FAINT)}  {halves:<48}  {text}"


def _field_lines(fields: Mapping[str, Any], style: Style) -> Iterator[str]:
    """Lines of `name value` pairs, as many as fit; lists of entries follow, one entry per line."""
    room = style.width or 100
    line, used = "", 0
    lists: list[tuple[str, list[Any]]] = []
    for name, value in fields.items():
        if isinstance(value, list):
            lists.append((name, value))
            continue
        text = cut(_value_text(value), max(room - len(INDENT) - len(name) - 1, 16))
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
        yield from _entry_lines(name, entries, room, style)


def _entry_lines(name: str, entries: list[Any], room: int, style: Style) -> Iterator[str]:
    yield f"{INDENT}{style.paint(name, Role.NAME)} {style.paint(f'({count_text(len(entries))})', Role.FAINT)}"
    for entry in entries[:ENTRIES_SHOWN]:
        if isinstance(entry, Mapping):
            text = "  ".join(f"{key} {cut_middle(_value_text(value), room // 2)}" for key, value in entry.items())
        else:
            text = _value_text(entry)
        yield f"{INDENT}  {cut(text, room - len(INDENT) - 2)}"
    if len(entries) > ENTRIES_SHOWN:
        yield style.paint(f"{INDENT}  … {count_text(len(entries) - ENTRIES_SHOWN)} more (--json shows all)", Role.FAINT)


def _value_text(value: Any) -> str:
    if isinstance(value, bytes):
        shown = value[:BYTES_SHOWN].hex(" ")
        return f"{shown} … ({count_text(len(value))} bytes)" if len(value) > BYTES_SHOWN else shown
    if isinstance(value, str):
        return '"' + printable(value) + '"'
    return printable(str(value))
