"""Exit codes, and exceptions as a message, a hint and an exit code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from perfuse.errors import ExportError, PerfuseError, QueryError, UsageError

CLEAN = 0
"""Done, and nothing to complain of."""
FINDINGS = 1
"""Done, but the input has findings."""
USAGE = 2
"""The command line makes no sense, or names what does not exist."""
UNREADABLE = 3
"""An input that cannot be read."""
DEFECT = 70
"""A defect of perfuse itself."""
INTERRUPTED = 130
"""Stopped by Ctrl-C."""
CLOSED_PIPE = 141
"""The reader of our output went away: what a shell reports for SIGPIPE."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What is told of an exception, and the exit code."""

    message: str
    hint: str | None
    exit_code: int


def failure(error: BaseException) -> Failure | None:
    """What to tell of an exception; None for one that is a defect of ours and deserves its traceback."""
    if isinstance(error, click.ClickException):
        return _usage(error)
    if isinstance(error, PerfuseError):
        asked = isinstance(error, UsageError | QueryError | ExportError)
        exit_code = USAGE if asked else UNREADABLE
        hint = error.hint or (_near_files(error.path) if error.path else None)
        return Failure(_with_path(str(error), error.path), hint, exit_code)
    if isinstance(error, OSError):
        what = error.strerror or str(error)
        path = error.filename if isinstance(error.filename, str) else None
        hint = (_near_files(path) if path else None) or _os_hint(error)
        return Failure(_with_path(what[:1].lower() + what[1:], path), hint, UNREADABLE)
    return None


def _usage(error: click.ClickException) -> Failure:
    message = error.format_message().rstrip(".")
    message = message[:1].lower() + message[1:]
    context = getattr(error, "ctx", None)
    hint = getattr(error, "hint", None)
    if hint is None:
        # In a group that found no verb, the path is the program's name alone.
        hint = f"`{context.command_path if context else 'perfuse'} --help` shows what there is"
    return Failure(message, hint, USAGE)


def _with_path(message: str, path: str | None) -> str:
    return message if path is None or path in message else f"{path}: {message}"


def _near_files(path: str) -> str | None:
    """For a file that is not there: what the directory has that is called much the same."""
    given = Path(path)
    try:
        if given.exists():
            return None
        there = [entry.name for entry in given.parent.iterdir()]
    except OSError:
        return f"there is no directory {given.parent}" if not given.parent.is_dir() else None
    import difflib

    near = difflib.get_close_matches(given.name, there, n=2)
    return f"did you mean {' or '.join(str(given.parent / name) for name in near)}?" if near else None


def _os_hint(error: OSError) -> str | None:
    if isinstance(error, PermissionError):
        return "perf writes its files for their owner only: read them as that user, or chown them"
    if isinstance(error, IsADirectoryError):
        return "give a file; `perfuse report DIR` takes a directory"
    return None
