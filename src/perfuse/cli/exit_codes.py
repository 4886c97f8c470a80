"""Exit codes, and exceptions as a message, a hint and an exit code."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

from perfuse import __version__
from perfuse.errors import (
    ExportError,
    InternalError,
    OutOfMemory,
    PerfuseError,
    QueryError,
    UsageError,
    core_error,
    nearest_hint,
)
from perfuse.value_class import value_class

if TYPE_CHECKING:
    import click

CLEAN = 0
"""Done, without findings."""
FINDINGS = 1
"""Done, but the input has findings."""
USAGE = 2
"""The command line is wrong, or names something that does not exist."""
UNREADABLE = 3
"""An input cannot be read."""
DEFECT = 70
"""A defect of perfuse itself."""
INTERRUPTED = 130
"""Stopped by Ctrl-C; other signals that end a process have 128 and their number."""
CLOSED_PIPE = 141
"""The reader of the output closed the pipe: the code that a shell reports for SIGPIPE."""


@value_class
class Failure:
    """An exception as users see it: message, hint and exit code; `traceback` where only a developer can use it."""

    message: str
    hint: str | None
    exit_code: int
    traceback: bool = False

    def as_json(self) -> dict[str, Any]:
        """The JSON document of a command that failed because of a defect."""
        error = {"kind": "internal", "message": self.message, "hint": self.hint, "perfuse_version": __version__}
        return {"error": error}


_NO_MEMORY = (
    "failed to map segment",  # of a library that is imported
    "cannot allocate memory",
    "can't start new thread",
    "PyObject pointer is null",  # where an extension does not expect that
)
"""Texts of errors that others raise where address space is used up."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception of Python or of another extension states that the system gives no more memory."""
    import click

    foreign = not isinstance(error, PerfuseError | OSError | click.ClickException)
    return isinstance(error, MemoryError) or (foreign and any(text in str(error) for text in _NO_MEMORY))


def describe_failure(error: Exception) -> Failure:
    """The message, hint and exit code for an exception."""
    import click

    if isinstance(error, click.ClickException):
        return _usage(error)
    if is_out_of_memory(error):
        error = OutOfMemory("not enough memory")
    if isinstance(error, InternalError):
        return Failure(str(error), error.hint, DEFECT)
    if isinstance(error, PerfuseError):
        of_request = isinstance(error, UsageError | QueryError | ExportError | OutOfMemory)
        input_path = None if isinstance(error, ExportError) else error.path
        hint = error.hint or (_near_files(input_path) if input_path else None)
        return Failure(_with_path(str(error), error.path), hint, USAGE if of_request else UNREADABLE)
    if isinstance(error, OSError):
        what = error.strerror or str(error)
        path = error.filename if isinstance(error.filename, str) else None
        hint = (_near_files(path) if path else None) or _os_hint(error)
        exit_code = USAGE if error.errno == errno.ENOSPC else UNREADABLE
        return Failure(_with_path(what[:1].lower() + what[1:], path), hint, exit_code)
    failure = core_error(error)
    if isinstance(failure, Exception):
        return describe_failure(failure)
    message = f"internal error: {type(error).__name__}: {error} (perfuse {__version__})"
    hint = "this is a defect in perfuse: please report the traceback with the command, and the file if you can share it"
    return Failure(message, hint, DEFECT, traceback=True)


def help_hint(command_path: str) -> str:
    """The next step after a command line that is wrong."""
    return f"`{command_path} --help` lists what it takes"


def _usage(error: click.ClickException) -> Failure:
    import click

    context: click.Context | None = getattr(error, "ctx", None)
    # Where the verb has no context yet, the command path is the name of the program.
    hint = help_hint(context.command_path if context else "perfuse")
    if isinstance(error, click.NoSuchOption):
        known = [name for param in context.command.get_params(context) for name in param.opts] if context else []
        return Failure(f"no option {error.option_name!r}", nearest_hint(error.option_name, known, hint), USAGE)
    message = error.format_message().partition(". Choose from:")[0].rstrip(".")
    message = message[:1].lower() + message[1:]
    param = getattr(error, "param", None)
    if context and param and isinstance(param.type, click.Choice):
        given = context.meta.get("perfuse.written_values", {}).get(param.name)
        if isinstance(given, str):
            hint = nearest_hint(given, param.type.choices, hint)
        elif isinstance(error, click.MissingParameter):
            hint = f"it is one of {', '.join(param.type.choices)}"
    return Failure(message, hint, USAGE)


def _with_path(message: str, path: str | None) -> str:
    return message if path is None or path in message else f"{path}: {message}"


def _near_files(path: str) -> str | None:
    """What to do about a path that names no regular file: files with a similar name, where there are some."""
    from pathlib import Path

    given = Path(path)
    try:
        if given.is_dir():
            return "it is a directory: name a file in it"
        if given.is_symlink() and not given.exists():
            return f"it is a link to {given.readlink()}, which does not exist"
        if given.exists():
            return None
        there = [entry.name for entry in given.parent.iterdir()]
    except OSError:
        # Not Path.is_dir, which raises where the directory above may not be searched.
        return None if os.path.isdir(given.parent) else f"there is no directory {given.parent}"  # noqa: PTH112
    none = f"no file in {given.parent.absolute()} has a similar name"
    return nearest_hint(given.name, there, none, shown=lambda name: str(given.parent / name))


def _os_hint(error: OSError) -> str | None:
    if isinstance(error, PermissionError):
        return "perf writes its files for their owner only: read them as that user, or chown them"
    if isinstance(error, IsADirectoryError):
        return "give a file; `perfuse report DIR` takes a directory"
    if error.errno == errno.ENOSPC:
        return "free space for the output, or for temporary files (TMPDIR names another place)"
    return None
