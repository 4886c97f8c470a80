"""`perfuse mono heapshot`"""

from __future__ import annotations

import click

from perfuse.cli.console import Console
from perfuse.cli.options import Seconds
from perfuse.cli.verbs import verb
from perfuse.reports.units import counted


@verb(
    "mono",
    examples=["perfuse mono heapshot output.mlpd", "perfuse mono heapshot --port 34567 --host build-7"],
)
@click.argument("action", type=click.Choice(("heapshot",)), metavar="heapshot")
@click.argument("log", required=False, metavar="[LOG]")
@click.option("--port", type=int, metavar="N", help="Port of the profiler. [from LOG]")
@click.option("--host", default="localhost", metavar="HOST", help="Host of the program. [localhost]")
@click.option("--timeout", type=Seconds(), default=10.0, metavar="SECONDS", help="Maximum time to wait. [10]")
def command(console: Console, action: str, log: str | None, port: int | None, host: str, timeout: float) -> None:
    """The program runs with --profile=log:heapshot=ondemand. With LOG, its output file, waits for the snapshot."""
    from perfuse.formats.mono.heapshot import heapshot

    del action  # the only one there is
    num_snapshots = heapshot(log, port=port, host=host, timeout_s=timeout)
    if num_snapshots is None:
        console.note("requested a heap snapshot")
    else:
        console.line(f"{log} has {counted(num_snapshots, 'heap snapshot')}")
