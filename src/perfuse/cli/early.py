"""What begins before a verb is loaded: Python takes as long for that as the core for the first pass over a big file."""

import gc
import os
from collections.abc import Sequence
from itertools import pairwise

from perfuse import _core

READERS = frozenset({"convert", "diff", "flame", "info", "query", "report", "tables"})
"""Verbs that read the files they are given, whole."""

OBJECTS_BEFORE_GC = 50_000
"""Start-up makes thousands of objects and no garbage; looking for some each 700 takes a tenth of its time."""


def begin(args: Sequence[str]) -> None:
    """Starts to read the files that a command line names. Whatever is wrong with them is said when they are opened."""
    gc.set_threshold(OBJECTS_BEFORE_GC, *gc.get_threshold()[1:])
    if args and args[0] in READERS:
        for before, arg in pairwise(args):
            # What follows an option may be its value: a program with a map, or the file to write.
            if not before.startswith("-") and os.path.isfile(arg):  # noqa: PTH113 - pathlib is not loaded yet
                _core.read_early(arg)
