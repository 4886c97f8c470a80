"""The `perfuse` command: imports the verb that is named, and runs it."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from itertools import groupby

import click

from perfuse import __version__
from perfuse.cli import exit_codes
from perfuse.cli.environment import COMPLETION
from perfuse.cli.running import run_command
from perfuse.cli.verbs import COLORS, VERBS
from perfuse.errors import UsageError, check_text, nearest_hint


class App(click.Group):
    """The group of all verbs; a verb is imported when it runs or shows its help."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """The verbs, in the order of help."""
        return list(VERBS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb of that name."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"perfuse.cli.{cmd_name}").command
        if COMPLETION in os.environ:
            from perfuse.cli.completing import complete

            complete(command.params)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb that the first argument names; for an unknown one, the error suggests similar names."""
        name = args[0]
        if name not in VERBS and not name.startswith("-"):
            other = f"a command starts with a verb: `perfuse info {name}`" if os.path.exists(name) else None
            raise UsageError(f"no verb {name!r}", hint=nearest_hint(name, VERBS, other))
        return super().resolve_command(ctx, args)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verbs by chapter, aligned across chapters."""
        width = max(len(entry.usage) for entry in VERBS.values())
        for chapter, entries in groupby(VERBS.values(), key=lambda entry: entry.chapter):
            with formatter.section(chapter):
                for entry in entries:
                    formatter.write(f"  {entry.usage.ljust(width)}  {entry.purpose}\n")

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Facts that hold for every verb."""
        formatter.write(
            "\nFormats are recognized by content; .gz, .zst, .xz are unpacked; - is stdin.\n"
            "`perfuse help VERB` shows examples.\n"
            "Exit codes: 0 clean, 1 findings, 2 usage, 3 unreadable, 70 defect, 128+N signal.\n"
        )


@click.command(
    cls=App,
    subcommand_metavar="VERB ...",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "--version", prog_name="perfuse", message="%(prog)s %(version)s")
@click.option("--color", type=click.Choice(COLORS), metavar="WHEN", help="Colour: auto, always or never.")
def app(color: str | None) -> None:
    """Opens perf.data, JITDUMP, XRay, Mono log profiler and SFrame files, and reports where time and memory went.

    Files given together are aligned to one clock and joined.
    """
    del color  # read from the root context by each verb


def run(args: Sequence[str] | None = None) -> int:
    """Runs a command line (that of the process where None) and returns its exit code."""
    given = list(sys.argv[1:] if args is None else args)
    return run_command(lambda: _invoke(given), as_json="--json" in given)


def _invoke(given: Sequence[str]) -> int:
    try:
        if COMPLETION in os.environ:
            app.main(prog_name="perfuse")
        _check_arguments(given)
        # Not click's main(), which handles closed pipes and interrupts in its own way.
        with app.make_context("perfuse", list(given)) as context:
            exit_code = app.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as asked:
        return asked.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        # Raised for `perfuse` without arguments: prints the help.
        print(error.ctx.get_help() if error.ctx else error.format_message())
        return exit_codes.USAGE
    return exit_code if isinstance(exit_code, int) else exit_codes.CLEAN


def _check_arguments(args: Sequence[str]) -> None:
    """Raises UsageError for an argument that is not UTF-8; those of a program that is recorded may be any bytes."""
    of_perfuse = args[: args.index("--")] if "record" in args and "--" in args else args
    for arg in of_perfuse:
        check_text(arg)


def context_of(name: str | None = None, terminal_width: int | None = None) -> click.Context:
    """The context of a verb, or of `perfuse`, outside of a command line: its command, and its help (`get_help`)."""
    root = click.Context(app, info_name="perfuse", terminal_width=terminal_width, **app.context_settings)
    if name is None:
        return root
    command = app.get_command(root, name)
    assert command is not None
    return click.Context(command, info_name=name, parent=root, terminal_width=terminal_width)
