"""`perfuse view`"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import click

from perfuse import _core
from perfuse.cli.console import Console
from perfuse.cli.opening import NO_FILTER, ProfileOptions, fused_profile, note_data_loss
from perfuse.cli.options import FILES, profile_options, stack_filters
from perfuse.cli.signals import ENDING
from perfuse.cli.verbs import verb
from perfuse.errors import UnreadableInput, UsageError
from perfuse.filters.stacks import StackFilter

if TYPE_CHECKING:
    from perfuse.profile import Profile
    from perfuse.viewer.session import Session

LAST_PORT = 65535
DEFAULT_IDLE_S = 1800.0
ERROR_SHOWN_S = 5.0
"""Time in which an open page surely asks for the state."""


def _port(ctx: click.Context, param: click.Parameter, value: int) -> int:
    # Not click.IntRange, which writes its limits into the help.
    if not 0 <= value <= LAST_PORT:
        raise click.BadParameter(f"{value} is not from 0 to {LAST_PORT}", ctx, param)
    return value


def _not_negative(ctx: click.Context, param: click.Parameter, value: float) -> float:
    if not 0 <= value < threading.TIMEOUT_MAX:
        raise click.BadParameter(f"{value:g} is not a number of seconds", ctx, param)
    return value


@verb(
    "view",
    examples=[
        "perfuse view perf.data jit-2345.dump",
        "perfuse view xray-log.server.uocuES --map server",
        "perfuse view output.mlpd --no-browser --between 2..5.5",
        "perfuse view jit-2345.dump --watch",
        "perfuse view xray-log.server.uocuES --base xray-log.server.Qd81xw",
        "perfuse view perf.data jit-2345.dump --firefox --source-dir src",
    ],
)
@FILES
@click.option("--no-browser", is_flag=True, help="Only print the URL, as the first line of standard output.")
@click.option("--port", type=int, default=0, metavar="N", callback=_port, help="Port of the server. [any that is free]")
@click.option(
    "--idle",
    type=float,
    default=DEFAULT_IDLE_S,
    callback=_not_negative,
    metavar="SECONDS",
    help="End when no page was open for so long; 0 for never. [1800]",
)
@click.option("--watch", is_flag=True, help="Show new content of files that are still written.")
@click.option(
    "--firefox",
    is_flag=True,
    help="Give the Firefox Profiler the profile, symbols, source and machine code too; prints the URL that opens it.",
)
@click.option(
    "--base",
    "base_files",
    multiple=True,
    metavar="FILE",
    help="File of another recording that flame graphs and functions can be compared with; repeats.",
)
@click.option(
    "--source-dir", "source_dirs", multiple=True, metavar="DIR", help="Directory with the source files; repeats."
)
@profile_options
@stack_filters
def command(
    console: Console,
    files: tuple[str, ...],
    no_browser: bool,
    port: int,
    idle: float,
    watch: bool,
    firefox: bool,
    base_files: tuple[str, ...],
    source_dirs: tuple[str, ...],
    how: ProfileOptions,
) -> int:
    """Timeline, heat map, flame graphs of any part of the time, functions, machine code, heap and SQL, in the browser.

    A server answers the page: on this machine only, and only with the token of the URL that is printed. Nothing is sent
    anywhere. It ends with Ctrl-C, with the terminal, or when no page has been open for --idle.
    """
    from perfuse.viewer.policy import new_token
    from perfuse.viewer.routes import Routes
    from perfuse.viewer.server import ViewServer

    if "-" in base_files:
        raise click.UsageError("--base needs files: standard input is for FILE")
    if watch and "-" in files:
        raise click.UsageError("--watch needs files: standard input is read once")
    for path in (*files, *base_files):
        if path != "-" and not Path(path).exists():
            raise UnreadableInput(f"cannot read {path}: No such file or directory", path=path)
    session = _session(files, base_files, source_dirs, how)
    try:
        symbol_token = new_token() if firefox else None
        server = ViewServer(Routes(session), new_token(), port=port, idle_s=idle or None, symbol_token=symbol_token)
    except OSError as error:
        raise UsageError(
            f"port {port} cannot be used: {error.strerror}", hint="without --port any that is free is used"
        ) from error
    session.on_failure = lambda: _end_soon(server)
    with server, _ending_with_signals(server):
        url = server.url + _state(how.stack_filter)
        _print_addresses(console, url, server.symbol_url)
        session.start()
        watching = _watching(session) if watch else None
        opened = None if no_browser else _opened_in_browser(console, url)
        server.run()
        session.cancel()
        if watching is not None:
            watching.stop()
        if opened is not None:
            opened.unlink(missing_ok=True)
    if session.error is not None:
        raise session.error
    if server.has_been_idle:
        console.note(f"no page was open for {idle:g} s")
    return note_data_loss(console, session.profile.diagnostics) if session.is_ready else 0


def _session(
    files: Sequence[str], base_files: Sequence[str], source_dirs: Sequence[str], how: ProfileOptions
) -> Session:
    """The session of the files, and of those that they can be compared with; it opens them when it is started."""
    from perfuse.analysis.source_files import require_source_dirs
    from perfuse.viewer.session import Session

    require_source_dirs(source_dirs)

    def open_profile(progress: Any) -> Profile:
        profile = fused_profile(files, replace(how, stack_filter=NO_FILTER), progress)
        # What matches nothing is an error of the command, not of the page.
        if how.stack_filter:
            profile.filtered(how.stack_filter).tables["samples"].to_arrow()
        return profile

    def open_base(progress: Any) -> Profile:
        return fused_profile(
            base_files, replace(how, stack_filter=NO_FILTER, between=None, thread=None, process=None), progress
        )

    # Half of the limit of memory is for the profile and the answers.
    return Session(
        open_profile,
        files,
        _options(how),
        _core.memory_limit() // 2,
        source_dirs=source_dirs,
        follow=how.follow,
        base=Session(open_base, base_files, _options(how)) if base_files else None,
    )


def _print_addresses(console: Console, url: str, symbol_url: str | None) -> None:
    """Prints the address of the page, and those for the Firefox Profiler."""
    console.line(url)
    if symbol_url is not None:
        from perfuse.viewer.firefox import front_end_url

        console.line(front_end_url(symbol_url))
        console.line(f"symbol server: {symbol_url}")
    console.out.flush()


def _opened_in_browser(console: Console, url: str) -> Path | None:
    """Opens the page in a browser; returns the file through which it does, or None without a browser."""
    from perfuse.viewer.opening import open_in_browser

    opened = open_in_browser(url)
    if opened is None:
        console.note("no browser was found: open the URL above", "over SSH, forward the port: ssh -L")
    return opened


def _watching(session: Any) -> Any:
    from perfuse.viewer.watching import Watching

    watching = Watching(session)
    session.note_watched()
    watching.start()
    return watching


def _end_soon(server: Any) -> None:
    """Ends the server where files cannot be read; a page that is open can ask why before."""
    timer = threading.Timer(ERROR_SHOWN_S if server.has_page else 0, server.shutdown)
    timer.daemon = True
    timer.start()


@contextlib.contextmanager
def _ending_with_signals(server: Any) -> Iterator[None]:
    """Ctrl-C, SIGTERM and SIGHUP end the server, and so the command as it should, unless they are ignored (`nohup`)."""

    def end(_number: int, _frame: Any) -> None:
        # Not in this thread: it waits for the loop that the signal interrupts.
        threading.Thread(target=server.shutdown, daemon=True).start()

    signals = [number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, end) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _state(stack_filter: StackFilter) -> str:
    """The filters as a part of the page's address, in which each can be removed again."""
    pairs = [(f"during-{one.kind}", one.pattern) for one in stack_filter.during]
    pairs += [(one.step, one.pattern or "1") for one in stack_filter.steps]
    return f"&{urlencode(pairs, quote_via=quote)}" if pairs else ""


def _options(how: ProfileOptions) -> list[str]:
    """The options of a command that opens the same files in the same way."""
    options = [part for folder in how.symbol_dirs for part in ("--symbols", folder)]
    options += [part for number, path in how.maps for part in ("--map", path if number is None else f"{number}={path}")]
    options += ["--no-debug-info"] if how.no_debug_info else []
    options += ["--strict"] if how.strict else []
    options += [] if how.tsc_hz == "auto" else ["--tsc-hz", str(how.tsc_hz)]
    options += [] if how.follow == "all" else ["--follow", how.follow]
    return options
