"""`perfuse fleet`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from perfuse.analysis.normalization import METHODS
from perfuse.cli.console import Console
from perfuse.cli.options import JSON, MAPS, limit, output
from perfuse.cli.result import FORMATS
from perfuse.cli.verbs import Verb, verb

if TYPE_CHECKING:
    from collections.abc import Mapping

ENGINES = ("inline", "pool", "dask")

OPTIONS_OF: Mapping[str, tuple[str, ...]] = {
    "add": (
        "labels",
        "labels_from",
        "from_list",
        "engine",
        "workers",
        "dask",
        "scheduler",
        "worker_memory",
        "retry_failed",
        "keep_packs",
        "symbol_dirs",
        "maps",
        "no_debug_info",
        "no_compact",
        "as_json",
    ),
    "status": ("limit", "as_json"),
    "report": ("where", "event", "by", "unit", "order", "function", "calls", "heap", "limit", "as_json"),
    "query": ("where", "form", "output", "limit", "as_json"),
    "diff": ("event", "normalize", "by", "since", "within", "where", "output", "limit", "as_json"),
    "flame": ("where", "event", "output"),
    "find": ("where", "event", "limit", "as_json"),
    "check": (
        "against",
        "symbol_dirs",
        "maps",
        "no_debug_info",
        "event",
        "normalize",
        "output",
        "limit",
        "as_json",
    ),
    "open": ("output", "as_json"),
    "remove": ("where", "failed", "as_json"),
    "label": ("where", "labels", "as_json"),
    "gc": ("older_than", "keep_files", "as_json"),
    "files": ("as_json",),
}
"""The options of each action."""

COMMON = ("store_options",)


class FleetVerb(Verb):
    """A verb whose help lists options by action."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Options of all actions first, then those of each; one that several have is with the first of them."""
        options = {param.name: param for param in self.get_params(ctx) if isinstance(param, click.Option)}
        shown: set[str] = set()
        for action, names in OPTIONS_OF.items():
            shared = [name for name in names if sum(name in others for others in OPTIONS_OF.values()) == 1]
            shown.update(shared)
            records = [options[name].get_help_record(ctx) for name in shared]
            if records:
                with formatter.section(f"Options of {action}"):
                    formatter.write_dl([record for record in records if record])
        rest = [one.get_help_record(ctx) for name, one in options.items() if name not in shown]
        with formatter.section("Options"):
            formatter.write_dl([record for record in rest if record])


