"""Files that are still being written."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from perfuse.errors import UnreadableInput
from perfuse.recording import Recording, open
from perfuse.writers import is_written

_PATIENCE = 4
"""A look at a file that took long is followed by a pause that many times as long."""
_A_HEADER = 1 << 12
"""A file below this size may not have its whole header yet."""


@dataclass(frozen=True, slots=True)
class Growth:
    """What a file has at a moment.

    Attributes:
        seconds: Since the first look.
        size_bytes: Its size, unpacked.
        records: Records by kind, all so far.
        new: Records by kind that were not there at the look before; all at the first.
        per_second: Those of `new` a second; none at the first look.
        recording: The file as it is at this moment.
    """

    seconds: float
    size_bytes: int
    records: Mapping[str, int]
    new: Mapping[str, int]
    per_second: Mapping[str, float]
    recording: Recording


def follow(path: str | PathLike[str], *, every_s: float = 1.0, for_s: float | None = None) -> Iterator[Growth]:
    """Looks at a file of any format again and again: what is whole so far, and what has come.

    It ends when the time is over, or when a process that wrote the file has closed it (which can be seen of one's own
    processes on Linux).

    Args:
        path: The file.
        every_s: Seconds from look to look; more where a look takes long.
        for_s: End after this many seconds.

    Raises:
        UnreadableInput: It is not there, or of no known format.
    """
    name = fspath(path)
    start = time.monotonic()
    first: float | None = None
    last: Growth | None = None
    was_written = False
    while True:
        began = time.monotonic()
        written = is_written(name)
        at_end = for_s is not None and began - start >= for_s
        recording = _opened(name, written and not at_end)
        if recording is not None:
            first = began if first is None else first
            last = _growth(recording, began - first, last)
            yield last
        if at_end or (was_written and not written):
            return
        was_written = was_written or written
        now = time.monotonic()
        pause = max(every_s - (now - began), _PATIENCE * (now - began), 0.0)
        time.sleep(pause if for_s is None else max(0.0, min(pause, start + for_s - now)))


def _opened(name: str, may_come: bool) -> Recording | None:
    """The file; None while what has been written of it is too short for its header."""
    try:
        return open(name)
    except UnreadableInput:
        if not may_come or Path(name).stat().st_size >= _A_HEADER:
            raise
        return None


def _growth(recording: Recording, seconds: float, last: Growth | None) -> Growth:
    records = recording.summary.records
    before: Mapping[str, int] = {} if last is None else last.records
    # A file that was begun anew has fewer than before.
    new = {kind: more for kind, count in records.items() if (more := count - before.get(kind, 0)) > 0}
    passed = 0.0 if last is None else seconds - last.seconds
    per_second = {kind: count / passed for kind, count in new.items()} if passed > 0 else {}
    return Growth(seconds, recording.size_bytes, records, new, per_second, recording)
