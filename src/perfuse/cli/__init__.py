"""The command line: one file per verb, each a few lines over the Python API.

Until the files of a command line are read ahead, nothing is imported that this does not need: `typing`, `signal` and
what they import take Python as long as the core needs for a megabyte of perf.data.
"""

from __future__ import annotations

import gc
import os
import sys
from itertools import pairwise

from perfuse import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

__all__ = ["main", "run"]

READING_VERBS = frozenset({"convert", "diff", "flame", "info", "query", "report", "tables", "view"})
"""Verbs that read the whole of the files they are given."""
OBJECTS_BEFORE_GC = 50_000
"""Threshold of the garbage collector: start-up makes thousands of objects and no garbage. With Python's own threshold
of 700, collecting takes a tenth of the start-up time."""

WITHOUT_MEMORY = ("failed to map segment", "without exception set", "without setting an exception")
"""Parts of messages of the loader and of CPython where these had no memory."""

NO_MEMORY = b"""\
perfuse: not enough memory: the system gives no more
   hint: give it more (`ulimit -v`), or select less: --between, --thread, one section
"""


def main() -> NoReturn:
    """The console script."""
    import atexit
    import errno

    gc.set_threshold(OBJECTS_BEFORE_GC, *gc.get_threshold()[1:])
    _core.exit_when_out_of_memory()
    try:
        exit_code = _run_command()
    except (MemoryError, ImportError, SystemError, OSError) as error:
        # Nothing is left to describe it with: modules may not be loaded any more, and CPython may have no exception.
        is_of_memory = isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM
        if not is_of_memory and not any(text in str(error) for text in WITHOUT_MEMORY):
            raise
        os.write(2, NO_MEMORY)
        exit_code = 2
    # Leaves without taking the interpreter apart, which takes longer than many a command.
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue
    os._exit(exit_code)


def _run_command() -> int:
    """Runs this process's command until it ends or is stopped. Its files take memory while modules are imported."""
    _prefetch_files(sys.argv[1:])
    from perfuse.cli.environment import buffer_stdout
    from perfuse.cli.signals import Stopped, handle_signals, report_end

    try:
        handle_signals()
        buffer_stdout()
        return run()
    except Stopped as stopped:
        report_end(stopped.text)
        return stopped.exit_code


def run(args: Sequence[str] | None = None) -> int:
    """Runs a command line (that of the process where None) and returns its exit code."""
    from perfuse.cli.environment import COMPLETION

    given = list(sys.argv[1:] if args is None else args)
    files = _files_of_plain_report(given)
    if files and COMPLETION not in os.environ:
        from perfuse.cli import plain_report

        return plain_report.run(files, as_json="--json" in given)
    from perfuse.cli.app import run

    return run(args)


def _files_of_plain_report(args: Sequence[str]) -> list[str]:
    """The files of `perfuse report FILE...` without other options than `--json`; none for another command line."""
    files = [arg for arg in args[1:] if arg != "--json"]
    is_plain = args[:1] == ["report"] and not any(arg.startswith("-") for arg in files)
    return files if is_plain else []


def _prefetch_files(args: Sequence[str]) -> None:
    """Starts to read the files of a command line, and to join that of a plain report, before the verb is imported.

    Importing takes Python as long as the first pass over a large file takes the core, and as the join of a small one.
    Errors are reported when the files are opened.
    """
    joins = len(_files_of_plain_report(args)) == 1
    if args and args[0] in READING_VERBS and not any(arg.startswith("--max-unpacked") for arg in args):
        for before, arg in pairwise(args):
            # The argument after an option may be its value: a program with a map, or the file to write.
            if not before.startswith("-") and os.path.isfile(arg):
                _core.read_early(arg, joins)