@verb(
    "fleet",
    cls=FleetVerb,
    examples=[
        "perfuse fleet add profiles nightly/ --label service=web --label build=41 --label host=a",
        "perfuse fleet add profiles runs/ --labels-from 'runs/(?P<build>[^/]+)/' --engine pool",
        "perfuse fleet add profiles nightly/ --dask local --workers 2",
        "perfuse fleet status profiles",
        "perfuse fleet report profiles --where 'service=web, since 7d'",
        "perfuse fleet report profiles --function render --by build",
        'perfuse fleet query profiles "SELECT build, count(*) FROM recordings GROUP BY ALL"',
        "perfuse fleet diff profiles build=41 build=42",
        "perfuse fleet diff profiles --since 41",
        "perfuse fleet diff profiles --since 41 --within service",
        "perfuse fleet find profiles 'main >> render'",
        "perfuse fleet flame profiles --where build=42 -o flame.html",
        "perfuse fleet check profiles new.folded --against 'build=41, last 20' -o check.html",
        "perfuse fleet open profiles 3f2a",
        "perfuse fleet add profiles nightly/ --keep-packs",
        "perfuse fleet label profiles --where 'build=41, host=a' --label build=42",
        "perfuse fleet remove profiles --where 'build=41, until 2027-01-01'",
        "perfuse fleet gc profiles",
    ],
)
@click.argument("action", type=click.Choice(tuple(OPTIONS_OF)), metavar="ACTION")
@click.argument("dataset")
@click.argument("arguments", nargs=-1, metavar="[ARG]...")
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="NAME=VALUE",
    help="Label of the recordings, such as build=41; repeats. For label, NAME= removes one.",
)
@click.option(
    "--labels-from",
    metavar="REGEX",
    help="Labels from paths: the named groups of a regular expression, '(?P<build>[^/]+)/(?P<host>[^/]+)/'.",
)
@click.option("--from", "from_list", metavar="LIST", help="File with one input per line; - is standard input.")
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    metavar="NAME",
    help="inline: this process; pool: processes of this machine; dask: a Dask cluster. [pool from 8 inputs on]",
)
@click.option("--workers", type=int, metavar="N", help="Processes to start. [one a processor]")
@click.option(
    "--dask",
    type=click.Choice(("local",)),
    metavar="local",
    help="Short for --engine dask with workers on this machine.",
)
@click.option("--scheduler", metavar="ADDRESS", help="Address of a Dask scheduler, such as tcp://127.0.0.1:8786.")
@click.option(
    "--worker-memory", metavar="SIZE", help="Limit of the memory of each worker, such as 2GB: larger recordings fail."
)
@click.option("--retry-failed", is_flag=True, help="Read recordings in quarantine again.")
@click.option(
    "--keep-packs",
    is_flag=True,
    help="Keep a saved profile of each recording in the dataset: open shows it when its files are gone.",
)
@click.option(
    "--symbols", "symbol_dirs", multiple=True, metavar="DIR", help="Directory with binaries and debug files; repeats."
)
@MAPS
@click.option("--no-debug-info", is_flag=True, help="Do not read inlined calls of native code: faster.")
@click.option("--no-compact", is_flag=True, help="Do not merge small files of the dataset afterwards.")
@click.option(
    "--where",
    metavar="SELECTION",
    default="",
    help="Only these recordings: 'service=web, build=41|42, host!=b*, since 7d, until 2026-11-08, last 20'.",
)
@click.option("--event", metavar="NAME", help="Event to report, where there are several. [that of most recordings]")
@click.option("--by", metavar="LABEL", help="Group by a label or column: build, host, day, service.")
@click.option(
    "--unit",
    type=click.Choice(("recording", "host")),
    default="recording",
    metavar="WHAT",
    help="What varies: recording, or host, which counts once however many recordings it has. [recording]",
)
@click.option(
    "--sort",
    "order",
    type=click.Choice(("self", "total")),
    default="self",
    metavar="ORDER",
    help="self or total. [self]",
)
@click.option("--function", metavar="PATTERN", help="Only matching functions: a name, a part of one, a glob, /regex/.")
@click.option("--calls", is_flag=True, help="Durations of recorded calls, by host or the label of --by.")
@click.option("--heap", is_flag=True, help="Size of the heap by type, and its growth by day.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    metavar="FORM",
    help=f"{', '.join(FORMATS)}. [by the name of OUT, or table]",
)
@click.option(
    "--normalize",
    type=click.Choice(METHODS),
    metavar="HOW",
    help="What recordings are made comparable by: see `perfuse help diff`. [typical where it is possible, else share]",
)
@click.option(
    "--since", metavar="BUILD", help="Name functions that changed after this build, each with the first bad one."
)
@click.option(
    "--within", metavar="LABEL", help="With --since: compare only recordings of equal LABEL, such as service."
)
@click.option("--against", metavar="SELECTION", default="last 20", help="Recordings to compare with. [last 20]")
@click.option(
    "--failed", is_flag=True, help="Remove inputs from the quarantine, which --where may select: not recordings."
)
@click.option(
    "--older-than",
    type=float,
    default=24.0,
    metavar="HOURS",
    help="Delete files and attempts that are not part of the dataset for so long: others may be at work. [24]",
)
@click.option("--keep-files", is_flag=True, help="Merge small files, and delete none.")
@click.option(
    "--store-option", "store_options", multiple=True, metavar="NAME=VALUE", help="Option of the object store; repeats."
)
@output("File to write: the flame graph, the comparison, the rows or the saved profile")
@limit(None, "rows per list [10 as text]")
@JSON
def command(console: Console, action: str, dataset: str, arguments: tuple[str, ...], **options: Any) -> int:
    """DATASET is a folder or an object store's URL with the sums of many recordings, as Delta Lake tables. ACTION is
    one of:

    add: reads recordings (FILES, directories, globs, URLs; files of one recording joined with +) into it. What is in it
    already is skipped; what cannot be read is put in quarantine, and does not stop the rest.

    status: recordings by build, sizes, quarantine.

    report: functions that cost most, their shares by a label with intervals, durations of calls, the heap by day.

    query: SQL over the dataset.

    diff: two selections (build=41 build=42), or with --since all builds after one: which function changed at which.

    flame: a flame graph of all selected recordings.

    find: recordings that contain a function, or a chain of calls: 'parse', 'main > parse', 'main >> parse'.

    check: compares new recordings with those before; exit 1 if a function grew beyond the noise.

    open: the files of a recording, by the beginning of its identity, and the command that shows it; -o copies its saved
    profile, where the dataset keeps one.

    remove: removes the recordings of --where, or with --failed what is in quarantine.

    label: gives the recordings of --where other labels.

    gc: merges small files, deletes what was removed or interrupted commands left.

    files: the Parquet files that are part of it, for other programs.
    """
    _refuse_options_of_others(action)
    from perfuse.cli.fleet_actions import run_action

    own = {name: options[name] for name in (*OPTIONS_OF[action], *COMMON)}
    return run_action(console, action, dataset, arguments, own)


def _refuse_options_of_others(action: str) -> None:
    context = click.get_current_context()
    for param in context.command.params:
        name = param.name or ""
        if not isinstance(param, click.Option) or name in (*OPTIONS_OF[action], *COMMON):
            continue
        if not any(name in names for names in OPTIONS_OF.values()):
            continue
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            takers = [other for other, names in OPTIONS_OF.items() if name in names]
            raise click.UsageError(f"{param.opts[-1]} is for {', '.join(takers)}, not for {action}")
