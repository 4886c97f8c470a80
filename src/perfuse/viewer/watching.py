"""Files that are still written while the page is open: the profile is opened again when they have changed."""

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from perfuse.errors import PerfuseError

if TYPE_CHECKING:
    from perfuse.viewer.session import Session

CHECK_S = 0.5
PAUSE_FACTOR = 4
"""The pause after opening the files is at least this many times as long as that took."""

State = tuple[tuple[str, int, int], ...]


def state_of(files: Sequence[str]) -> State:
    """Names, sizes and times of change of files, and of those in directories."""
    paths = [Path(name) for name in files]
    listed = [each for path in paths for each in (sorted(path.iterdir()) if path.is_dir() else [path])]
    found = []
    for path in listed:
        try:
            status = path.stat()
        except OSError:
            continue
        found.append((str(path), status.st_size, status.st_mtime_ns))
    return tuple(found)


class Watching:
    """Watches the files of a session in a thread.

    Args:
        session: The session.
    """

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._ends = threading.Event()
        self._seen = state_of(session.files)
        self._thread = threading.Thread(target=self._run, name="perfuse-watch", daemon=True)

    def start(self) -> None:
        """Starts to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Ends it."""
        self._ends.set()

    def _run(self) -> None:
        self._session.join()
        pause_s = CHECK_S
        while not self._ends.wait(pause_s):
            pause_s = CHECK_S
            now = state_of(self._session.files)
            if now == self._seen or not self._session.is_ready:
                continue
            began = time.monotonic()
            try:
                self._session.reopen()
            except (PerfuseError, OSError, ValueError) as error:
                # A file in the middle of a change: what was read before stays, and the next change is another try.
                self._session.note_stale(str(error))
            self._seen = now
            pause_s = max(CHECK_S, PAUSE_FACTOR * (time.monotonic() - began))
