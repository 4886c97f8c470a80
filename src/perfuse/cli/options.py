"""Options that several verbs share."""

from __future__ import annotations

import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from perfuse.cli.opening import NO_FILTER, ProfileOptions
from perfuse.errors import ExportWarning, UsageError
from perfuse.filters.stacks import STEPS, DuringKind, Step

if TYPE_CHECKING:
    from perfuse.cli.console import Console


F = TypeVar("F", bound=Callable[..., Any])

WRITTEN_OPTIONS = "perfuse.written_options"
"""Key in `Context.meta` of the options of the command line in their order, each as often as it occurs."""
WRITTEN_VALUES = "perfuse.written_values"
"""Key in `Context.meta` of the values of all options as texts, which is there before any of them is read."""

JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON in a documented and stable form.")
STRICT = click.option("--strict", is_flag=True, help="Reject files that deviate from their specification.")
FOLLOW_CHOICES = ("all", "named", "none")
FOLLOW = click.option(
    "--follow",
    type=click.Choice(FOLLOW_CHOICES),
    default="all",
    metavar="WHICH",
    help="Which files that a recording names are opened: all, named (only in --symbols, or by build id), none. [all]",
)
LAST_OBJECT = 255
"""The highest object number of XRay."""
FILES = click.argument("files", nargs=-1, required=True, metavar="FILE...")


def _each_file(ctx: click.Context, _param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    if ctx.resilient_parsing or not any(map(os.path.isdir, value)):
        return value
    from perfuse.fusing.discovery import recorded_files

    return tuple(recorded_files(value))


EACH_FILE = click.argument("files", nargs=-1, required=True, metavar="FILE...", callback=_each_file)
"""`FILE...`, of which each is looked at alone; of a directory, all recordings in it."""


def files_and_text(arguments: tuple[str, ...], what: str, *, may_be_path: bool = False) -> tuple[list[str], str]:
    """The arguments of `FILE... TEXT`: the files, and the last.

    Args:
        arguments: All of them.
        what: What the text is called.
        may_be_path: Whether a text that is also a path is a text, as long as files precede it.

    Raises:
        click.UsageError: One of them is missing.
    """
    *files, text = arguments
    if is_path(text) and not (may_be_path and files and all(one == "-" or is_path(one) for one in files)):
        raise missing_text(what)
    if not files:
        raise click.UsageError(f"no file: files precede {what}")
    return files, text


def missing_text(what: str) -> click.UsageError:
    """The error for files without the text that follows them."""
    return click.UsageError(f"no {what}: it follows the files")


def is_path(text: str) -> bool:
    """Whether a text is the path of something that exists; it may be longer than paths can be."""
    return os.path.exists(text)  # noqa: PTH110 - which raises for such texts


def limit(default: int | None, what: str) -> Callable[[F], F]:
    """`--limit N`; 0 for all."""
    shown_default = "" if default is None else f" [{default}]"
    text = f"At most N {what}; 0 for all.{shown_default}"
    return click.option("--limit", type=int, default=default, metavar="N", callback=_number_of_rows, help=text)


BUDGET = click.option(
    "--budget", type=int, metavar="N", help="At most N bytes: lists are as long as fit, and what is left out is stated."
)


def output(what: str, *, required: bool = False, sends: bool = False) -> Callable[[F], F]:
    """`-o OUT`, whose folder is checked before any long work; `-` is standard output. With it `--force`.

    With `sends`, OUT may be the address of a collector.
    """
    out = click.option(
        "-o",
        "--output",
        required=required,
        metavar="OUT",
        callback=_writable_or_collector if sends else _writable,
        help=f"{what}; - is standard output.",
    )
    return lambda function: out(force("OUT")(function))


def force(metavar: str) -> Callable[[F], F]:
    """`--force`, for outputs that are named by `metavar`."""
    return click.option(
        "--force",
        is_flag=True,
        expose_value=False,
        callback=_replacing,
        help=f"Replace a file {metavar} with content of another kind; never an input.",
    )


def report_file(option: str, what: str) -> Callable[[F], F]:
    """`OPTION FILE`: a file besides the output; `-` is standard output, instead of the output."""
    return click.option(
        option,
        metavar="FILE",
        callback=_writable,
        help=f"Write {what} to FILE; - is standard output, without the text.",
    )


def profile_options(function: Callable[..., Any], *, selects: bool = True) -> Callable[..., Any]:
    """The options of every verb that opens a profile; the verb receives them as one argument, `how`.

    Args:
        function: The verb.
        selects: Whether the verb takes a part of a profile. Otherwise help does not list the options that select one,
            and the verb explains why it refuses them.
    """

    @wraps(function)
    def gathered(*args: Any, **given: Any) -> Any:
        options = [field.name for field in fields(ProfileOptions) if field.name in given]
        how = ProfileOptions(**{name: given.pop(name) for name in options})
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
        MAPS,
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
        FOLLOW,
        click.option(
            "--debuginfod",
            multiple=True,
            metavar="URL",
            help="Download missing binaries and debug files from this debuginfod server; repeats.",
        ),
        click.option("--thread", metavar="NAME|TID", hidden=not selects, help="Only threads with that name or id."),
        click.option("--process", metavar="NAME|PID", hidden=not selects, help="Only processes with that name or pid."),
        click.option(
            "--between",
            type=SecondsRange(),
            metavar="A..B",
            hidden=not selects,
            help="Only seconds A to B of the recording; or from the first call of function A to that of B.",
        ),
    ):
        gathered = option(gathered)
    return gathered


