"""`perfuse sframe`"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perfuse.cli import exit_codes
from perfuse.cli.console import Console
from perfuse.cli.options import JSON, limit, output
from perfuse.cli.verbs import verb
from perfuse.reports.grid import Cell, Column, grid
from perfuse.reports.text import Role
from perfuse.reports.units import bytes_text, count_text, counted, hex_text
from perfuse.value_class import as_dict

if TYPE_CHECKING:
    from perfuse.formats.sframe.section import ConvertedSection, UnsupportedItem

ACTIONS = ("from-eh-frame", "optimise", "merge", "convert", "find")


class Address(click.ParamType[int]):
    """A number; hexadecimal with 0x."""

    name = "address"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number."""
        try:
            address = value if isinstance(value, int) else int(value, 0)
        except ValueError:
            self.fail(f"{value!r} is not an address: write 0x401136", param, ctx)
        if not 0 <= address < 1 << 64:
            self.fail(f"{value!r} is not an address: it has more than 64 bits", param, ctx)
        return address


@verb(
    "sframe",
    examples=[
        "perfuse sframe from-eh-frame libsmall.so -o small.sframe",
        "perfuse sframe from-eh-frame libsmall.so --into libsmall.so -o libsmall.new.so",
        "perfuse sframe optimise a.out -o a.sframe",
        "perfuse sframe convert a.out --version 3 -o a.sframe",
        "perfuse sframe merge libsmall.so -o merged.sframe",
        "perfuse sframe find a.out 0x2 0x8",
    ],
)
@click.argument("action", type=click.Choice(ACTIONS), metavar="ACTION")
@click.argument("file")
@click.argument("addresses", nargs=-1, type=Address(), metavar="[ADDRESS]...")
@output("File to write: the section, or with --into the program with the section")
@click.option(
    "--version", type=click.IntRange(1, 3), metavar="N", help="Version to write. [unchanged; 3 for from-eh-frame]"
)
@click.option("--arch", metavar="NAME", help="convert: aarch64 or aarch64_be, to change the byte order.")
@click.option(
    "--pcrel/--no-pcrel",
    default=None,
    help="Version 2: start addresses relative to their fields, for binutils 2.45 and newer and LLVM, or to the "
    "section, for binutils 2.41 to 2.44. [as they are; from other versions: to the section]",
)
@click.option("--into", metavar="PROGRAM", help="Program or library to copy to OUT, with the section.")
@limit(20, "omitted functions")
@JSON
def command(
    console: Console,
    action: str,
    file: str,
    addresses: tuple[int, ...],
    output: str | None,
    version: int | None,
    arch: str | None,
    pcrel: bool | None,
    into: str | None,
    limit: int,
    as_json: bool,
) -> int:
    """ACTION is one of:

    from-eh-frame: creates a section from the .eh_frame of a program, or from a JITDUMP. Functions that SFrame cannot
    represent are listed with the reason; then the exit code is 1.

    optimise: writes the section in fewer bytes: functions with equal rows share them.

    merge: merges the consecutive sections that lld, gold or mold write into one sorted section; convert and optimise do
    that too.

    convert: writes the section in another version, and lists what that version cannot represent.

    find: shows function, row and rules for each ADDRESS of the program.
    """
    if action == "find":
        return _find(console, file, addresses, as_json)
    if addresses:
        raise click.UsageError(f"{action} takes no addresses")
    if output is None or (output == "-" and into is not None):
        raise click.UsageError(f"{action} needs a file to write: -o OUT")
    made, address, before = _create_section(action, file, version, arch, pcrel)
    section = made.section
    if into is not None:
        section.write_into(into, output)
        size = len(section.encode(address))
    else:
        data = section.encode(address)
        size = len(data)
        from perfuse.output.file import output_path

        with output_path(Path(output)) as path:
            path.write_bytes(data)
    left_out = len({item.function for item in made.unsupported if item.left_out})
    if as_json and output != "-":
        items = [{**as_dict(one), "function": _hex(one.function)} for one in made.unsupported]
        facts = {"version": section.version, "functions": len(section), "size_bytes": size, "before_bytes": before}
        console.json({"action": action, "input": file, "output": output, **facts, "unsupported": items})
        return exit_codes.FINDINGS if left_out else exit_codes.CLEAN
    if made.unsupported and output != "-":
        _print_unsupported(console, made.unsupported, limit)
    was = f", was {bytes_text(before)}" if before else ""
    content = f"{counted(len(section), 'function')} in {bytes_text(size)}{was}"
    console.note(f"wrote {output}: SFrame {section.version}, {content}; {left_out} omitted")
    return exit_codes.FINDINGS if left_out else exit_codes.CLEAN


