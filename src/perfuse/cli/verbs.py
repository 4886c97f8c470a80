"""The list of verbs, and the command class that they share."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click
from click.core import augment_usage_errors

from perfuse.cli.console import Console
from perfuse.cli.exit_codes import help_hint
from perfuse.errors import ExportError, QueryError, UsageError


@dataclass(frozen=True, slots=True)
class VerbEntry:
    """What `perfuse --help` shows of a verb, without importing it."""

    name: str
    usage: str
    purpose: str
    chapter: str


RECORD = "Record programs"
LOOK = "Inspect files"
TRUST = "Validate files"
UNDERSTAND = "Analyze recordings"
MACHINE = "This machine"

VERBS = {
    entry.name: entry
    for entry in (
        VerbEntry("info", "info FILE...", "Show format, producer and health of files.", LOOK),
        VerbEntry("records", "records FILE", "List records, each with its offset and fields.", LOOK),
        VerbEntry("tables", "tables FILE... [TABLE]", "List the tables of files, or show one.", LOOK),
        VerbEntry("query", "query FILE... SQL", "Query the tables of files with SQL.", LOOK),
        VerbEntry("check", "check FILE...", "Report every deviation from the specification.", TRUST),
        VerbEntry("explain", "explain [CODE...]", "Explain a diagnostic and what to do about it.", TRUST),
        VerbEntry("repair", "repair FILE -o OUT", "Write the longest valid file that can be rescued.", TRUST),
        VerbEntry("report", "report FILE...", "Report where time and memory went.", UNDERSTAND),
        VerbEntry("annotate", "annotate FILE... FUNCTION", "Show machine code of a function with samples.", UNDERSTAND),
        VerbEntry("diff", "diff A B", "Compare two recordings function by function.", UNDERSTAND),
        VerbEntry("flame", "flame FILE... -o OUT", "Draw a flame graph as one HTML or SVG file.", UNDERSTAND),
        VerbEntry("view", "view FILE...", "Explore a recording in the browser.", UNDERSTAND),
        VerbEntry("mcp", "mcp [DIR]", "Serve recordings of a directory to agents.", UNDERSTAND),
        VerbEntry("pack", "pack FILE... -o OUT", "Save a profile to open on any machine.", UNDERSTAND),
        VerbEntry("fleet", "fleet ACTION DATASET", "Compare thousands of recordings as one dataset.", UNDERSTAND),
        VerbEntry("convert", "convert FILE... -o OUT", "Write a profile in another tool's format.", UNDERSTAND),
        VerbEntry("sframe", "sframe ACTION FILE", "Create, shrink, merge, convert unwind tables.", UNDERSTAND),
        VerbEntry("record", "record -- CMD...", "Run a program and record it, with names.", RECORD),
        VerbEntry("watch", "watch FILE", "Follow a file that is being written.", MACHINE),
        VerbEntry("mono", "mono heapshot [LOG]", "Request a heap snapshot from a running Mono.", MACHINE),
        VerbEntry("doctor", "doctor", "Check which producers and viewers are installed.", MACHINE),
        VerbEntry("completion", "completion SHELL", "Print a script for shell completion.", MACHINE),
        VerbEntry("help", "help [VERB]", "Show the help of a verb.", MACHINE),
    )
}


COLORS = ("auto", "always", "never")
WITHOUT_FILES = frozenset({"completion", "doctor", "explain", "help", "mono"})
"""Verbs that read no recordings."""


def _max_unpacked() -> click.Option:
    """`--max-unpacked SIZE`: a limit for every input of the command."""

    def limited(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
        if value is not None:
            from perfuse.input.unpacking import unpacking_at_most

            ctx.with_resource(unpacking_at_most(value))

    return click.Option(
        ["--max-unpacked"],
        metavar="SIZE",
        expose_value=False,
        callback=limited,
        help="Most that a compressed or piped input may become, such as 4GB. [250 times its size, or 256 MiB]",
    )


class Verb(click.Command):
    """A verb: its help starts with its purpose in `VERBS` and ends with examples; it has `--color`."""

    def __init__(self, *args: Any, examples: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples
        if self.name not in WITHOUT_FILES:
            if any(isinstance(param, click.Argument) for param in self.params):
                self.params.append(_max_unpacked())
            self.params.append(
                click.Option(
                    ["--memory"],
                    metavar="SIZE",
                    help="Limit of memory, such as 800MB or 4GB. [60% of what the machine or control group has]",
                )
            )
        self.params.append(
            click.Option(["--color"], type=click.Choice(COLORS), metavar="WHEN", help="Colour: auto, always or never.")
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses the command line; `Context.meta` gets its options as they are written, which click does not keep."""
        if not ctx.resilient_parsing:
            with augment_usage_errors(ctx):
                values, _, order = self.make_parser(ctx).parse_args(list(args))
            ctx.meta["perfuse.written_options"] = [param.name for param in order]
            ctx.meta["perfuse.written_values"] = values
        return super().parse_args(ctx, args)

    def format_help_text(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The purpose, then the verb's docstring."""
        entry = VERBS[self.name or ""]
        for paragraph in (entry.purpose, *inspect.cleandoc(self.help or "").split("\n\n")):
            formatter.write_paragraph()
            formatter.write_text(paragraph)

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples, one per line, not wrapped."""
        with formatter.section("Examples" if len(self.examples) > 1 else "Example"):
            for example in self.examples:
                formatter.write(f"  {example}\n")

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the verb with a console as its context object."""
        color = ctx.params.pop("color", None) or (ctx.find_root().params.get("color") or "auto")
        ctx.obj = Console(sys.stdout, sys.stderr, color)
        memory = ctx.params.pop("memory", None)
        if memory is not None:
            from perfuse.memory import limited_memory

            ctx.with_resource(limited_memory(memory))
        try:
            return super().invoke(ctx)
        except (UsageError, QueryError, ExportError) as error:
            error.hint = error.hint or help_hint(ctx.command_path)
            raise


def verb(
    name: str, *, examples: Sequence[str], cls: type[Verb] = Verb, **kwargs: Any
) -> Callable[[Callable[..., Any]], Verb]:
    """Makes a function the verb of that name. It receives the console first, and returns its exit code or None."""
    return _with_console(click.command(name, cls=cls, examples=examples, **kwargs))


def _with_console(decorator: Callable[..., Verb]) -> Callable[[Callable[..., Any]], Verb]:
    @functools.wraps(decorator)
    def wrap(function: Callable[..., Any]) -> Verb:
        return decorator(click.pass_obj(function))

    return wrap
