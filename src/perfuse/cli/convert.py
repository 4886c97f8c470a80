"""`perfuse convert`"""

from __future__ import annotations

import click

from perfuse.cli.console import Console
from perfuse.cli.opening import open_profile, settle
from perfuse.cli.options import FILES, near_choice, output, profile_options, selection_options
from perfuse.cli.verb import verb
from perfuse.reports.grid import Cell, Column, grid
from perfuse.reports.style import Role


def _list_targets(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    import sys

    from perfuse.exporters import TARGETS

    console = Console(sys.stdout, sys.stderr)
    rows: list[list[Cell]] = [[one.name, " ".join(one.suffixes), one.about] for one in TARGETS]
    columns = [Column("target", role=Role.NAME), Column("names"), Column("what reads it", shrinks=30)]
    console.lines(grid(columns, rows, console.style, indent=""))
    ctx.exit()


@verb(
    "convert",
    examples=[
        "perfuse convert perf.data jit-2345.dump -o profile.json --to firefox",
        "perfuse convert perf.data jit-2345.dump -o - --to collapsed",
        "perfuse convert --list",
    ],
)
@FILES
@output("File to write, or a directory where the target makes several", required=True)
@click.option("--to", metavar="TARGET", help="Target; told by the name of OUT where not given.")
@click.option(
    "--list",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_list_targets,
    help="List the targets.",
)
@selection_options
@profile_options
def command(
    console: Console,
    files: tuple[str, ...],
    output: str,
    to: str | None,
    between: tuple[float | None, float | None] | None,
    thread: str | None,
    symbol_dirs: tuple[str, ...],
    no_debug_info: bool,
    strict: bool,
) -> int:
    """OUT appears under its name only when it is complete."""
    from perfuse.exporters import TARGETS, target_for

    if to is not None:
        near_choice(to, [target.name for target in TARGETS], "target")
    elif output == "-":
        raise click.UsageError("standard output has no name to tell the format by: give --to")
    else:
        to = target_for(output).name
    profile = open_profile(
        console,
        files,
        symbol_dirs=symbol_dirs,
        no_debug_info=no_debug_info,
        strict=strict,
        between=between,
        thread=thread,
    )
    profile.export(output, to=to)
    if output != "-":
        console.note(f"wrote {output}, {to}")
    return settle(console, profile.diagnostics)
