"""Whether somebody is writing a file."""

import os
import re
from pathlib import Path

_PROC = Path("/proc")
_WRITES = os.O_WRONLY | os.O_RDWR


def is_written(path: str) -> bool:
    """Whether a process has a file open for writing; False where that cannot be seen.

    It can be on Linux, of processes of the same user.
    """
    try:
        wanted = Path(path).stat()
        processes = [entry for entry in _PROC.iterdir() if entry.name.isdecimal()]
    except OSError:
        return False
    return any(_writes(process, wanted) for process in processes)


def _writes(process: Path, wanted: os.stat_result) -> bool:
    try:
        descriptors = list((process / "fd").iterdir())
    except OSError:
        return False
    for descriptor in descriptors:
        try:
            found = descriptor.stat()
            if (found.st_dev, found.st_ino) != (wanted.st_dev, wanted.st_ino):
                continue
            told = (process / "fdinfo" / descriptor.name).read_text(encoding="ascii")
        except OSError:
            continue
        flags = re.search(r"^flags:\s*([0-7]+)", told, re.MULTILINE)
        if flags and int(flags[1], 8) & _WRITES:
            return True
    return False
