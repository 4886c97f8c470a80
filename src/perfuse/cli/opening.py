"""Opening the files of a command as a profile. Imports no click, which the fast path does without."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import perfuse
from perfuse.cli import exit_codes
from perfuse.errors import UsageError
from perfuse.filters.stacks import StackFilter
from perfuse.value_class import value_class

if TYPE_CHECKING:
    from perfuse import Diagnostic, Profile
    from perfuse.cli.console import Console

NO_FILTER = StackFilter()
_HEXADECIMAL = r"0x[0-9a-fA-F]{1,16}"
READING_STAGE = "joining"
"""The stage that `perfuse.fuse` reports when the core starts to read the files."""
ALL_SECONDS = 1e9
"""Longer than any recording; in nanoseconds it fits in 64 bits."""


@value_class
class ProfileOptions:
    """How files are opened as a profile, and which part of it is selected: the options of `profile_options`."""

    symbol_dirs: tuple[str, ...] = ()
    no_debug_info: bool = False
    strict: bool = False
    between: tuple[float | str | None, float | str | None] | None = None
    thread: str | None = None
    process: str | None = None
    maps: tuple[tuple[int | None, str], ...] = ()
    tsc_hz: int | Literal["auto", "header"] = "auto"
    follow: Literal["all", "named", "none"] = "all"
    debuginfod: tuple[str, ...] = ()
    stack_filter: StackFilter = NO_FILTER
    """Set by `stack_filters`."""

    @property
    def selects(self) -> bool:
        """Whether only a part of the profile is selected."""
        return bool(self.selection_text)

    @property
    def selection_text(self) -> str:
        """The options that select a part of the profile; empty where none does."""
        parts = ["--between"] if self.between is not None else []
        parts += [f"--process {self.process}"] if self.process is not None else []
        parts += [f"--thread {self.thread}"] if self.thread is not None else []
        return ", ".join([*parts, *([str(self.stack_filter)] if self.stack_filter else [])])


def open_profile(
    console: Console, files: Sequence[str], how: ProfileOptions, meanwhile: Callable[[], None] = lambda: None
) -> Profile:
    """Opens files as one profile with the selection applied; `meanwhile` is called while the core reads them."""
    with console.progress() as shown:

        def progress(what: str, share: float) -> None:
            shown(what, share)
            if what == READING_STAGE:
                meanwhile()

        return fused_profile(files, how, progress)


def fused_profile(files: Sequence[str], how: ProfileOptions, progress: Callable[[str, float], None]) -> Profile:
    """Opens files as one profile with the selection applied."""
    profile = perfuse.fuse(
        *files,
        symbol_dirs=how.symbol_dirs,
        debug_info=not how.no_debug_info,
        strict=how.strict,
        maps=object_files(how.maps),
        tsc_hz=how.tsc_hz,
        follow=how.follow,
        debuginfod=how.debuginfod,
        progress=progress,
    )
    if how.between is not None:
        profile = _between(profile, *how.between)
    if how.process is not None:
        profile = profile.process(_name_or_number(how.process))
    if how.thread is not None:
        profile = profile.thread(_name_or_number(how.thread))
    return profile.filtered(how.stack_filter) if how.stack_filter else profile


def _name_or_number(given: str) -> str | int:
    """A number where it is one, decimal or hexadecimal."""
    return int(given, 0) if given.isdecimal() or re.fullmatch(_HEXADECIMAL, given) else given


def _between(profile: Profile, first: float | str | None, last: float | str | None) -> Profile:
    """The time between two points, in seconds, or between the first calls of two functions."""
    if isinstance(first, str) or isinstance(last, str):
        return profile.between_calls(*(one if one is None else str(one) for one in (first, last)))
    return profile.between(first or 0.0, ALL_SECONDS if last is None else last)


def object_files(maps: Sequence[tuple[int | None, str]]) -> dict[int, str] | list[str]:
    """The argument `maps` of `perfuse.fuse` for the values of `--map`: by number, or the program and its libraries.

    Raises:
        UsageError: Some libraries have a number and others have none.
    """
    plain = [path for number, path in maps if number is None]
    numbered = {number: path for number, path in maps if number is not None}
    if not numbered:
        return plain
    if len(plain) + (0 in numbered) > 1:
        hint = "give --map PROGRAM and --map N=LIBRARY, or all files without numbers"
        raise UsageError(f"{plain[-1]} has no number, and other files of --map have one", hint=hint)
    return {**({0: plain[0]} if plain else {}), **numbered}


def note_data_loss(console: Console, diagnostics: Sequence[Diagnostic]) -> int:
    """Returns the exit code for the diagnostics of files; prints a message where recorded data is lost.

    Deviations that perfuse handles (`info`, `warning`) do not count; `perfuse check` lists those too.
    """
    from perfuse.reports.inputs import counts_text, severity_counts

    losses = [found for found in diagnostics if found.is_loss]
    if not losses:
        return exit_codes.CLEAN
    paths = sorted({found.path for found in losses})
    console.note(
        f"{', '.join(paths)}: {counts_text(severity_counts(losses))}", f"`perfuse check {paths[0]}` shows where"
    )
    return exit_codes.FINDINGS
