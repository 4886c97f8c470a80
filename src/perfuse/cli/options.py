"""Options that several verbs share, and opening the files of a command as a profile."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

import perfuse
from perfuse.cli import exit_codes

if TYPE_CHECKING:
    from perfuse import Diagnostic, Profile
    from perfuse.cli.console import Console


F = TypeVar("F", bound=Callable[..., Any])

JSON = click.option("--json", "as_json", is_flag=True, help="JSON, in a documented and stable shape.")
STRICT = click.option("--strict", is_flag=True, help="Refuse files that break their specification.")
LAST_OBJECT = 255
"""The highest number XRay gives to a library."""
FILES = click.argument("files", nargs=-1, required=True, metavar="FILE...")


def limit(default: int | None, what: str) -> Callable[[F], F]:
    """`--limit N`: 0 is all."""
    told = "" if default is None else f" [{default}]"
    told = f"At most N {what}; 0 is all.{told}"
    return click.option("--limit", type=int, default=default, metavar="N", callback=_not_negative, help=told)


def output(what: str, *, required: bool = False) -> Callable[[F], F]:
    """`-o OUT`: a place that can be written to, known before any long work; `-` is standard output."""
    return click.option(
        "-o",
        "--output",
        required=required,
        metavar="OUT",
        callback=_writable,
        help=f"{what}; - is standard output.",
    )


@dataclass(frozen=True, slots=True)
class ProfileOptions:
    """How files become a profile, and which part of it is looked at; the options of `profile_options`."""

    symbol_dirs: tuple[str, ...] = ()
    no_debug_info: bool = False
    strict: bool = False
    between: tuple[float | None, float | None] | None = None
    thread: str | None = None
    maps: tuple[tuple[int, str], ...] = ()
    tsc_hz: int | Literal["auto", "header"] = "auto"

    @property
    def selects(self) -> bool:
        """Whether some samples may have been left out."""
        return self.between is not None or self.thread is not None


def profile_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every verb that makes a profile; the verb gets them as one, `how`."""

    @wraps(function)
    def gathered(*args: Any, **given: Any) -> Any:
        how = ProfileOptions(**{field.name: given.pop(field.name) for field in fields(ProfileOptions)})
        return function(*args, how=how, **given)

    for option in (
        STRICT,
        click.option(
            "--tsc-hz",
            type=TscRate(),
            default="auto",
            metavar="HZ",
            help="Rate of the counter in call traces: auto (from the trace itself), header, or ticks a second. [auto]",
        ),
        click.option(
            "--map",
            "maps",
            type=ObjectFile(),
            multiple=True,
            metavar="[N=]FILE",
            help="Program whose XRay map names functions; with N=, library N; repeats.",
        ),
        click.option("--no-debug-info", is_flag=True, help="No lines and inlined calls of native code: faster."),
        click.option(
            "--symbols", "symbol_dirs", multiple=True, metavar="DIR", help="Directory with binaries; repeats."
        ),
        click.option("--thread", metavar="NAME|TID", help="Only threads of that name or id."),
        click.option(
            "--between", type=SecondsRange(), metavar="A..B", help="Only from second A to B of the recording."
        ),
    ):
        gathered = option(gathered)
    return gathered


class TscRate(click.ParamType[Any]):
    """`auto`, `header`, or ticks a second; `2596.1e6` too."""

    name = "rate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """The rate, or where to take it from."""
        if value in ("auto", "header") or isinstance(value, int):
            return value  # type: ignore[no-any-return]
        try:
            hz = round(float(value))
        except (OverflowError, ValueError):
            hz = 0
        if hz <= 0:
            self.fail(f"{value!r} is no rate: write auto, header, or ticks a second such as 2596.1e6", param, ctx)
        return hz


class ObjectFile(click.ParamType[Any]):
    """`FILE`, or `N=FILE` for library number N."""

    name = "map"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, str]:
        """Number of the object, and its file."""
        if isinstance(value, tuple):
            return value
        number, equals, path = value.partition("=")
        if not (equals and number.isdecimal()):
            return 0, value
        if int(number) > LAST_OBJECT:
            self.fail(f"object {number} cannot be: XRay numbers them from 0 to {LAST_OBJECT}", param, ctx)
        return int(number), path


class Seconds(click.ParamType[Any]):
    """A number of seconds, more than 0."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        try:
            seconds = float(value)
        except ValueError:
            seconds = 0.0
        if not 0 < seconds < threading.TIMEOUT_MAX:
            self.fail(f"{value!r} is no number of seconds", param, ctx)
        return seconds


class SecondsRange(click.ParamType[Any]):
    """`2..5.5`, `2..`, `..5.5`: seconds from the start of a recording."""

    name = "range"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float | None, float | None]:
        """The two ends, None where left open."""
        if isinstance(value, tuple):
            return value
        match = re.fullmatch(r"(\d+(?:\.\d+)?)?\.\.(\d+(?:\.\d+)?)?", value)
        if match is None or not any(match.groups()):
            self.fail(f"{value!r} is no range of seconds: write 2..5.5, 2.. or ..5.5", param, ctx)
        first, last = (float(part) if part else None for part in match.groups())
        if first is not None and last is not None and first >= last:
            self.fail(f"{value!r} ends before it starts", param, ctx)
        return first, last


def _not_negative(ctx: click.Context, param: click.Parameter, value: int | None) -> int | None:
    # click.IntRange would do, but writes `[x>=0]` into the help.
    if value is not None and value < 0:
        raise click.BadParameter(f"{value} is less than 0", ctx, param)
    return value


def _writable(ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    if value is None or value == "-":
        return value
    parent = Path(value).parent
    if not parent.is_dir():
        raise click.UsageError(f"cannot write {value}: there is no directory {parent}", ctx)
    return value


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


def note_data_loss(console: Console, diagnostics: Sequence[Diagnostic]) -> int:
    """The exit code of a verb that read files, and a note where something recorded could not be read.

    Habits that perfuse reads right (`info`, `warning`) are no reason to fail; `perfuse check` tells those too.
    """
    from perfuse.reports.inputs import counts_text, severity_counts

    grave = [found for found in diagnostics if found.severity in GRAVE]
    if not grave:
        return exit_codes.CLEAN
    paths = sorted({found.path for found in grave})
    console.note(f"{', '.join(paths)}: {counts_text(severity_counts(grave))}", f"`perfuse check {paths[0]}` tells more")
    return exit_codes.FINDINGS
