"""The manual pages: from the same declarations as `--help`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence

import click

from perfuse import __version__
from perfuse.cli.app import app, context_of
from perfuse.cli.verbs import VERBS, Verb

EXIT_CODES = (
    ("0", "The command did what was asked, and the files are undamaged."),
    ("1", "Findings: damage, deviations, a difference or an assertion that does not hold."),
    ("2", "The command line is not valid."),
    ("3", "A file cannot be read."),
    ("70", "A defect of perfuse."),
    ("130", "Stopped by Ctrl-C."),
)


def pages() -> dict[str, str]:
    """The text of each page by the name of its file: `perfuse.1`, and `perfuse-VERB.1` for each verb."""
    made = {"perfuse.1": "\n".join(_overview(context_of())) + "\n"}
    for name in VERBS:
        context = context_of(name)
        assert isinstance(context.command, Verb)
        made[f"perfuse-{name}.1"] = "\n".join(_verb_page(context.command, context)) + "\n"
    return made


def _overview(root: click.Context) -> Iterator[str]:
    yield from _head("perfuse", "read profiling and tracing files of runtimes")
    yield ".SH SYNOPSIS"
    yield ".B perfuse"
    yield ".I VERB ..."
    yield from _description(app.help or "")
    for chapter in dict.fromkeys(entry.chapter for entry in VERBS.values()):
        yield f".SH {_quoted(chapter.upper())}"
        for entry in VERBS.values():
            if entry.chapter == chapter:
                yield from (".TP", f".BR perfuse-{entry.name} (1)", _text(entry.purpose))
    yield ".SH OPTIONS"
    yield from _options(root, app.params)
    yield from _exit_status()


def _verb_page(command: Verb, context: click.Context) -> Iterator[str]:
    entry = VERBS[command.name or ""]
    yield from _head(f"perfuse-{entry.name}", entry.purpose.rstrip("."))
    yield ".SH SYNOPSIS"
    yield f".B perfuse {entry.name}"
    yield _text(" ".join(command.collect_usage_pieces(context)))
    yield from _description(command.help or "")
    yield ".SH OPTIONS"
    yield from _options(context, command.get_params(context))
    yield ".SH EXAMPLES" if len(command.examples) > 1 else ".SH EXAMPLE"
    yield ".EX"
    yield from map(_text, command.examples)
    yield ".EE"
    yield from _exit_status()
    yield ".SH SEE ALSO"
    yield ".BR perfuse (1)"


def _head(name: str, purpose: str) -> Iterator[str]:
    yield f'.TH {_quoted(name.upper())} 1 "" {_quoted(f"perfuse {__version__}")} "User Commands"'
    yield ".SH NAME"
    yield _text(f"{name} - {purpose[0].lower()}{purpose[1:]}")


def _description(text: str) -> Iterator[str]:
    yield ".SH DESCRIPTION"
    for number, paragraph in enumerate(inspect.cleandoc(text).split("\n\n")):
        if number:
            yield ".PP"
        # As in --help, a paragraph that begins with \b keeps its lines.
        if paragraph.startswith("\b"):
            yield from (".EX", *map(_text, paragraph.splitlines()[1:]), ".EE")
        else:
            yield _text(" ".join(paragraph.split()))


def _options(context: click.Context, params: Sequence[click.Parameter]) -> Iterator[str]:
    for param in params:
        record = param.get_help_record(context)
        if record is not None and record[1]:
            names, text = record
            yield from (".TP", f".B {_text(names)}", _text(" ".join(text.split())))


def _exit_status() -> Iterator[str]:
    yield ".SH EXIT STATUS"
    for code, meaning in EXIT_CODES:
        yield from (".TP", f".B {code}", _text(meaning))


def _text(text: str) -> str:
    r"""Text that roff prints as it is: `-` and `\` have meanings, as has a dot or quote that begins a line."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("~", "\\(ti").replace("^", "\\(ha")
    return "\\&" + escaped if escaped.startswith((".", "'")) else escaped


def _quoted(text: str) -> str:
    return '"' + _text(text).replace('"', "\\(dq") + '"'
