"""`perfuse pack`"""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from perfuse.cli import exit_codes
from perfuse.cli.console import Console
from perfuse.cli.opening import ProfileOptions, note_data_loss, open_profile
from perfuse.cli.options import FILES, JSON, output, profile_options
from perfuse.cli.verbs import verb
from perfuse.errors import UsageError


@verb(
    "pack",
    examples=[
        "perfuse pack perf.data jit-2345.dump -o app.perfuse",
        "perfuse pack perf.data jit-2345.dump -o app.perfuse --code sampled --sources used",
    ],
)
@FILES
@output("File to write, by convention NAME.perfuse", required=True)
@click.option(
    "--code",
    type=click.Choice(("none", "sampled", "all")),
    default="none",
    metavar="WHICH",
    help="Machine code to save, for annotate: none, sampled, all. [none]",
)
@click.option(
    "--sources",
    type=click.Choice(("none", "used", "all")),
    default="none",
    metavar="WHICH",
    help="Source texts to save: none, used (with samples), all that are found. [none]",
)
@click.option(
    "--lines",
    type=click.Choice(("sampled", "all")),
    default="sampled",
    metavar="WHICH",
    help="Code whose functions and lines other tools find in the Parquet tables: sampled, all. [sampled]",
)
@click.option("--inputs", is_flag=True, help="Save recordings as they are, with all code and all copies of stacks.")
@JSON
@partial(profile_options, selects=False)
def command(
    console: Console,
    files: tuple[str, ...],
    output: str,
    as_json: bool,
    how: ProfileOptions,
    **what: Any,
) -> int:
    """Names, lines, inlined calls and stacks are resolved now, so that the file can be opened on any machine.

    Every verb opens it, and gives the answers that it gives for the recordings.
    """
    if how.selects:
        raise UsageError(
            "only a whole profile can be saved", hint="--between, --thread and --process select when it is opened"
        )
    if as_json and output == "-":
        raise UsageError("standard output is the saved profile: --json needs -o FILE")
    profile = open_profile(console, files, how)
    with console.progress() as progress:
        saved = profile.save(output, progress=progress, **what)
    if as_json:
        console.json(
            {
                "path": saved.path,
                "size_bytes": saved.size_bytes,
                "input_bytes": saved.input_bytes,
                "profile_id": saved.manifest.profile_id,
                "tables": {row["name"]: row["rows"] for row in saved.manifest.tables},
            }
        )
    elif output != "-":
        from perfuse.reports.units import bytes_text

        share = f", {100 * saved.size_bytes / saved.input_bytes:.1f} % of its recordings" if saved.input_bytes else ""
        console.note(f"wrote {output}: {bytes_text(saved.size_bytes)}{share}")
    return note_data_loss(console, profile.diagnostics) or exit_codes.CLEAN
