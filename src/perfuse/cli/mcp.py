"""`perfuse mcp`"""

from __future__ import annotations

from typing import Literal

import click

from perfuse import __version__
from perfuse.cli.console import Console
from perfuse.cli.options import FOLLOW_CHOICES, Seconds
from perfuse.cli.verbs import verb

MAX_MEMORY_BYTES = 4_000_000_000


@verb("mcp", examples=["perfuse mcp recordings", "perfuse mcp recordings --timeout 20 --memory 1GB"])
@click.argument("directory", default=".", metavar="[DIR]")
@click.option("--timeout", type=Seconds(), default=60.0, metavar="SECONDS", help="End a call that takes longer. [60]")
@click.option(
    "--follow",
    type=click.Choice(FOLLOW_CHOICES),
    default="none",
    metavar="WHICH",
    help="Which files that a recording names are opened, also outside of DIR: all, named (by build id), none. [none]",
)
def command(console: Console, directory: str, timeout: float, follow: Literal["all", "named", "none"]) -> None:
    """A server of the Model Context Protocol on standard input and output. Its tools open, report, tree, annotate,
    diff, query and explain run this command line on files in DIR, also by links, and on no others.

    Each call is a process with limits: --timeout, --memory (here 4 GB, or less on small machines), --max-unpacked.
    The server ends with its input.
    """
    from perfuse import _core
    from perfuse.agents.commands import Commands, Limits
    from perfuse.agents.confinement import Confinement
    from perfuse.agents.server import Server, protocol_streams
    from perfuse.agents.toolbox import Toolbox
    from perfuse.input.unpacking import allowed_bytes
    from perfuse.memory import requested_limit

    confinement = Confinement(directory)
    memory_bytes = requested_limit or min(MAX_MEMORY_BYTES, _core.memory_limit())
    commands = Commands(confinement.directory, Limits(timeout, memory_bytes, allowed_bytes(), follow))
    console.out.flush()
    with protocol_streams() as (stream, output):
        Server(Toolbox(confinement, commands), __version__, stream, output).run()
