"""The command line: one file a verb, each a few lines over the Python API."""

from perfuse.cli.app import main, run

__all__ = ["main", "run"]
