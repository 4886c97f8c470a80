"""The page of `perfuse view` as a file, for verbs that write HTML."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from perfuse.cli.console import Console
from perfuse.cli.options import noted_warnings

if TYPE_CHECKING:
    from perfuse.profile import Profile


def write_view_page(
    console: Console,
    profile: Profile,
    files: Sequence[str],
    output: str,
    *,
    state: str = "tab=flame",
    event_option: str | None = "-O event=NAME",
) -> bool:
    """Writes the page with its data, and returns whether it did: not where nothing has a time, or there is too much.

    Args:
        console: Prints a note where the page has no timeline, with the reason.
        profile: The profile.
        files: The files, as the command names them.
        output: File to write; `-` for standard output.
        state: What the page shows first.
        event_option: How the user names another event; None where one was named, and others need no note.
    """
    from perfuse.analysis.sampled import events
    from perfuse.exporters.contents import note_other_events
    from perfuse.output.file import output_file
    from perfuse.viewer.one_file import TooLargeError, page, takes

    if not takes(profile):
        return False
    try:
        text = page(profile, files, state=state)
    except TooLargeError as error:
        console.note(f"the page has a flame graph and no timeline: {error}", error.hint)
        return False
    if event_option is not None:
        with noted_warnings(console, event_option):
            note_other_events(profile, events(profile)[0].name)
    if output == "-":
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()
        return True
    with output_file(Path(output)) as out:
        out.write(text.encode())
    return True
