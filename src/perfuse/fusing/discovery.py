"""The files that inputs name: a directory contributes the files that formats declare, and each file counts once."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from perfuse import _core
from perfuse.declared_formats import format_named, formats, patterns_of
from perfuse.diagnostics import Diagnostic, diagnostic
from perfuse.errors import UsageError
from perfuse.fusing.note import NAME, note_beside
from perfuse.recording import Input, Recording, open

if TYPE_CHECKING:
    from pathlib import Path

HEAD_BYTES = 64
"""Bytes by which the format of a file is recognized."""


class Inputs:
    """Recordings that inputs name.

    Attributes:
        recordings: Recordings to use.
        nearby_dumps: Code dumps found in directories, to be used only where they match a process.
        diagnostics: Which files were given more than once.
    """

    def __init__(self) -> None:
        self.recordings: list[Recording] = []
        self.nearby_dumps: list[Recording] = []
        self.diagnostics: list[Diagnostic] = []


def open_inputs(inputs: Iterable[Input | Recording], *, strict: bool) -> Inputs:
    """Opens what inputs name, each file once, however often it is named.

    Args:
        inputs: Paths, directories, `-`, bytes, file objects or open recordings.
        strict: Refuse files that depart from their specification in more than habit.

    Raises:
        UnreadableInput: A file cannot be read.
        UsageError: A directory contains no file of any format.
    """
    found = Inputs()
    seen: set[tuple[int, int]] = set()
    given = list(inputs)
    if len(given) > 1:
        # It is found beside the files that it is about, and `perfuse report run/*` names it too.
        given = [one for one in given if not _is_note(one)]
    # Named files first: a dump that is named and also lies in a directory counts as named.
    for source in sorted(given, key=_is_plain_directory):
        if _is_plain_directory(source):
            from pathlib import Path

            _open_directory(Path(source), found, seen, strict=strict)  # type: ignore[arg-type]
        elif _is_new(source, found, seen):
            found.recordings.append(source if isinstance(source, Recording) else open(source, strict=strict))
    if found.nearby_dumps and not found.recordings:
        found.recordings, found.nearby_dumps = found.nearby_dumps, []
    return found


def _open_directory(directory: Path, found: Inputs, seen: set[tuple[int, int]], *, strict: bool) -> None:
    paths = list(_recorded_files(directory, _is_named_or_dump))
    _open_files(paths, found, seen, strict=strict)
    if not found.recordings:
        # What has no usual name is used where there is nothing else: perf keeps a perf.data.old beside a perf.data.
        others = [path for path in _recorded_files(directory, _is_recording) if path not in paths]
        if len(others) > 1:
            shown = ", ".join(str(path.relative_to(directory)) for path in others[:5])
            more = f" and {len(others) - 5:,} more" if len(others) > 5 else ""
            raise UsageError(
                f"several recordings in {directory}: {shown}{more}",
                path=str(directory),
                hint=_parts_hint(others)
                or "name those that are of one run; diff and fleet take directories with several",
            )
        _open_files(others, found, seen, strict=strict)
        paths += others
    if not paths:
        raise _no_recording(directory)


def recorded_files(inputs: Iterable[str]) -> list[str]:
    """The files that inputs name, where each counts for itself: of a directory, all that are recordings.

    Raises:
        UsageError: A directory contains none.
    """
    from pathlib import Path

    found: list[str] = []
    for one in inputs:
        if not _is_plain_directory(one):
            found.append(one)
            continue
        paths = _recorded_files(Path(one), lambda path: _is_named_or_dump(path) or _is_recording(path))
        in_directory = [str(path) for path in paths]
        if not in_directory:
            raise _no_recording(Path(one))
        found += in_directory
    return found


def _no_recording(directory: Path) -> UsageError:
    names = ", ".join(patterns_of(formats()))
    return UsageError(
        f"no recording in {directory}",
        path=str(directory),
        hint=f"files of these names are found: {names}; name others themselves",
    )


def _parts_hint(paths: list[Path]) -> str | None:
    """What to name where all files may be of one run of `perf record --switch-output`; None where they are not."""
    parts = [re.fullmatch(r"(.+)\.[0-9]{16}", str(path)) for path in paths]
    names = {part[1] for part in parts if part}
    if not all(parts) or len(names) != 1:
        return None
    from shlex import quote

    files = f"{quote(*names)}.[0-9]*"
    return f"perf record --switch-output writes a run as several files; of one run, open them together: {files}"


def _open_files(paths: Iterable[Path], found: Inputs, seen: set[tuple[int, int]], *, strict: bool) -> None:
    for path in paths:
        if _is_new(path, found, seen):
            recording = open(path, strict=strict)
            opened = found.nearby_dumps if recording.role == "code_dump" else found.recordings
            opened.append(recording)


def _recorded_files(directory: Path, is_wanted: Callable[[Path], bool]) -> Iterator[Path]:
    """Files below a directory that are wanted, sorted, and directories that are one recording."""
    for path in sorted(directory.iterdir()):
        if path.is_dir():
            if _core.directory_format(path) is not None:
                yield path
            elif not path.is_symlink():
                yield from _recorded_files(path, is_wanted)
        elif path.is_file() and is_wanted(path):
            yield path


def _is_named_or_dump(path: Path) -> bool:
    """Whether a format names such files, or it begins as a code dump, which is used where it matches a process."""
    return any(one.names_file(path.name) for one in formats()) or "code_dump" in certain_roles(path)


def _is_recording(path: Path) -> bool:
    """Whether a file begins as a recording that is not only code or unwind tables."""
    return not certain_roles(path).isdisjoint(("samples", "runtime_log", "call_trace", "saved_profile"))


def certain_roles(path: Path) -> set[str]:
    """The roles of the formats that a file certainly has by its first bytes."""
    return {format_named(name).role for name, how in _core.sniff(_head(path)) if how == "certain"}


def _head(path: Path) -> bytes:
    """The bytes that decide about the format of a file, unpacked; none where it cannot be read."""
    try:
        return _core.file_head(path, HEAD_BYTES)
    except OSError:
        return b""


def format_of_file(path: Path) -> str | None:
    """The format that a file certainly has, by its name or its first bytes; None for other files."""
    named = next((one.name for one in formats() if one.names_file(path.name)), None)
    return named or next((name for name, how in _core.sniff(_head(path)) if how == "certain"), None)


def _is_plain_directory(source: Input | Recording) -> bool:
    """Whether an input is a directory of files, rather than a recording."""
    if not isinstance(source, str | os.PathLike):
        return False
    return os.path.isdir(source) and _core.directory_format(source) is None


def _is_note(source: Input | Recording) -> bool:
    """Whether an input is what `perfuse record` notes beside the files that it writes."""
    return (
        isinstance(source, str | os.PathLike)
        and os.path.basename(os.fspath(source)) == NAME
        and note_beside(os.fspath(source)) is not None
    )


def _is_new(source: Input | Recording, found: Inputs, seen: set[tuple[int, int]]) -> bool:
    """Whether an input is not a file that was opened before, which is noted."""
    path = source.path if isinstance(source, Recording) else source
    if isinstance(source, Recording) and any(source is one for one in found.recordings):
        found.diagnostics.append(diagnostic("FU011", source.path, f"{source.path} was given more than once"))
        return False
    if not isinstance(path, str | os.PathLike) or path == "-":
        return True
    try:
        status = os.stat(path)
    except OSError:
        # Standard input, bytes, and what `open` will refuse.
        return True
    if (status.st_dev, status.st_ino) in seen:
        message = f"{os.fspath(path)} was given more than once and is counted once"
        found.diagnostics.append(diagnostic("FU011", os.fspath(path), message))
        return False
    seen.add((status.st_dev, status.st_ino))
    return True
