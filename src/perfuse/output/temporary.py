"""Temporary files and directories, removed when the process ends; those of killed processes by the next one.

Each is locked by the process that made it, for as long as that process lives; one that can lock it may remove it. Locks
hold in every pid namespace of a machine, and end with a process that is killed. Where a file system has no locks,
nothing is removed.
"""

import atexit
import os
import re
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_TOKEN_BYTES = 8
_SUFFIX = ".unfinished"
_BESIDE = re.compile(rf"\..+\.[0-9a-f]{{{2 * _TOKEN_BYTES}}}{re.escape(_SUFFIX)}")
"""Names of unfinished outputs, beside the files that they become."""
_IN_TEMPORARY = re.compile(rf"perfuse-[0-9a-f]{{{2 * _TOKEN_BYTES}}}{re.escape(_SUFFIX)}")
"""Names in the directory for temporary files."""
_LEAST_AGE_S = 10
"""A younger one may not be locked yet."""

_NO_LOCK = -1
_REMOVALS = 5
"""Times that a directory is removed: threads of DuckDB may write another file to it meanwhile."""

_locks: dict[Path, int] = {}
"""Descriptors of the locks of this process, by path; `_NO_LOCK` for one that is being made."""
_searched: set[Path] = set()
"""Directories in which this process has looked for those of killed processes."""
_owner = os.getpid()
_directory: Path | None = None
_directory_lock = threading.Lock()


@contextmanager
def temporary_file(target: Path) -> Iterator[Path]:
    """A new file beside `target`, which becomes it by renaming; removed at the end if it is still there."""
    path = _new_path(target.parent, f".{target.name}.")
    with _registered(path):
        # Not to write: a file that somebody has open to write counts as one that still grows.
        _lock(path, os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
    try:
        yield path
    finally:
        remove(path)


@contextmanager
def temporary_directory(target: Path | None = None) -> Iterator[Path]:
    """A new directory that only this user may read, beside `target` or in the directory for temporary files."""
    path = _new_directory(target)
    try:
        yield path
    finally:
        remove(path)


def process_directory() -> Path:
    """The directory for temporary files that this process has alone, and only this user may read."""
    global _directory  # noqa: PLW0603 - one for each process
    with _directory_lock:
        if _directory is None:
            _directory = _new_directory(None)
        return _directory


def _new_directory(target: Path | None) -> Path:
    if target is None:
        path = _new_path(Path(tempfile.gettempdir()), "perfuse-")
    else:
        path = _new_path(target.parent, f".{target.name}.")
    with _registered(path):
        path.mkdir(mode=0o700)
        _lock(path, os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    return path


@contextmanager
def _registered(path: Path) -> Iterator[None]:
    """Registers a path while it is made, so that a signal that arrives before it is locked leaves nothing."""
    _locks[path] = _NO_LOCK
    try:
        yield
    except FileExistsError:
        del _locks[path]
        raise
    except BaseException:
        remove(path)
        raise


def remove(path: Path) -> None:
    """Removes a temporary file or directory, and its lock."""
    if path.is_dir() and not path.is_symlink():
        for _ in range(_REMOVALS):
            shutil.rmtree(path, ignore_errors=True)
            if not path.exists():
                break
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)
    descriptor = _locks.pop(path, None)
    if descriptor is not None and descriptor != _NO_LOCK:
        os.close(descriptor)


@atexit.register
def remove_all() -> None:
    """Removes what this process has left: at its end, also by a signal. A forked process leaves that of its parent."""
    if os.getpid() == _owner:
        for path in list(_locks):
            remove(path)


def _after_fork() -> None:
    """A forked process leaves the files of its parent; its copies of the descriptors keep their locks until it ends."""
    global _owner, _directory, _directory_lock
    _owner, _directory, _directory_lock = os.getpid(), None, threading.Lock()
    _locks.clear()


os.register_at_fork(after_in_child=_after_fork)


def _new_path(directory: Path, prefix: str) -> Path:
    if directory not in _searched:
        _searched.add(directory)
        remove_stale(directory)
    return directory / f"{prefix}{secrets.token_hex(_TOKEN_BYTES)}{_SUFFIX}"


def remove_stale(directory: Path) -> list[Path]:
    """Removes the temporary files and directories of this user's killed processes from a directory; returns them."""
    removed: list[Path] = []
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.endswith(_SUFFIX) and (_BESIDE.fullmatch(entry.name) or _IN_TEMPORARY.fullmatch(entry.name)):
                with suppress(OSError):
                    if _is_stale(entry):
                        remove(Path(entry.path))
                        removed.append(Path(entry.path))
    return removed


def _is_stale(entry: "os.DirEntry[str]") -> bool:
    """Whether a file or directory is of this user, and no process has locked it."""
    status = entry.stat(follow_symlinks=False)
    is_own = status.st_uid == os.geteuid() and not entry.is_symlink()
    if not is_own or Path(entry.path) in _locks or time.time() - status.st_mtime < _LEAST_AGE_S:
        return False
    if not (entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)):
        return False
    import fcntl

    descriptor = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _lock(path: Path, descriptor: int) -> None:
    """Locks a new file or directory, where its file system has locks."""
    import fcntl

    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    _locks[path] = descriptor
