"""`perfuse watch`"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from perfuse.cli.console import Console
from perfuse.cli.opening import note_data_loss
from perfuse.cli.options import JSON, Seconds
from perfuse.cli.verbs import verb
from perfuse.reports.json_text import json_text
from perfuse.reports.text import Role, Style
from perfuse.reports.units import bytes_text, count_text, counted

if TYPE_CHECKING:
    from perfuse.watch import WatchUpdate

MOST_KINDS = 4


@verb(
    "watch", examples=["perfuse watch --for 1 jit-2345.dump", "perfuse watch --for 1 --every 0.2 --json jit-2345.dump"]
)
@click.argument("file")
@click.option("--every", type=Seconds(), default=1.0, metavar="SECONDS", help="Interval between updates. [1]")
@click.option("--for", "seconds", type=Seconds(), metavar="SECONDS", help="Duration. [until the file is closed]")
@click.option(
    "--idle",
    type=Seconds(),
    default=5.0,
    metavar="SECONDS",
    help="Without growth for this long, a file that no process is seen to write is complete. [5]",
)
@JSON
def command(console: Console, file: str, every: float, seconds: float | None, idle: float, as_json: bool) -> int:
    """Shows new records by kind, and their number per second. With --json, each update is one line with a JSON object.

    Ends when the process that writes the file closes it or ends; where no process is seen to write it, when it has not
    grown for --idle; or with Ctrl-C.
    """
    from perfuse.watch import watch

    last: WatchUpdate | None = None
    for last in watch(file, every_s=every, for_s=seconds, idle_s=idle):
        if as_json:
            growth = {
                "seconds": round(last.seconds, 3),
                "size_bytes": last.size_bytes,
                "records": last.records,
                "new": last.new,
            }
            console.line(json_text(growth, indent=None))
        else:
            console.line(line_of(last, console.style))
        console.out.flush()
    return 0 if last is None else note_data_loss(console, last.recording.findings())


def line_of(growth: WatchUpdate, style: Style) -> str:
    """The text of an update."""
    head = f"{growth.seconds:7.1f} s  {bytes_text(growth.size_bytes):>9}  "
    if not growth.new:
        return head + style.paint("nothing new", Role.FAINT)
    most = sorted(growth.new.items(), key=lambda one: (-one[1], one[0]))
    texts = [f"{kind} {_count(growth, kind)}" for kind, _ in most[:MOST_KINDS]]
    if len(most) > MOST_KINDS:
        rest = sum(count for _, count in most[MOST_KINDS:])
        texts.append(style.paint(counted(rest, "other"), Role.FAINT))
    return head + "  ".join(texts)


def _count(growth: WatchUpdate, kind: str) -> str:
    count = f"+{count_text(growth.new[kind])}" if growth.per_second else count_text(growth.new[kind])
    rate = growth.per_second.get(kind)
    return count if rate is None else f"{count} ({count_text(round(rate))}/s)"
