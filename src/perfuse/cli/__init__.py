"""The command line: one file a verb, each a few lines over the Python API."""

import atexit
import contextlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

__all__ = ["main", "run"]


def main() -> NoReturn:
    """The console script."""
    from perfuse.cli.early import begin

    begin(sys.argv[1:])
    exit_code = run()
    # The rest of the process is given back whole: taking it apart piece by piece takes longer than many a command.
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(exit_code)


def run(args: Sequence[str] | None = None) -> int:
    """Runs a command line (that of the process where None) and returns its exit code."""
    from perfuse.cli.app import run

    return run(args)
