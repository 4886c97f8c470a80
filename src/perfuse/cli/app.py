"""The `perfuse` command: finds the verb, imports it alone, and turns how it ends into an exit code."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import click

from perfuse import __version__
from perfuse.cli import exit_codes
from perfuse.cli.console import Console
from perfuse.cli.exit_codes import failure
from perfuse.cli.verbs import COLORS, VERBS

COMPLETION = "_PERFUSE_COMPLETE"
"""Set by a shell that completes a command line: eval "$(_PERFUSE_COMPLETE=bash_source perfuse)"."""


class App(click.Group):
    """The group of all verbs, each imported when it is run or its own help is asked for."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """The verbs, in the order of help."""
        return list(VERBS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb of that name."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"perfuse.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb the arguments name; near misses are suggested."""
        name = args[0]
        if name not in VERBS and not name.startswith("-"):
            error = click.UsageError(f"no verb {name!r}", ctx)
            import difflib

            near = difflib.get_close_matches(name, VERBS, n=2, cutoff=0.5)
            if near:
                error.hint = f"did you mean {' or '.join(near)}?"  # type: ignore[attr-defined]
            elif os.path.exists(name):  # noqa: PTH110 - pathlib is not needed to start
                error.hint = f"a verb comes first: `perfuse info {name}`"  # type: ignore[attr-defined]
            raise error
        return super().resolve_command(ctx, args)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verbs by chapter, all in one alignment."""
        width = max(len(entry.usage) for entry in VERBS.values())
        for chapter, entries in groupby(VERBS.values(), key=lambda entry: entry.chapter):
            with formatter.section(chapter):
                for entry in entries:
                    formatter.write(f"  {entry.usage.ljust(width)}  {entry.purpose}\n")

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What holds for every verb."""
        formatter.write(
            "\nContent decides the format; .gz and .zst are read through; - is standard input.\n"
            "`perfuse help VERB` has examples.\n"
            "Exit codes: 0 done and clean, 1 findings, 2 usage, 3 unreadable, 130 stopped.\n"
        )


@click.command(
    cls=App,
    subcommand_metavar="VERB ...",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "--version", prog_name="perfuse", message="%(prog)s %(version)s")
@click.option("--color", type=click.Choice(COLORS), metavar="WHEN", help="Colour: auto, always or never.")
def app(color: str | None) -> None:
    """Opens perf.data, JITDUMP, XRay, Mono log profiler and SFrame files, and says where time and memory went.

    Files given together are put on one clock and joined.
    """
    del color  # read from the root context by each verb


def run(args: Sequence[str] | None = None) -> int:
    """Runs a command line (that of the process where None) and returns its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A path may hold bytes that are no text, and a terminal may lack characters: neither may end a command.
            stream.reconfigure(errors="backslashreplace")
    try:
        if COMPLETION in os.environ:
            app.main(prog_name="perfuse")
        # Not click's main(): it has its own idea of how a closed pipe and an interrupt end.
        with app.make_context("perfuse", list(sys.argv[1:] if args is None else args)) as context:
            exit_code = app.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as asked:
        return asked.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        # Only `perfuse` alone gets here, and it asks for help; click would have called that an error.
        print(error.ctx.get_help() if error.ctx else error.format_message())
        return exit_codes.USAGE
    except BrokenPipeError:
        _forget_stdout()
        return exit_codes.CLOSED_PIPE
    except (KeyboardInterrupt, click.Abort):
        return _interrupted()
    except Exception as error:
        return _failed(error)
    return exit_code if isinstance(exit_code, int) else exit_codes.CLEAN


def _failed(error: Exception) -> int:
    told = failure(error)
    with contextlib.suppress(BrokenPipeError):
        console = Console(sys.stdout, sys.stderr)
        if told is None:
            import traceback

            traceback.print_exception(error)
            console.note("this is a defect in perfuse", "please report it with the lines above and the command")
            return exit_codes.DEFECT
        console.note(told.message, told.hint)
    return told.exit_code if told else exit_codes.DEFECT


def _interrupted() -> int:
    with contextlib.suppress(BrokenPipeError):
        Console(sys.stdout, sys.stderr).note("interrupted")
    return exit_codes.INTERRUPTED


def _forget_stdout() -> None:
    """Points standard output at nothing, so that Python's last flush does not complain about the closed pipe."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def command_named(name: str) -> Any:
    """A verb's command, for `perfuse help` and for the documentation."""
    return app.get_command(click.Context(app, info_name="perfuse"), name)
