"""Exceptions as what they mean to a user: one line what, one line what to do next, an exit code."""

from __future__ import annotations

from dataclasses import dataclass

import click

from perfuse.cli import exit_codes
from perfuse.errors import ExportError, PerfuseError, UsageError


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
        exit_code = exit_codes.USAGE if isinstance(error, UsageError | ExportError) else exit_codes.UNREADABLE
        return Failure(_with_path(str(error), error.path), error.hint, exit_code)
    if isinstance(error, OSError):
        what = error.strerror or str(error)
        path = error.filename if isinstance(error.filename, str) else None
        return Failure(_with_path(what[:1].lower() + what[1:], path), _os_hint(error), exit_codes.UNREADABLE)
    if is_sql_error(error):
        return _sql(error)
    return None


def is_sql_error(error: BaseException) -> bool:
    """Whether DuckDB raised it; told by name, so that nothing here imports DuckDB."""
    return any(base.__name__ == "Error" and "duckdb" in base.__module__ for base in type(error).__mro__)


def _usage(error: click.ClickException) -> Failure:
    message = error.format_message().rstrip(".")
    message = message[:1].lower() + message[1:]
    context = getattr(error, "ctx", None)
    hint = getattr(error, "hint", None)
    if hint is None:
        # In a group that found no verb, the path is the program's name alone.
        hint = f"`{context.command_path if context else 'perfuse'} --help` shows what there is"
    return Failure(message, hint, exit_codes.USAGE)


def _sql(error: BaseException) -> Failure:
    # DuckDB's own pointer at the place takes several lines, and is worth them; the first says what is wrong.
    lines = [line.rstrip() for line in str(error).splitlines() if line.strip()]
    return Failure(lines[0] if lines else type(error).__name__, " ".join(lines[1:2]) or None, exit_codes.USAGE)


def _with_path(message: str, path: str | None) -> str:
    return message if path is None or path in message else f"{path}: {message}"


def _os_hint(error: OSError) -> str | None:
    if isinstance(error, FileNotFoundError):
        return "check the spelling; `ls` the directory"
    if isinstance(error, PermissionError):
        return "perf writes its files for their owner only: read them as that user, or chown them"
    if isinstance(error, IsADirectoryError):
        return "give a file; `perfuse report DIR` takes a directory"
    return None
