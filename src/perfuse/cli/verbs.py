"""The list of verbs, and the command class that they share."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from perfuse.cli.console import Console


@dataclass(frozen=True, slots=True)
class VerbEntry:
    """What `perfuse --help` tells of a verb without importing it."""

    name: str
    usage: str
    purpose: str
    chapter: str


LOOK = "Look into files"
TRUST = "Trust them"
UNDERSTAND = "Understand what was recorded"
MACHINE = "This machine"

VERBS = {
    entry.name: entry
    for entry in (
        VerbEntry("info", "info FILE...", "Tell what files are: format, producer, health.", LOOK),
        VerbEntry("records", "records FILE", "List records, each with its offset and fields.", LOOK),
        VerbEntry("tables", "tables FILE... [TABLE]", "List the common tables of files, or show one.", LOOK),
        VerbEntry("query", "query FILE... SQL", "Answer a question in SQL over the common tables.", LOOK),
        VerbEntry("check", "check FILE...", "Report every departure from the specification.", TRUST),
        VerbEntry("explain", "explain [CODE...]", "Explain what a diagnostic means and what to do.", TRUST),
        VerbEntry("repair", "repair FILE -o OUT", "Write the longest valid file that can be saved.", TRUST),
        VerbEntry("report", "report FILE...", "Report where the time went, or what code was made.", UNDERSTAND),
        VerbEntry("diff", "diff A B", "Tell what changed from one recording to another.", UNDERSTAND),
        VerbEntry("flame", "flame FILE... -o OUT", "Draw a flame graph as one HTML or SVG file.", UNDERSTAND),
        VerbEntry("convert", "convert FILE... -o OUT", "Write a profile in another tool's format.", UNDERSTAND),
        VerbEntry("sframe", "sframe ACTION FILE", "Make, shrink, merge, convert unwind tables.", UNDERSTAND),
        VerbEntry("watch", "watch FILE", "Follow a file that is still being written.", MACHINE),
        VerbEntry("mono", "mono heapshot [LOG]", "Ask a running Mono for a heap shot.", MACHINE),
        VerbEntry("doctor", "doctor", "Tell which producers and viewers this machine has.", MACHINE),
        VerbEntry("help", "help [VERB]", "Show the help of a verb.", MACHINE),
    )
}


COLORS = ("auto", "always", "never")


class Verb(click.Command):
    """A verb: its purpose is the one in `VERBS`, its help ends with examples, it has `--color`."""

    def __init__(self, *args: Any, examples: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples
        self.params.append(
            click.Option(["--color"], type=click.Choice(COLORS), metavar="WHEN", help="Colour: auto, always or never.")
        )

    def format_help_text(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The purpose, then what the verb's docstring adds."""
        entry = VERBS[self.name or ""]
        for paragraph in (entry.purpose, *inspect.cleandoc(self.help or "").split("\n\n")):
            formatter.write_paragraph()
            formatter.write_text(paragraph)

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples, each on a line of its own, never wrapped."""
        with formatter.section("Examples" if len(self.examples) > 1 else "Example"):
            for example in self.examples:
                formatter.write(f"  {example}\n")

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the verb with a console as its context object."""
        color = ctx.params.pop("color", None) or (ctx.find_root().params.get("color") or "auto")
        ctx.obj = Console(sys.stdout, sys.stderr, color)
        return super().invoke(ctx)


def verb(
    name: str, *, examples: Sequence[str], cls: type[Verb] = Verb, **kwargs: Any
) -> Callable[[Callable[..., Any]], Verb]:
    """Makes a function the verb of that name; it gets the console first, and returns its exit code or None."""
    return _with_console(click.command(name, cls=cls, examples=examples, **kwargs))


def _with_console(decorator: Callable[..., Verb]) -> Callable[[Callable[..., Any]], Verb]:
    @functools.wraps(decorator)
    def wrap(function: Callable[..., Any]) -> Verb:
        return decorator(click.pass_obj(function))

    return wrap
