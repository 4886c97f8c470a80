"""`perfuse annotate`"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import click

from perfuse.cli.budget import LEAST_BYTES
from perfuse.cli.console import Console
from perfuse.cli.opening import ProfileOptions, note_data_loss, open_profile
from perfuse.cli.options import (
    JSON,
    files_and_text,
    is_path,
    limit,
    missing_text,
    output,
    profile_options,
    stack_filters,
)
from perfuse.cli.verbs import verb
from perfuse.errors import UsageError


@verb(
    "annotate",
    examples=[
        "perfuse annotate perf.data jit-2345.dump crc",
        "perfuse annotate perf.data jit-2345.dump crc -o crc.html",
        "perfuse annotate perf.data jit-2345.dump crc --only entry",
        "perfuse annotate jit-2345.dump '/^h/' --compilation all --syntax intel",
    ],
)
@click.argument("files_and_function", nargs=-1, required=True, metavar="FILE... FUNCTION")
@click.option("--tier", metavar="T", help="Only compilations of this tier.")
@click.option(
    "--compilation",
    metavar="N",
    help="The compilation to list: its number or handle, or all. [the one with most samples]",
)
@click.option(
    "--source/--no-source", default=None, help="Interleave lines of source text; without either, where it is found."
)
@click.option(
    "--source-dir", "source_dirs", multiple=True, metavar="DIR", help="Directory with the source files; repeats."
)
@click.option(
    "--syntax",
    type=click.Choice(("att", "intel")),
    default="att",
    metavar="FORM",
    help="Form of x86 instructions: att, intel. [att]",
)
@click.option("--event", metavar="NAME", help="Count samples of this event. [the one with most samples]")
@limit(6, "instructions before and after each with samples")
@click.option(
    "--budget",
    type=int,
    metavar="N",
    help="At most N bytes: the instructions with most samples; what is left out is stated.",
)
@output("Write a page, function.html, instead")
@profile_options
@partial(stack_filters, without=("tier",))
@JSON
def command(
    console: Console,
    files_and_function: tuple[str, ...],
    tier: str | None,
    compilation: str | None,
    source: bool | None,
    source_dirs: tuple[str, ...],
    syntax: str,
    event: str | None,
    limit: int,
    budget: int | None,
    output: str | None,
    how: ProfileOptions,
    as_json: bool,
) -> int:
    """FUNCTION is a name, a part of one, a glob, /regex/, a handle (f12, or c34 for a compilation) or an address.

    Code of a JIT compiler is from the dump, code of programs and libraries from their files. x86 and AArch64 are
    disassembled; other code is listed as bytes.
    """
    from perfuse.analysis.annotation import Annotation
    from perfuse.analysis.source_files import SourceFiles
    from perfuse.reports.annotation import ListingOptions, annotation_json, annotation_lines

    files, function = files_and_text(files_and_function, "FUNCTION", may_be_path=True)
    _check_outputs(as_json, output, budget)
    profile = open_profile(console, files, how)
    try:
        annotation = Annotation(profile, function, tier=tier, event=event, intel=syntax == "intel")
    except UsageError as error:
        if error.field == "function" and is_path(function):
            raise missing_text("FUNCTION") from error
        raise
    if compilation == "all" or (output is not None and compilation is None):
        selected = annotation.compilations
    elif compilation is not None:
        selected = [annotation.compilation(compilation)]
    else:
        selected = [annotation.hottest]
    recordings = [one.path for one in profile.recordings]
    sources = (
        None if source is False else SourceFiles(profile, source_dirs, annotation.build_id, recordings, how.follow)
    )
    listings = [annotation.listing(one) for one in selected]
    if source and sources is not None:
        paths = {one.path for listing in listings for one in listing.instructions if one.path}
        if not any(sources.get(path) for path in paths):
            named = ", ".join(sorted(paths)[:3])
            raise UsageError(
                f"no source text: {f'{named} is not found' if paths else 'the code has no source positions'}",
                hint="--source-dir DIR names the directory of the sources" if paths else None,
            )
    if output is not None:
        from perfuse.exporters.annotation_page import write_page

        write_page(annotation, listings, sources, output)
        if output != "-":
            console.note(f"wrote {output}")
    elif as_json:
        console.json(annotation_json(annotation, listings, sources))
    else:
        shown = ListingOptions(limit or None, sources)
        _print_text(console, annotation_lines(annotation, listings, shown, console.style), budget)
    return note_data_loss(console, profile.diagnostics)


def _check_outputs(as_json: bool, output: str | None, budget: int | None) -> None:
    if as_json and output is not None:
        raise click.UsageError("--json and -o exclude each other")
    if budget is not None and (as_json or output is not None or budget < LEAST_BYTES):
        raise click.UsageError(f"--budget is for text, of at least {LEAST_BYTES} bytes")


def _print_text(console: Console, lines: Iterable[str], budget: int | None) -> None:
    """Prints a listing; of at most so many bytes, the instructions with most samples."""
    if budget is not None:
        from perfuse.reports.cut_text import cut_listing

        # The end of the last line is a byte too.
        lines = cut_listing("\n".join(lines), budget - 1, "a larger --budget shows more").split("\n")
    console.lines(lines)
