"""`perfuse convert`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from perfuse.cli.console import Console
from perfuse.cli.opening import ProfileOptions, note_data_loss, open_profile
from perfuse.cli.options import FILES, WRITTEN_VALUES, noted_warnings, output, profile_options, stack_filters
from perfuse.cli.page_output import write_view_page
from perfuse.cli.verbs import verb
from perfuse.reports.grid import Cell, Column, grid
from perfuse.reports.text import Role

if TYPE_CHECKING:
    from perfuse.exporters import Target


def _list_targets(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    import sys

    from perfuse.exporters import TARGETS

    console = Console(sys.stdout, sys.stderr)
    rows: list[list[Cell]] = [[one.name, " ".join(one.suffixes), one.readers] for one in TARGETS]
    columns = [Column("target", role=Role.NAME), Column("names"), Column("read by", shrinks=30)]
    console.lines(grid(columns, rows, console.style, indent=""))
    ctx.exit()


def _list_options(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    import sys

    from perfuse.exporters import TARGETS, options_of, target_named

    console = Console(sys.stdout, sys.stderr)
    to = ctx.meta.get(WRITTEN_VALUES, {}).get("to")
    targets = TARGETS if to is None else (target_named(to),)
    rows: list[list[Cell]] = [
        [target.name, option.name, option.values, option.default_text, option.description]
        for target in targets
        for option in options_of(target)
    ]
    columns = [
        Column("target", role=Role.NAME),
        Column("option", role=Role.NAME),
        Column("values"),
        Column("default"),
        Column("meaning", shrinks=30),
    ]
    if rows:
        console.lines(grid(columns, rows, console.style, indent=""))
    else:
        console.note(f"{to} has no options")
    ctx.exit()


def _parsed(target: Target, given: tuple[str, ...]) -> dict[str, Any]:
    """The values of `-O NAME=VALUE`, parsed for the target."""
    from perfuse.exporters import option_named

    options = {}
    for text in given:
        name, equals, value = text.partition("=")
        option = option_named(target, name.strip().replace("-", "_"))
        if not equals:
            raise click.UsageError(f"-O {text} has no value: {option.name} is {option.values}")
        options[option.name] = option.parse(value)
    return options


@verb(
    "convert",
    examples=[
        "perfuse convert perf.data jit-2345.dump -o profile.json --to firefox",
        "perfuse convert perf.data jit-2345.dump -o - --to collapsed -O root=thread",
        "perfuse convert perf.data jit-2345.dump -o named.perf.data",
        "perfuse convert sessions.mlpd.gz -o heap.heapsnapshot",
        "perfuse convert xray-log.server.uocuES --map server -o trace.json --to chrome --function run",
        "perfuse convert --list",
        "perfuse convert --to collapsed --list-options",
    ],
)
@FILES
@output(
    "File to write, or a directory where the target makes several, or otlp+http://HOST:PORT", required=True, sends=True
)
@click.option("--to", metavar="TARGET", help="Target. [by the name of OUT]")
@click.option("-O", "options", multiple=True, metavar="NAME=VALUE", help="Option of the target; repeats.")
@click.option(
    "--function",
    metavar="PATTERN",
    help="Only calls of matching functions and what they call; of stacks, as --root.",
)
@click.option(
    "--list",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_list_targets,
    help="List the targets.",
)
@click.option(
    "--list-options",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_list_options,
    help="List the options of TARGET, or of all.",
)
@profile_options
@stack_filters
def command(
    console: Console,
    files: tuple[str, ...],
    output: str,
    to: str | None,
    options: tuple[str, ...],
    function: str | None,
    how: ProfileOptions,
) -> int:
    """OUT gets its name when it is complete."""
    from perfuse.exporters import target_for, target_named
    from perfuse.exporters.registry import COLLECTORS

    if to is None and output == "-":
        raise click.UsageError("standard output has no name that determines the format: give --to")
    target = target_for(output) if to is None else target_named(to)
    target_options = _parsed(target, options)
    profile = open_profile(console, files, how)
    if function is not None:
        from perfuse.exporters.filtered import of_function

        profile, of_target = of_function(profile, target, function)
        target_options |= of_target
    is_page = target.name == "html" and not target_options and not profile.stack_filter
    if is_page and write_view_page(console, profile, files, output):
        if output != "-":
            console.note(f"wrote {output}, {target.name}")
        return note_data_loss(console, profile.diagnostics)
    with noted_warnings(console), console.progress() as progress:
        *others, _ = profile.export(output, to=target.name, progress=progress, **target_options) or ("",)
    if output.startswith(COLLECTORS):
        console.note(f"sent to {output}")
    elif output != "-":
        others_text = f", and {', '.join(others)}" if others and "files" in target.outputs else ""
        console.note(f"wrote {output}, {target.name}{others_text}")
    return note_data_loss(console, profile.diagnostics)
