"""The command line: one file a verb, each a few lines over the Python API."""

import sys
from collections.abc import Sequence
from typing import NoReturn

__all__ = ["main", "run"]


def main() -> NoReturn:
    """The console script."""
    from perfuse.cli.early import begin

    begin(sys.argv[1:])
    sys.exit(run())


def run(args: Sequence[str] | None = None) -> int:
    """Runs a command line (that of the process where None) and returns its exit code."""
    from perfuse.cli.app import run

    return run(args)
