"""What a shell completes: verbs, options, files, and the names of export targets, sections, tables and codes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click
from click.shell_completion import CompletionItem

FILE = frozenset(
    {
        "-- CMD...",
        "A... [--] B...",
        "FILE",
        "FILE...",
        "FILE... FUNCTION",
        "FILE... SQL",
        "FILE... [TABLE]",
        "OUT",
        "PROGRAM",
        "[FILE]...",
        "[LOG]",
    }
)
"""Placeholders of arguments that are files."""


def _targets() -> Iterable[tuple[str, str]]:
    from perfuse.exporters import TARGETS

    return ((target.name, target.title) for target in TARGETS)


def _sections() -> Iterable[tuple[str, str]]:
    from perfuse.reports.runtime.report import SECTION_NAMES

    return ((name, "") for name in SECTION_NAMES)


def _codes() -> Iterable[tuple[str, str]]:
    from perfuse.diagnostics import rules

    return ((rule.code, rule.title) for rule in rules().values())


def _verbs() -> Iterable[tuple[str, str]]:
    from perfuse.cli.verbs import VERBS

    return ((entry.name, entry.purpose) for entry in VERBS.values())


NAMES: dict[str, Callable[[], Iterable[tuple[str, str]]]] = {
    "TARGET": _targets,
    "--section": _sections,
    "[CODE...]": _codes,
    "[VERB]": _verbs,
}
"""Names and their meanings, by the placeholder or the option whose values they are."""


class Completed(click.types.StringParamType):
    """Text of which a shell proposes names or files; every other text is valid too."""

    def __init__(self, names: Callable[[], Iterable[tuple[str, str]]] | None, files: str = "") -> None:
        self._names = names
        self._files = files

    def shell_complete(self, _ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Names that begin as the word does; for files, a request that the shell completes them itself."""
        if self._names is None:
            return [CompletionItem(incomplete, type=self._files)]
        return [CompletionItem(name, help=text) for name, text in self._names() if name.startswith(incomplete)]


def complete(params: Iterable[click.Parameter]) -> None:
    """Lets a shell complete the plain text arguments and options of a verb, by their placeholders."""
    for param in params:
        if type(param.type) is not click.types.StringParamType:
            continue
        keys = (param.metavar or param.make_metavar(_CONTEXT), *param.opts)
        names = next((NAMES[key] for key in keys if key in NAMES), None)
        if names is not None:
            param.type = Completed(names)
        elif keys[0] in FILE:
            param.type = Completed(None, "file")
        elif keys[0] == "DIR":
            param.type = Completed(None, "dir")


_CONTEXT: Any = click.Context(click.Command("perfuse"))
