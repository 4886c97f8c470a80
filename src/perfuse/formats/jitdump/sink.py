"""Outputs of the JITDUMP writer: a file, a file object, or the dump of this process, which perf finds."""

import mmap
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import BinaryIO, Protocol

from perfuse.errors import PerfuseError

HEADER_BYTES = 40


class Sink(Protocol):
    """Accepts complete records."""

    def write(self, data: bytes) -> None:
        """Writes bytes to the kernel: they survive the end of the process."""

    def close(self) -> None:
        """Closes what the sink opened."""


class FileSink:
    """A file that the sink opens. Writes are not buffered, so that `kill -9` loses no record."""

    def __init__(self, fd: int, path: Path) -> None:
        self._fd = fd
        self._path = path
        self._end = 0
        self._regular = stat.S_ISREG(os.fstat(fd).st_mode)

    @classmethod
    def create(cls, path: str | PathLike[str]) -> "FileSink":
        """Creates a file, or truncates an existing one."""
        path = Path(path)
        return cls(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644), path)

    def write(self, data: bytes) -> None:
        """Appends complete records; a partial write (disk full) is undone, so that the file stays valid."""
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._fd, left) :]
        except OSError:
            if self._regular:
                with suppress(OSError):
                    os.ftruncate(self._fd, self._end)
                    os.lseek(self._fd, self._end, os.SEEK_SET)
            raise
        self._end += len(data)

    def close(self) -> None:
        """Closes the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class ObjectSink:
    """A binary file object, which the caller closes; flushed after every record."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, data: bytes) -> None:
        """Writes and flushes."""
        self._file.write(data)
        self._file.flush()

    def close(self) -> None:
        """Does nothing: the caller closes the object."""


class ProcessSink(FileSink):
    """`jit-PID.dump` of this process, with the executable mapping that perf records."""

    def __init__(self, fd: int, path: Path) -> None:
        super().__init__(fd, path)
        self._marker: mmap.mmap | None = None

    def write(self, data: bytes) -> None:
        """Appends complete records; after the first, which is the header, the file is mapped."""
        super().write(data)
        if self._marker is None:
            self._marker = self._map()

    def _map(self) -> mmap.mmap:
        """Maps the header executable: perf records only executable mappings, and recognises the dump by its name."""
        try:
            return mmap.mmap(self._fd, HEADER_BYTES, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
        except OSError as error:
            with suppress(OSError):
                self._path.unlink()
            self.close()
            hint = "the directory's file system may be mounted noexec; choose another directory"
            message = f"cannot map {self._path} executable: {error.strerror}"
            raise PerfuseError(message, path=str(self._path), hint=hint) from error

    def close(self) -> None:
        """Closes the file and removes the mapping."""
        if self._marker is not None:
            self._marker.close()
            self._marker = None
        super().close()


@dataclass(frozen=True, slots=True)
class ProcessDump:
    """The directory for the dumps of this process and of its forks."""

    directory: Path

    def path(self, pid: int) -> Path:
        """The dump of a process; perf accepts no other name."""
        return self.directory / f"jit-{pid}.dump"

    def create(self) -> ProcessSink:
        """Creates the dump of the calling process: never through a link, never over an existing file.

        Raises:
            PerfuseError: A file of that name exists, or it cannot be created.
        """
        path = self.path(os.getpid())
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return ProcessSink(os.open(path, flags, 0o600), path)
        except FileExistsError:
            hint = "remove it, close the writer that has it open, or choose another directory"
            raise PerfuseError(f"{path} exists already", path=str(path), hint=hint) from None
        except OSError as error:
            hint = "choose a directory that can be written to"
            raise PerfuseError(f"cannot create {path}: {error.strerror}", path=str(path), hint=hint) from error
