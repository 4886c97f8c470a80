"""`perfuse flame`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from perfuse.analysis.filtered_samples import filtered_samples
from perfuse.analysis.sampled import events, select_event
from perfuse.cli.console import Console
from perfuse.cli.opening import NO_FILTER, ProfileOptions, note_data_loss, open_profile
from perfuse.cli.options import FILES, noted_warnings, output, profile_options, stack_filters
from perfuse.cli.page_output import write_view_page
from perfuse.cli.verbs import verb
from perfuse.exporters import export
from perfuse.exporters.source import no_samples_error
from perfuse.pictures.flame_graph import flame_target
from perfuse.table import RETAINED, WEIGHTS

if TYPE_CHECKING:
    from perfuse.analysis.profiles import SampleProfile
    from perfuse.profile import Profile

EVENT_OPTION = "--event NAME"


@verb(
    "flame",
    examples=[
        "perfuse flame perf.data jit-2345.dump -o flame.html",
        "perfuse flame perf.data -o flame.svg",
        "perfuse flame perf.data --event cpu-clock -o cpu.html",
        "perfuse flame output.mlpd --weight bytes -o allocated.html",
        "perfuse flame sessions.mlpd.gz --weight retained -o heap.html",
    ],
)
@FILES
@output("The flame graph, flame.html or flame.svg", required=True)
@click.option("--event", metavar="NAME", help="Event to draw, where there are several. [the one with most samples]")
@click.option("--to", type=click.Choice(("html", "svg")), metavar="FORMAT", help="html or svg. [by the name of OUT]")
@click.option("--inverted", is_flag=True, help="Start from the innermost functions, callers above.")
@click.option(
    "--weight",
    type=click.Choice((*WEIGHTS, RETAINED)),
    metavar="WHAT",
    help="Meaning of widths: bytes or count of allocations, time or calls of a call trace, bytes retained in the"
    " last heap snapshot.",
)
@profile_options
@stack_filters
def command(
    console: Console,
    files: tuple[str, ...],
    output: str,
    event: str | None,
    to: str | None,
    inverted: bool,
    weight: str | None,
    how: ProfileOptions,
) -> int:
    """The file is self-contained. HTML can be zoomed, searched, inverted and merged; SVG is a static picture.

    It shows samples; without samples, recorded calls, else allocations, else the last heap snapshot.
    """
    if event is not None and weight is not None:
        raise click.UsageError("--event and --weight both select what is drawn: give one of them")
    if event == RETAINED:
        event, weight = None, RETAINED
    target = to or ("html" if output == "-" else flame_target(output))
    profile = open_profile(console, files, how)
    options: dict[str, Any] = {"inverted": True} if inverted else {}
    event = event if weight is None else WEIGHTS.get(weight)
    if event is not None:
        options["event"] = event
    is_default = event is None or next(iter(events(profile)), None) == select_event(profile, event)
    is_plain = weight is None and is_default and not how.stack_filter
    state = "tab=flame&dir=inverted" if inverted else "tab=flame"
    event_option = EVENT_OPTION if event is None else None
    if (target == "html" and is_plain) and write_view_page(
        console, profile, files, output, state=state, event_option=event_option
    ):
        if output != "-":
            console.note(f"wrote {output}")
        return note_data_loss(console, profile.diagnostics)
    with noted_warnings(console, EVENT_OPTION):
        export(_weighted(profile, weight), output, to=target, **options)
    if output != "-":
        console.note(f"wrote {output}")
    return note_data_loss(console, profile.diagnostics)


def _weighted(profile: Profile, weight: str | None) -> SampleProfile:
    """The source of the graph: the profile, or the retained sizes of its last heap snapshot."""
    if weight != RETAINED and (weight in WEIGHTS or events(profile.filtered(NO_FILTER))):
        return profile
    if weight == RETAINED or profile.has("heap_snapshots"):
        from perfuse.analysis.heap import selected_retained_sizes

        return filtered_samples(selected_retained_sizes(profile), profile.stack_filter)
    raise no_samples_error(profile)
