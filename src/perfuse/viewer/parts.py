"""Parts of a profile, and commands about its files."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perfuse.profile import Profile


def command_text(verb: str, files: Sequence[str], arguments: Sequence[str]) -> str:
    """A command line, quoted for a shell."""
    return shlex.join(["perfuse", verb, *files, *arguments])


def part_of(
    profile: "Profile", zero_ns: int, from_ns: int | None, to_ns: int | None, threads: tuple[int, ...] | None
) -> "Profile":
    """The part of a profile in a time and in threads. What the profile already selects stays selected."""
    selection = profile.selection
    if from_ns is not None:
        start = zero_ns + from_ns
        selection = replace(selection, start_ns=start if selection.start_ns is None else max(selection.start_ns, start))
    if to_ns is not None:
        end = zero_ns + to_ns
        selection = replace(selection, end_ns=end if selection.end_ns is None else min(selection.end_ns, end))
    if threads is not None:
        held = threads if selection.thread_ids is None else set(selection.thread_ids).intersection(threads)
        selection = replace(selection, process=None, thread_ids=tuple(sorted(held)))
    return profile._selected(selection)
