"""The recordings that the inputs of `fleet add` name: each is one file, or several that belong together."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from perfuse.errors import UsageError, with_escaped_bytes

_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FleetInput:
    """The files of one recording.

    Attributes:
        files: Paths or URLs; a directory is one where its content is one recording.
        labels: Labels that its path gives it.
    """

    files: tuple[str, ...]
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        """Its files as the command line names them."""
        return with_escaped_bytes("+".join(self.files))


def is_url(text: str) -> bool:
    """Whether an input or dataset is a URL."""
    return bool(_URL.match(text))


def inputs_of(
    arguments: Iterable[str | os.PathLike[str] | FleetInput], labels_from: str | None = None
) -> list[FleetInput]:
    """The recordings that arguments name, each once, in a fixed order.

    Args:
        arguments: Files, files joined with `+`, directories (searched with all below them), globs, URLs; recordings
            that were found before stay as they are.
        labels_from: A regular expression with named groups, which are labels where it matches a path.

    Raises:
        UsageError: An argument names nothing, or the expression is not valid.
    """
    pattern = _pattern(labels_from)
    found: dict[tuple[str, ...], FleetInput] = {}
    for argument in arguments:
        if isinstance(argument, FleetInput):
            found.setdefault(_key(argument.files), argument)
            continue
        for files in _groups(os.fspath(argument)):
            found.setdefault(_key(files), FleetInput(files, _labels_of(files, pattern)))
    return list(found.values())


def _key(files: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(one if is_url(one) else os.path.realpath(one) for one in files)


def _labels_of(files: tuple[str, ...], pattern: re.Pattern[str] | None) -> tuple[tuple[str, str], ...]:
    match = pattern.search(with_escaped_bytes("+".join(files))) if pattern else None
    return tuple(sorted((name, value) for name, value in match.groupdict().items() if value)) if match else ()


def _pattern(text: str | None) -> re.Pattern[str] | None:
    if text is None:
        return None
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise UsageError(f"{text!r} is not a regular expression: {error}", field="labels_from") from error
    if not pattern.groupindex:
        raise UsageError(
            f"{text!r} has no named groups", hint=r"name what is a label: '(?P<build>[^/]+)/(?P<host>[^/]+)/'"
        )
    return pattern


def _groups(argument: str) -> Iterator[tuple[str, ...]]:
    if is_url(argument):
        yield tuple(argument.split("+")) if "+" in argument and "://" in argument.partition("+")[2] else (argument,)
        return
    path = Path(argument)
    if path.is_dir():
        groups = list(_groups_below(path))
        if not groups:
            raise UsageError(f"no recording in {argument}", hint="name files of other names themselves, or with a glob")
        yield from groups
    elif path.exists():
        yield (argument,)
    elif glob.has_magic(argument):
        matches = sorted(glob.glob(argument, recursive=True))  # noqa: PTH207 - the argument may be absolute
        if not matches:
            raise UsageError(f"no file matches {argument}")
        for one in matches:
            yield from _groups(one)
    elif "+" in argument and all(argument.split("+")):
        yield tuple(argument.split("+"))
    else:
        # A file that is missing is a failure of one recording: the list it is from may be long.
        yield (argument,)


def _groups_below(directory: Path) -> Iterator[tuple[str, ...]]:
    """A directory of one recording and its dumps is one; of several recordings in a directory, each is one."""
    from perfuse import _core
    from perfuse.declared_formats import format_named
    from perfuse.fusing.discovery import format_of_file

    if _core.directory_format(directory) is not None:
        yield (str(directory),)
        return
    inside = sorted(directory.iterdir())
    formats = {one: format_of_file(one) for one in inside if one.is_file()}
    dumps = [one for one, name in formats.items() if name and format_named(name).role == "code_dump"]
    others = [
        one for one, name in formats.items() if name and format_named(name).role not in ("code_dump", "unwind_tables")
    ]
    if len(others) == 1:
        # Its dumps are its own.
        yield (str(others[0]), *map(str, dumps))
    elif others:
        yield from ((str(one),) for one in others)
    else:
        yield from ((str(one),) for one in dumps)
    for one in inside:
        if one.is_dir() and not one.is_symlink():
            yield from _groups_below(one)
