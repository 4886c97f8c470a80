"""Files that other processes have open."""

import os
import re
from pathlib import Path

_PROC = Path("/proc")
_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR


def is_open_for_writing(path: str) -> bool:
    """Whether a process has a file open for writing. Visible on Linux, for processes of the same user; else False."""
    try:
        status = Path(path).stat()
        processes = [entry for entry in _PROC.iterdir() if entry.name.isdecimal()]
    except OSError:
        return False
    return any(_writes(process, status) for process in processes)


def _writes(process: Path, status: os.stat_result) -> bool:
    """Whether a process has the file with that status open for writing."""
    try:
        descriptors = list((process / "fd").iterdir())
    except OSError:
        return False
    for descriptor in descriptors:
        try:
            found = descriptor.stat()
            if (found.st_dev, found.st_ino) != (status.st_dev, status.st_ino):
                continue
            info = (process / "fdinfo" / descriptor.name).read_text(encoding="ascii")
        except OSError:
            continue
        flags = re.search(r"^flags:\s*([0-7]+)", info, re.MULTILINE)
        if flags and int(flags[1], 8) & _WRITE_FLAGS:
            return True
    return False
