"""`perfuse report`"""

from __future__ import annotations

import click

from perfuse.analysis.sampled import events
from perfuse.cli.console import Console
from perfuse.cli.opening import open_profile, settle
from perfuse.cli.options import FILES, JSON, ProfileOptions, limit, near_choice, profile_options
from perfuse.cli.verb import verb
from perfuse.reports.profile import profile_report
from perfuse.reports.profile_text import profile_lines
from perfuse.reports.recording import code_report
from perfuse.reports.recording_text import code_lines


@verb(
    "report",
    examples=[
        "perfuse report perf.data jit-2345.dump",
        "perfuse report jit-2345.dump",
        "perfuse report --json perf.data",
    ],
)
@FILES
@click.option("--event", metavar="NAME", help="Event to report, where several were sampled.")
@limit(10, "functions a list")
@profile_options
@JSON
def command(
    console: Console,
    files: tuple[str, ...],
    event: str | None,
    limit: int,
    how: ProfileOptions,
    as_json: bool,
) -> int:
    """With samples (perf.data): the functions that cost most, by thread, module and tier, and what has no name.

    A code dump alone: what was compiled, when, how often, how big.
    """
    profile = open_profile(console, files, how)
    sampled = [one.name for one in events(profile)]
    if event is not None:
        near_choice(event, sampled, "event")
    if sampled:
        samples = profile_report(profile, limit, event)
        console.json(samples.as_json()) if as_json else console.lines(profile_lines(samples, console.style))
    else:
        if how.selects:
            raise click.UsageError("no samples are left to report: --between or --thread leave none")
        code = code_report(profile, limit)
        console.json(code.as_json()) if as_json else console.lines(code_lines(code, console.style))
    return settle(console, profile.diagnostics)
