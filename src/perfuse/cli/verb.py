"""What all verbs are made of: help in one shape, an example to run, a console to write to."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from perfuse.cli.console import Console
from perfuse.cli.verbs import VERBS

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


def verb(name: str, *, examples: Sequence[str], **kwargs: Any) -> Callable[[Callable[..., Any]], Verb]:
    """Makes a function the verb of that name; it gets the console first, and returns its exit code or None."""
    return _with_console(click.command(name, cls=Verb, examples=examples, **kwargs))


def _with_console(decorator: Callable[..., Verb]) -> Callable[[Callable[..., Any]], Verb]:
    @functools.wraps(decorator)
    def wrap(function: Callable[..., Any]) -> Verb:
        return decorator(click.pass_obj(function))

    return wrap
