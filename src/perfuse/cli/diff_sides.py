"""The runs that the arguments of `perfuse diff` name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from perfuse.cli.verbs import Verb
from perfuse.errors import UsageError

SEPARATOR = "--"
_MARK = "\0--"

Run = tuple[str, ...]
"""The inputs of one recording of a program: files and directories."""


class SidesVerb(Verb):
    """A verb whose arguments are in two parts, separated by `--`; options may follow."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Replaces the first separator by an argument."""
        if SEPARATOR in args:
            place = args.index(SEPARATOR)
            args = [*args[:place], _MARK, *args[place + 1 :]]
        return super().parse_args(ctx, args)


@dataclass(frozen=True, slots=True)
class Sides:
    """The runs of both sides, each once.

    Attributes:
        base: Those of the first side.
        new: Those of the second side.
        repeated: Runs that were given more than once on a side: copies of a run show nothing of the noise between runs.
    """

    base: list[Run]
    new: list[Run]
    repeated: list[Run]


def sides(arguments: Sequence[str]) -> Sides:
    """The runs of both sides: `A B`, or `A... -- B...`.

    Raises:
        UsageError: A side is missing, or it is not clear where the second begins.
    """
    if _MARK in arguments:
        place = list(arguments).index(_MARK)
        base, new = arguments[:place], arguments[place + 1 :]
    elif len(arguments) == 2:
        base, new = arguments[:1], arguments[1:]
    else:
        base, new = (), ()
    if not base or not new:
        raise UsageError(
            "give two sides: A B, or several runs as A... -- B...",
            hint="perfuse diff before/*.data -- after/*.data; files of one run are joined with +: perf.data+jit-1.dump",
        )
    repeated: list[Run] = []
    return Sides(_runs(base, repeated), _runs(new, repeated), repeated)


def _runs(arguments: Sequence[str], repeated: list[Run]) -> list[Run]:
    runs: dict[tuple[str, ...], Run] = {}
    for run in (run for one in arguments for run in _runs_of(one)):
        files = tuple(os.path.realpath(path) for path in run)
        if files in runs:
            repeated.append(run)
        runs.setdefault(files, run)
    return list(runs.values())


def _runs_of(argument: str) -> list[Run]:
    path = Path(argument)
    if path.is_dir():
        return _runs_in(path)
    parts = tuple(argument.split("+"))
    if not path.exists() and len(parts) > 1 and all(parts):
        return [parts]
    return [(argument,)]


def _runs_in(directory: Path) -> list[Run]:
    """The runs in a directory: its sub-directories with recordings, or several recordings of one format; else the
    directory is one run."""
    from perfuse import _core
    from perfuse.fusing.discovery import format_of_file, open_inputs

    if _core.directory_format(directory) is not None:
        return [(str(directory),)]
    inside = sorted(directory.iterdir())
    folders = [one for one in inside if one.is_dir() and _has_recordings(one)]
    own = [one for one in inside if one.is_file()]
    recordings = [one for one in own if format_of_file(one) is not None]
    if folders and not recordings:
        return [(str(one),) for one in folders]
    if folders:
        return [(str(directory),)]
    opened = open_inputs([str(one) for one in recordings], strict=False).recordings
    runs = [one for one in opened if one.role != "code_dump"]
    if len(runs) > 1 and len({one.format for one in runs}) == 1:
        # Dumps of their processes are found beside them.
        return [(run.path,) for run in runs]
    return [(str(directory),)]


def _has_recordings(directory: Path) -> bool:
    from perfuse.fusing.discovery import format_of_file

    return any(one.is_file() and format_of_file(one) is not None for one in directory.iterdir())
