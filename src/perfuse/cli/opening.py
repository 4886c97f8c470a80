"""From the files of a command to a profile, and from its diagnostics to an exit code."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import perfuse
from perfuse.cli import exit_codes
from perfuse.cli.console import Console
from perfuse.cli.options import ProfileOptions
from perfuse.reports.findings import counts_text, severity_counts

if TYPE_CHECKING:
    from perfuse import Diagnostic, Profile

GRAVE = ("data_loss", "error")
"""Severities of what could not be read: the answer is not all there was."""
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]{1,16}")
READING = "joining"
"""What `perfuse.fuse` says it does once the core reads the files."""
ALL_SECONDS = 1e9
"""Longer than any recording, and still small enough for nanoseconds in 64 bits."""


def open_profile(
    console: Console, files: Sequence[str], how: ProfileOptions, meanwhile: Callable[[], None] = lambda: None
) -> Profile:
    """Files on one clock, cut to what was selected; `meanwhile` is called while the core reads them."""
    with console.progress() as shown:

        def progress(what: str, share: float) -> None:
            shown(what, share)
            if what == READING:
                meanwhile()

        profile = perfuse.fuse(
            *files,
            symbol_dirs=how.symbol_dirs,
            debug_info=not how.no_debug_info,
            strict=how.strict,
            maps=dict(how.maps),
            tsc_hz=how.tsc_hz,
            progress=progress,
        )
    if how.between is not None:
        start_s, end_s = how.between
        profile = profile.between(start_s or 0.0, ALL_SECONDS if end_s is None else end_s)
    if how.thread is not None:
        number = how.thread.isdecimal() or _HEXADECIMAL.fullmatch(how.thread)
        profile = profile.thread(int(how.thread, 0) if number else how.thread)
    return profile


def settle(console: Console, diagnostics: Sequence[Diagnostic]) -> int:
    """The exit code of a verb that read files, and a note where something recorded could not be read.

    Habits that perfuse reads right (`info`, `warning`) are no reason to fail; `perfuse check` tells those too.
    """
    grave = [found for found in diagnostics if found.severity in GRAVE]
    if not grave:
        return exit_codes.CLEAN
    paths = sorted({found.path for found in grave})
    console.note(f"{', '.join(paths)}: {counts_text(severity_counts(grave))}", f"`perfuse check {paths[0]}` tells more")
    return exit_codes.FINDINGS
