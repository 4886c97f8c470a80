"""`perfuse records`"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

import perfuse
from perfuse.cli.console import Console
from perfuse.cli.opening import note_data_loss
from perfuse.cli.options import JSON, STRICT, limit
from perfuse.cli.verbs import verb
from perfuse.errors import UsageError, require_known
from perfuse.reports.text import Role
from perfuse.reports.units import count_text

if TYPE_CHECKING:
    from perfuse import Recording


TEXT_LIMIT = 100


class RecordRange(click.ParamType[Any]):
    """`10..20` by index, `0x100..0x200` by offset; half-open, either end may be missing."""

    name = "range"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, tuple[int, int | None]]:
        """The argument of `Recording.records` that selects the range."""
        if isinstance(value, dict):
            return value
        match = re.fullmatch(r"(0x[0-9a-f]+|\d+)?\.\.(0x[0-9a-f]+|\d+)?", value, re.IGNORECASE)
        if match is None or not any(match.groups()):
            self.fail(f"{value!r} is not a range: write 10..20 for indexes, 0x100..0x200 for offsets", param, ctx)
        kinds = {part.lower().startswith("0x") for part in match.groups() if part}
        if len(kinds) > 1:
            self.fail(f"{value!r} mixes an index and an offset", param, ctx)
        first, end = (int(part, 0) if part else None for part in match.groups())
        if end is not None and end <= (first or 0):
            self.fail(f"{value!r} is empty: the end is not part of a range", param, ctx)
        return {"offsets" if kinds == {True} else "indexes": (first or 0, end)}


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
    span: dict[str, tuple[int, int | None]] | None,
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
    selected = [require_known(kind, list(recording.summary.records), "record kind") for kind in kinds]
    if limit is None and not as_json:
        limit = TEXT_LIMIT
    console.out.flush()
    shown, rest = recording.write_records(
        console.out.buffer,
        "json" if as_json else "text",
        selected or None,
        limit=limit or None,
        with_bytes=with_hex,
        colour=console.style.colour,
        width=console.style.width,
        **(span or {}),
    )
    if not shown and recording.summary.records:
        raise _nothing_shown(recording, selected, span)
    if not shown:
        console.note(f"{file} has no records", f"`perfuse info {file}` shows its header")
    if rest and as_json:
        console.note(f"{count_text(rest)} more records", "--limit 0 shows all")
    elif rest:
        console.line(console.style.paint(f"… {count_text(rest)} more records (--limit 0 shows all)", Role.FAINT))
    return note_data_loss(console, recording.findings())


def _nothing_shown(recording: Recording, kinds: list[str], span: Mapping[str, Any] | None) -> UsageError:
    """The error where no record is listed."""
    by_index = span is not None and "indexes" in span
    end = f"0..{sum(recording.summary.records.values())}" if by_index else f"0x0..{recording.size_bytes:#x}"
    what = " or ".join(kinds) or "record"
    return UsageError(f"no {what} is in that range", hint=f"the whole file is --range {end}")


def _write_styled(console: Console, recording: Recording, style: str) -> None:
    from perfuse import sframe

    require_known(style, list(sframe.STYLES), "style")
    console.out.flush()
    sframe.open(recording).write_readelf(style, console.out.buffer)
    console.out.buffer.flush()
