"""Watching files that are still being written."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from perfuse.errors import UnreadableInput
from perfuse.input.open_files import is_open_for_writing
from perfuse.recording import Recording, open

_PAUSE_FACTOR = 4
"""The pause after reading a file is at least this many times as long as the reading."""
_MAX_HEADER_BYTES = 1 << 12
"""A file below this size may not have its whole header yet."""


@dataclass(frozen=True, slots=True)
class WatchUpdate:
    """The content of a watched file at one time.

    Attributes:
        seconds: Time since the first update.
        size_bytes: Size of the file, after decompression.
        records: Number of records by kind.
        new: Number of records by kind that the preceding update did not have; at the first update all.
        per_second: Rate of the new records by kind; empty at the first update.
        recording: The file, opened at this time.
    """

    seconds: float
    size_bytes: int
    records: Mapping[str, int]
    new: Mapping[str, int]
    per_second: Mapping[str, float]
    recording: Recording


def watch(
    path: str | PathLike[str], *, every_s: float = 1.0, for_s: float | None = None, idle_s: float = 5.0
) -> Iterator[WatchUpdate]:
    """Reads a file of any format repeatedly, and reports its complete records and the new ones.

    Files have no mark of their end that all writers write. The end is reached

    - after `for_s`;
    - when the process that had the file open for writing has closed it or has ended. This is visible on Linux, for
      processes of the same user;
    - when no process is seen to have it open for writing, and it has not grown for `idle_s`: a file that was complete
      before, and one of a writer that is not visible.

    Args:
        path: The file.
        every_s: Seconds from one update to the next; more where reading takes long.
        for_s: Seconds until the end; None for no limit.
        idle_s: Seconds without growth after which a file without a visible writer is complete.

    Raises:
        UnreadableInput: The file does not exist, or is not of a known format.
    """
    name = fspath(path)
    start = time.monotonic()
    first: float | None = None
    last: WatchUpdate | None = None
    was_written = False
    size, grown = _size(name), start
    while True:
        began = time.monotonic()
        is_written = is_open_for_writing(name)
        last_size, size = size, _size(name)
        if is_written or size != last_size:
            grown = began
        is_idle = not is_written and began - grown >= idle_s
        at_end = is_idle or (for_s is not None and began - start >= for_s)
        recording = _open(name, is_written and not at_end and (size or 0) < _MAX_HEADER_BYTES)
        if recording is not None:
            first = began if first is None else first
            last = _update(recording, began - first, last)
            yield last
        if at_end or (was_written and not is_written):
            return
        was_written = was_written or is_written
        now = time.monotonic()
        pause = max(every_s - (now - began), _PAUSE_FACTOR * (now - began), 0.0)
        ends = [start + for_s] if for_s is not None else []
        ends += [] if is_written else [grown + idle_s]
        time.sleep(max(0.0, min([pause, *(end - now for end in ends)])))


def _size(name: str) -> int | None:
    try:
        return Path(name).stat().st_size
    except OSError:
        return None


def _open(name: str, may_be_short: bool) -> Recording | None:
    """The file; None where it may have been too short for its header, and was."""
    try:
        return open(name)
    except UnreadableInput:
        if not may_be_short:
            raise
        return None


def _update(recording: Recording, seconds: float, last: WatchUpdate | None) -> WatchUpdate:
    records = recording.summary.records
    before: Mapping[str, int] = {} if last is None else last.records
    # A file that was truncated and rewritten has fewer records than before.
    new = {kind: more for kind, count in records.items() if (more := count - before.get(kind, 0)) > 0}
    passed = 0.0 if last is None else seconds - last.seconds
    per_second = {kind: count / passed for kind, count in new.items()} if passed > 0 else {}
    return WatchUpdate(seconds, recording.size_bytes, records, new, per_second, recording)
