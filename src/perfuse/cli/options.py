"""Options that several verbs share, and opening the files of a command as a profile."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

import perfuse
from perfuse.cli import exit_codes
from perfuse.errors import ExportWarning, UsageError

if TYPE_CHECKING:
    from perfuse import Diagnostic, Profile
    from perfuse.cli.console import Console


F = TypeVar("F", bound=Callable[..., Any])

JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON in a documented and stable form.")
STRICT = click.option("--strict", is_flag=True, help="Reject files that deviate from their specification.")
LAST_OBJECT = 255
"""The highest object number of XRay."""
FILES = click.argument("files", nargs=-1, required=True, metavar="FILE...")


def limit(default: int | None, what: str) -> Callable[[F], F]:
    """`--limit N`; 0 for all."""
    shown_default = "" if default is None else f" [{default}]"
    text = f"At most N {what}; 0 for all.{shown_default}"
    return click.option("--limit", type=int, default=default, metavar="N", callback=_not_negative, help=text)


def output(what: str, *, required: bool = False) -> Callable[[F], F]:
    """`-o OUT`, whose folder is checked before any long work; `-` is standard output. With it `--force`."""
    out = click.option(
        "-o",
        "--output",
        required=required,
        metavar="OUT",
        callback=_writable,
        help=f"{what}; - is standard output.",
    )
    force = click.option(
        "--force",
        is_flag=True,
        expose_value=False,
        callback=_replacing,
        help="Replace a file OUT with content of another kind; never an input.",
    )
    return lambda function: out(force(function))


@dataclass(frozen=True, slots=True)
class ProfileOptions:
    """How files are opened as a profile, and which part of it is selected: the options of `profile_options`."""

    symbol_dirs: tuple[str, ...] = ()
    no_debug_info: bool = False
    strict: bool = False
    between: tuple[float | None, float | None] | None = None
    thread: str | None = None
    maps: tuple[tuple[int | None, str], ...] = ()
    tsc_hz: int | Literal["auto", "header"] = "auto"

    @property
    def selects(self) -> bool:
        """Whether only a part of the profile is selected."""
        return self.between is not None or self.thread is not None


def profile_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every verb that opens a profile; the verb receives them as one argument, `how`."""

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
            help="Clock rate of call traces: auto (estimated from the trace), header, or ticks per second. [auto]",
        ),
        click.option(
            "--map",
            "maps",
            type=ObjectFile(),
            multiple=True,
            metavar="[N=]FILE",
            help="Program whose XRay map names functions, then its libraries; N= gives a library's number; repeats.",
        ),
        click.option(
            "--no-debug-info", is_flag=True, help="Do not read lines and inlined calls of native code: faster."
        ),
        click.option(
            "--symbols",
            "symbol_dirs",
            multiple=True,
            metavar="DIR",
            help="Directory with binaries and debug files; repeats.",
        ),
        click.option("--thread", metavar="NAME|TID", help="Only threads with that name or id."),
        click.option("--between", type=SecondsRange(), metavar="A..B", help="Only seconds A to B of the recording."),
    ):
        gathered = option(gathered)
    return gathered


class TscRate(click.ParamType[Any]):
    """`auto`, `header`, or ticks per second, such as `2596.1e6`."""

    name = "rate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """The rate, or `auto` or `header`."""
        if value in ("auto", "header") or isinstance(value, int):
            return value  # type: ignore[no-any-return]
        try:
            hz = round(float(value))
        except (OverflowError, ValueError):
            hz = 0
        if hz <= 0:
            self.fail(f"{value!r} is not a rate: write auto, header, or ticks per second such as 2596.1e6", param, ctx)
        return hz


class ObjectFile(click.ParamType[Any]):
    """`FILE`, or `N=FILE` for object number N."""

    name = "map"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int | None, str]:
        """The number of the object, None where it was not given, and its file."""
        if isinstance(value, tuple):
            return value
        number, equals, path = value.partition("=")
        if not (equals and number.isdecimal()):
            return None, value
        if int(number) > LAST_OBJECT:
            self.fail(
                f"{number} is not the number of an object: XRay numbers objects from 0 to {LAST_OBJECT}", param, ctx
            )
        return int(number), path


class Seconds(click.ParamType[Any]):
    """A positive number of seconds."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        try:
            seconds = float(value)
        except ValueError:
            seconds = 0.0
        if not 0 < seconds < threading.TIMEOUT_MAX:
            self.fail(f"{value!r} is not a positive number of seconds", param, ctx)
        return seconds


class SecondsRange(click.ParamType[Any]):
    """`2..5.5`, `2..`, `..5.5`: seconds from the start of a recording."""

    name = "range"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float | None, float | None]:
        """The two ends; None for an open end."""
        if isinstance(value, tuple):
            return value
        match = re.fullmatch(r"(\d+(?:\.\d+)?)?\.\.(\d+(?:\.\d+)?)?", value)
        if match is None or not any(match.groups()):
            self.fail(f"{value!r} is not a range of seconds: write 2..5.5, 2.. or ..5.5", param, ctx)
        first, last = (float(part) if part else None for part in match.groups())
        if first is not None and last is not None and first >= last:
            self.fail(f"{value!r} ends before it starts", param, ctx)
        return first, last


def _not_negative(ctx: click.Context, param: click.Parameter, value: int | None) -> int | None:
    # Not click.IntRange, which writes `[x>=0]` into the help.
    if value is not None and value < 0:
        raise click.BadParameter(f"{value} is less than 0", ctx, param)
    return value


def _replacing(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        from perfuse.output_file import replacing_any

        ctx.with_resource(replacing_any())


def _writable(ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    if value is None or value == "-":
        return value
    parent = Path(value).parent
    if not parent.is_dir():
        raise click.UsageError(f"cannot write {value}: there is no directory {parent}", ctx)
    return value


_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]{1,16}")
READING_STAGE = "joining"
"""The stage that `perfuse.fuse` reports when the core starts to read the files."""
ALL_SECONDS = 1e9
"""Longer than any recording; in nanoseconds it fits in 64 bits."""


def open_profile(
    console: Console, files: Sequence[str], how: ProfileOptions, meanwhile: Callable[[], None] = lambda: None
) -> Profile:
    """Opens files as one profile with the selection applied; `meanwhile` is called while the core reads them."""
    with console.progress() as shown:

        def progress(what: str, share: float) -> None:
            shown(what, share)
            if what == READING_STAGE:
                meanwhile()

        profile = perfuse.fuse(
            *files,
            symbol_dirs=how.symbol_dirs,
            debug_info=not how.no_debug_info,
            strict=how.strict,
            maps=object_files(how.maps),
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


@contextmanager
def noted_warnings(console: Console) -> Iterator[None]:
    """Prints what an exporter warns of as notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ExportWarning)
        yield
    for warning in caught:
        if issubclass(warning.category, ExportWarning):
            console.note(str(warning.message))
        else:
            warnings.showwarning(warning.message, warning.category, warning.filename, warning.lineno)


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
