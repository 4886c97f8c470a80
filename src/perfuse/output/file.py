"""Output files that appear under their name only when they are complete: every output is whole or absent.

Content goes to a temporary file beside the target, which is renamed at the end. A file that is there is replaced where
it is not an input, may be written, and has content of the same kind; `replacing_any` lifts the last condition.
What the system refuses is an `OutputError`, which names the output, not its temporary file.
"""

import errno
import gc
import gzip
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from io import BufferedIOBase, BufferedWriter, RawIOBase
from pathlib import Path
from typing import IO, cast

from perfuse import _core
from perfuse.declared_formats import COMPRESSED
from perfuse.errors import ExportError, UsageError
from perfuse.output.file_kinds import kind_of
from perfuse.output.temporary import temporary_directory, temporary_file
from perfuse.output.terminal import standard_output
from perfuse.recording import input_at

_COPY_BYTES = 1 << 20
_any_kind: ContextVar[bool] = ContextVar("any_kind", default=False)
_HINTS = {
    errno.EACCES: "give the output a place where you may write",
    errno.EROFS: "give the output a place where you may write",
    errno.ENOSPC: "free space there, or give the output another place",
}


class OutputError(ExportError):
    """An output that the system does not let this process write."""


def output_error(name: str, error: OSError) -> OutputError:
    """Why an output cannot be written, by its name and the error of the system."""
    hint = _HINTS.get(error.errno or 0)
    return OutputError(f"cannot write {name}: {error.strerror or error}", path=name, hint=hint)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Makes an error of the system in this block an `OutputError`."""
    try:
        yield
    except OSError as error:
        raise output_error(str(path), error) from error


@contextmanager
def replacing_any() -> Iterator[None]:
    """Outputs in this block replace files with content of any kind, but never an input."""
    token = _any_kind.set(True)
    try:
        yield
    finally:
        _any_kind.reset(token)


def check_target(path: Path, *inputs: Path) -> None:
    """Whether an output may have this name, as far as that is known before its content.

    Args:
        path: File to write.
        inputs: Files that are read, besides those of open recordings.

    Raises:
        UsageError: A file of that name is an input.
        OSError: It may not be written, or it is a symbolic link to anything but a regular file of this user.
    """
    source = next((str(file) for file in inputs if path.exists() and path.samefile(file)), None)
    if source is None and input_at(path):
        # A recording that is open only because of a reference cycle is no longer an input.
        gc.collect()
        source = input_at(path)
    if source is not None:
        known = "" if source == str(path) else f", {source},"
        raise UsageError(
            f"{path} is an input{known} and is not overwritten", path=str(path), hint="give the output another name"
        )
    if path.is_symlink() and not path.exists():
        raise OSError(errno.ENOENT, "the symbolic link leads nowhere", str(path))
    if not path.is_file():
        return
    if path.is_symlink() and path.stat().st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "the symbolic link leads to a file of another user", str(path))
    if not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise PermissionError(errno.EACCES, "the file there is read-only", str(path))


@contextmanager
def output_file(path: Path) -> Iterator[IO[bytes]]:
    """A file object for the content of a file.

    The file appears when the block ends; after an exception there is none, or the one that was there before. A name
    that ends in `.gz` or `.zst` is compressed. A pipe or a device, such as /dev/null, is written directly.
    """
    if _is_special(path):
        with _naming(path), path.open("wb") as out:
            yield out
        return
    with (
        _naming(path),
        _renamed_file(path) as unfinished,
        unfinished.open("wb") as file,
        _compressed(file, path) as out,
    ):
        yield out


@contextmanager
def output_path(path: Path) -> Iterator[Path]:
    """The path of an empty file for the content of a file, for code that needs a name. Rules as for `output_file`.

    `-` is standard output.
    """
    if str(path) != "-" and not _is_special(path) and path.suffix.lower() not in COMPRESSED:
        with _naming(path), _renamed_file(path) as unfinished:
            yield unfinished
        return
    if str(path) != "-":
        with _naming(path):
            check_target(path)
    with temporary_directory() as directory:
        unfinished = directory / "output"
        unfinished.touch()
        yield unfinished
        with unfinished.open("rb") as content:
            if str(path) == "-":
                out = standard_output()
                shutil.copyfileobj(content, out, _COPY_BYTES)
                out.flush()
            else:
                with output_file(path) as out:
                    shutil.copyfileobj(content, out, _COPY_BYTES)


@contextmanager
def output_files(path: Path) -> Iterator[Path]:
    """An empty directory; its files move to the directory of `path` when the block ends, the one named `path` last."""
    target = path.resolve()
    with _naming(path):
        check_target(path)
        with temporary_directory(target) as unfinished:
            yield unfinished
            _move_all(unfinished, target.parent, file_names(unfinished, last=target.name))


@contextmanager
def output_directory(path: Path) -> Iterator[Path]:
    """An empty directory; its files move to directory `path` when the block ends."""
    target = path.resolve()
    with _naming(path), temporary_directory(target) as unfinished:
        yield unfinished
        target.mkdir(exist_ok=True)
        _move_all(unfinished, target, file_names(unfinished))


@contextmanager
def seekable_copy(out: IO[bytes]) -> Iterator[IO[bytes]]:
    """A temporary file, copied to `out` when the block ends: for writers that need a descriptor, or seek."""
    with tempfile.TemporaryFile() as file:
        yield file
        file.seek(0)
        shutil.copyfileobj(file, out, _COPY_BYTES)


def file_names(directory: Path, last: str | None = None) -> list[str]:
    """The names of the files in a directory, sorted; the one named `last` is last."""
    return sorted((file.name for file in directory.iterdir()), key=lambda name: (name == last, name))


def _is_special(path: Path) -> bool:
    """Whether a path is a pipe, a device or a directory: these must not be replaced."""
    return path.exists() and not path.is_file()


def _move_all(unfinished: Path, directory: Path, names: list[str]) -> None:
    """Moves files to a directory, in their order; none where one of them may not have its name there."""
    for name in names:
        target = directory / name
        if not target.is_symlink():
            check_target(target)
            _check_kind(target, unfinished / name)
    for name in names:
        (unfinished / name).replace(directory / name)


def _check_kind(path: Path, unfinished: Path) -> None:
    """Raises `UsageError` where a file would be replaced by content of another kind."""
    if _any_kind.get() or not path.is_file() or not path.stat().st_size:
        return
    old, new = kind_of(path), kind_of(unfinished)
    if old != new:
        raise UsageError(
            f"{path} exists and has {old}; it is not replaced by {new}",
            path=str(path),
            hint="give the output another name, delete that file, or use --force",
        )


@contextmanager
def _renamed_file(path: Path) -> Iterator[Path]:
    """A new file beside `path`, which is renamed to `path` when the block ends."""
    check_target(path)
    path = path.resolve()
    with temporary_file(path) as unfinished:
        yield unfinished
        _check_kind(path, unfinished)
        if path.exists():
            shutil.copymode(path, unfinished)
        unfinished.replace(path)


@contextmanager
def _compressed(file: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    ending = path.suffix.lower()
    if ending == ".zst":
        with tempfile.TemporaryFile(dir=path.parent) as content:
            yield content
            content.flush()
            content.seek(0)
            _core.compress_zstd(content.fileno(), file.fileno())
        return
    if ending != ".gz":
        yield file
        return
    # No name and no time: the same profile gives the same bytes.
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0) as compressed:
        buffered = BufferedWriter(cast(RawIOBase, cast(BufferedIOBase, compressed)), buffer_size=1 << 20)
        yield buffered
        buffered.flush()