def _create_section(
    action: str, file: str, version: int | None, arch: str | None, pcrel: bool | None
) -> tuple[ConvertedSection, int, int | None]:
    """The section, its address, and the size of the section it was created from."""
    from perfuse import sframe

    if action == "from-eh-frame":
        made = sframe.from_eh_frame(file, version=version or 3)
        if pcrel is not None:
            made = sframe.ConvertedSection(
                made.section.convert(made.section.version, pcrel=pcrel).section, made.unsupported
            )
        return made, 0, None
    opened = sframe.open(file)
    headers = opened.headers
    if any(header.section for header in headers):
        raise click.UsageError(f"{file} has several members with sections: extract one with `ar x`")
    if action == "convert" and (version, arch, pcrel) == (None, None, None):
        raise click.UsageError("convert needs --version, --arch, --pcrel or --no-pcrel")
    made = opened.convert(version, arch=arch, pcrel=pcrel)
    if action != "convert":
        changed = made.section.optimise() if action == "optimise" else sframe.Section.merge([made.section])
        made = sframe.ConvertedSection(changed, made.unsupported)
    return made, headers[0].address, sum(header.size_bytes for header in headers)


def _print_unsupported(console: Console, items: Sequence[UnsupportedItem], limit: int) -> None:
    columns = [
        Column("function", right=True, role=Role.NAME),
        Column("row", right=True),
        Column(""),
        Column("cannot be represented", shrinks=30),
    ]
    rows: list[list[Cell]] = [
        [
            _hex(one.function) or "-",
            "" if one.row is None else count_text(one.row),
            ("left out", Role.WARNING) if one.left_out else ("kept", Role.FAINT),
            one.what,
        ]
        for one in items[: limit or None]
    ]
    console.lines(grid(columns, rows, console.style, indent=""))
    if limit and len(items) > limit:
        rest = count_text(len(items) - limit)
        console.line(console.style.paint(f"… {rest} more (--limit 0 shows all)", Role.FAINT))


def _find(console: Console, file: str, addresses: Sequence[int], as_json: bool) -> int:
    from perfuse import sframe

    if not addresses:
        raise click.UsageError("find needs addresses after the file, such as 0x401136")
    found = sframe.open(file).find(addresses).to_arrow().to_struct_array().to_pylist()
    missing = any(row["start_offset"] is None for row in found)
    if as_json:
        hexadecimal = ("address", "function_address")
        console.json({"lookups": [{**row, **{name: _hex(row[name]) for name in hexadecimal}} for row in found]})
        return exit_codes.FINDINGS if missing else exit_codes.CLEAN
    columns = [Column("address", right=True, role=Role.NAME), Column("function", right=True), Column("row", right=True)]
    columns += [Column("cfa"), Column("fp"), Column("ra")]
    rows: list[list[Cell]] = []
    for row in found:
        function, start = row["function_address"], row["start_offset"]
        where: list[Cell] = [_hex(function) or "-", "-" if start is None else f"+{hex_text(start)}"]
        rows.append([hex_text(row["address"]), *where, *(_rule(row, name) for name in ("cfa", "fp", "ra"))])
    console.lines(grid(columns, rows, console.style, indent=""))
    return exit_codes.FINDINGS if missing else exit_codes.CLEAN


def _rule(row: dict[str, object], name: str) -> Cell:
    base, offset, deref = (row[f"{name}_{part}"] for part in ("base", "offset", "deref"))
    if row["start_offset"] is None:
        return ("no row", Role.FAINT)
    if row["outermost"]:
        return "outermost" if name == "cfa" else ""
    if base is None:
        return ("same", Role.FAINT)
    text = f"{base}{offset:+}"
    signed = " signed" if name == "ra" and row["ra_mangled"] else ""
    return (f"[{text}]" if deref else text) + signed


def _hex(number: object) -> str | None:
    return hex_text(number) if isinstance(number, int) else None