def stack_filters(function: F, *, without: Collection[str] = ()) -> F:
    """The filters of stacks, for a verb that has `profile_options` below; they are `how.stack_filter`.

    Steps are applied in the order in which they are written.

    Args:
        function: The verb.
        without: Steps whose option is another one in this verb.
    """
    taken = [step for step in STEPS if step not in without]
    names = [_filter_name(step) for step in taken]

    @wraps(function)
    def gathered(*args: Any, how: ProfileOptions, **given: Any) -> Any:
        values = {name: list(given.pop(name) or ()) for name in names}
        found = NO_FILTER
        for kind, pattern in given.pop("filter_during"):
            found = found.with_during(kind, pattern)
        steps = dict(zip(names, taken, strict=True))
        for name in click.get_current_context().meta.get(WRITTEN_OPTIONS, ()):
            if name in steps and values[name]:
                value = values[name].pop(0)
                found = found.with_step(steps[name], None if value is True else value)
        return function(*args, how=replace(how, stack_filter=found), **given)

    decorated: Any = gathered
    for step, option in reversed(_FILTER_OPTIONS):
        decorated = decorated if step in without else option(decorated)
    return decorated  # type: ignore[no-any-return]


def _filter_name(step: Step) -> str:
    return "filter_" + step.replace("-", "_")


def _filter_option(
    step: Step, help_text: str, metavar: str | None = "PATTERN"
) -> tuple[Step | None, Callable[[Any], Any]]:
    if metavar is None:
        # Counted, so that each occurrence has a place in the order.
        return step, click.option(
            f"--{step}",
            _filter_name(step),
            count=True,
            callback=lambda _ctx, _param, count: (True,) * count,
            help=help_text,
        )
    return step, click.option(f"--{step}", _filter_name(step), multiple=True, metavar=metavar, help=help_text)


_FILTER_OPTIONS: tuple[tuple[Step | None, Callable[[Any], Any]], ...] = (
    _filter_option("only", "Only samples with a matching function on the stack: a name, glob, /regex/, module:NAME,"
                   " path:FILE, tier:TIER; repeats, as do all filters of stacks, which are applied in order."),
    _filter_option("drop", "No samples with a matching function on the stack."),
    _filter_option("hide", "Leave matching functions out of stacks: their callers get what was measured in them."),
    _filter_option("root", "Begin stacks at the outermost matching function; no samples without one."),
    _filter_option("leaf", "End stacks at the outermost matching function: what it called is its own."),
    _filter_option("collapse-recursion", "Each function once on a stack.", None),
    _filter_option("collapse-module", "One frame for consecutive ones of a module.", "MODULE"),
    _filter_option("tier", "Only samples taken in code of a tier.", "TIER"),
    _filter_option("jit-only", "Only JIT-compiled frames: these get what was measured in others.", None),
    (None, click.option(
        "--during",
        "filter_during",
        type=(click.Choice(get_args(DuringKind)), str),
        multiple=True,
        metavar="slice|marker PATTERN",
        help="Only samples taken during matching slices, or those that are not calls (markers).",
    )),
)  # fmt: skip


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


MAPS = click.option(
    "--map",
    "maps",
    type=ObjectFile(),
    multiple=True,
    metavar="[N=]FILE",
    help="Program whose XRay map names functions, or that map as YAML, then its libraries; N= gives a library's "
    "number; repeats.",
)


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
    ) -> tuple[float | str | None, float | str | None]:
        """The two ends, seconds or names of functions; None for an open end."""
        if isinstance(value, tuple):
            return value
        match = re.fullmatch(r"(\d+(?:\.\d+)?)?\.\.(\d+(?:\.\d+)?)?", value)
        named = re.fullmatch(r"([^.\d].*?)?\.\.([^.\d].*)?", value)
        if match is None and named is not None and any(named.groups()):
            return named[1], named[2]
        if match is None or not any(match.groups()):
            self.fail(f"{value!r} is not a range of seconds: write 2..5.5, 2.. or ..5.5", param, ctx)
        first, last = (float(part) if part else None for part in match.groups())
        if first is not None and last is not None and first >= last:
            self.fail(f"{value!r} ends before it starts", param, ctx)
        return first, last


def _number_of_rows(ctx: click.Context, param: click.Parameter, value: int | None) -> int | None:
    # Not click.IntRange, which writes `[x>=0]` into the help.
    if value is not None and value < 0:
        raise click.BadParameter(f"{value} is less than 0", ctx, param)
    # No table has more rows than a 64-bit number.
    return value if value is None else min(value, sys.maxsize)


def _replacing(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        from perfuse.output.file import replacing_any

        ctx.with_resource(replacing_any())


def _writable_or_collector(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    from perfuse.exporters.registry import COLLECTORS

    return value if value is not None and value.startswith(COLLECTORS) else _writable(ctx, param, value)


def _writable(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    if value is None or value == "-":
        return value
    parent = Path(value).parent
    if not parent.is_dir():
        hint = f"`mkdir -p {parent}` makes it"
        raise UsageError(f"cannot write {value}: there is no directory {parent}", path=value, hint=hint)
    return value


@contextmanager
def noted_warnings(console: Console, event_option: str = "-O event=NAME") -> Iterator[None]:
    """Prints what an exporter warns of as notes; `event_option` is how the verb's user names another event."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ExportWarning)
        yield
    for warning in caught:
        if isinstance(warning.message, ExportWarning):
            hint = f"{event_option} writes another event" if warning.message.option == "event" else None
            console.note(str(warning.message), hint)
        else:
            warnings.showwarning(warning.message, warning.category, warning.filename, warning.lineno)
