"""`perfuse help`"""

from __future__ import annotations

import click

from perfuse.cli.console import Console
from perfuse.cli.verbs import VERBS, verb
from perfuse.errors import require_known


@verb("help", examples=["perfuse help report"])
@click.argument("name", required=False, metavar="[VERB]")
@click.pass_context
def command(ctx: click.Context, console: Console, name: str | None) -> None:
    """Without a verb, shows the help of perfuse."""
    root = ctx.find_root()
    if name is None:
        console.line(root.get_help())
        return
    require_known(name, list(VERBS), "verb")
    group = root.command
    assert isinstance(group, click.Group)
    shown = group.get_command(root, name)
    assert shown is not None
    console.line(shown.get_help(click.Context(shown, info_name=name, parent=root)))
