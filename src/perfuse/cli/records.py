"""`perfuse records`"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

import perfuse
from perfuse.cli.console import Console
from perfuse.cli.options import JSON, STRICT, limit, near_choice
from perfuse.cli.verb import verb
from perfuse.reports.json_text import json_text
from perfuse.reports.record_text import hex_lines, record_lines
from perfuse.reports.style import Role
from perfuse.reports.units import count_text

if TYPE_CHECKING:
    from perfuse import Record, Recording

TEXT_LIMIT = 100


class RecordRange(click.ParamType[Any]):
    """`10..20` by index, `0x100..0x200` by offset; half-open, either end may be left out."""

    name = "range"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Callable[[Record], int], int, int | None]:
        """What of a record the range is about, its first value, and the one after its last."""
        if isinstance(value, tuple):
            return value
        match = re.fullmatch(r"(0x[0-9a-f]+|\d+)?\.\.(0x[0-9a-f]+|\d+)?", value, re.IGNORECASE)
        if match is None or not any(match.groups()):
            self.fail(f"{value!r} is no range: write 10..20 for indexes, 0x100..0x200 for offsets", param, ctx)
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
@click.option("--kind", "kinds", multiple=True, metavar="NAME", help="Only records of that name; repeats.")
@click.option("--range", "span", type=RecordRange(), metavar="A..B", help="Indexes 10..20 or offsets 0x100..0x200.")
@limit(None, f"records [{TEXT_LIMIT} as text]")
@click.option("--hex", "with_hex", is_flag=True, help="Each record's bytes too.")
@click.option(
    "--style", metavar="NAME", help="The text of another tool: readelf-2.40, readelf-2.44 or readelf-2.47 (SFrame)."
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
) -> None:
    """Records are named as the specification spells them. With --json, each is a JSON object on a line of its own."""
    recording = perfuse.open(file, strict=strict)
    if style is not None:
        if kinds or span or with_hex or as_json:
            raise click.UsageError(
                "--style is the whole text of another tool: it takes no --kind, --range, --hex or --json"
            )
        _write_styled(console, recording, style)
        return
    known = dict(recording.summary.records)
    wanted = [near_choice(kind, list(known), "record kind") for kind in kinds]
    found = _within(recording.records(wanted or None), span)
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
        console.note("no record is of that kind and in that range", f"there are {', '.join(known)}")
    if not limit:
        return
    rest = sum(1 for _ in found) if span else max(sum(known[kind] for kind in wanted or known) - limit, 0)
    if rest and as_json:
        console.note(f"{count_text(rest)} more records", "--limit 0 shows all")
    elif rest:
        console.line(console.style.paint(f"… {count_text(rest)} more records (--limit 0 shows all)", Role.FAINT))


def _write_styled(console: Console, recording: Recording, style: str) -> None:
    from perfuse.formats import sframe

    near_choice(style, list(sframe.STYLES), "style")
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
