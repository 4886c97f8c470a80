"""Output files that appear under their name only when they are complete: every output is whole or absent.

Content goes to a temporary file beside the target, which is renamed at the end. An input that is mapped or open keeps
its content when an output takes its name.
"""

import gzip
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase, BufferedWriter, RawIOBase
from pathlib import Path
from typing import IO, cast

from perfuse import _core
from perfuse.descriptors import COMPRESSED

_COPY_BYTES = 1 << 20


@contextmanager
def output_file(path: Path) -> Iterator[IO[bytes]]:
    """A file object for the content of a file.

    The file appears when the block ends; after an exception there is none, or the one that was there before. A name
    that ends in `.gz` or `.zst` is compressed. A pipe or a device, such as /dev/null, is written directly.
    """
    if _is_special(path):
        with path.open("wb") as out:
            yield out
        return
    with _renamed_file(path) as unfinished, unfinished.open("xb") as file, _compressed(file, path) as out:
        yield out


@contextmanager
def output_path(path: Path) -> Iterator[Path]:
    """The path of an empty file for the content of a file, for code that needs a name. Rules as for `output_file`.

    `-` is standard output.
    """
    if str(path) != "-" and not _is_special(path) and path.suffix.lower() not in COMPRESSED:
        with _renamed_file(path) as unfinished:
            unfinished.touch()
            yield unfinished
        return
    with tempfile.TemporaryDirectory() as directory:
        unfinished = Path(directory, "output")
        unfinished.touch()
        yield unfinished
        with unfinished.open("rb") as content:
            if str(path) == "-":
                shutil.copyfileobj(content, sys.stdout.buffer, _COPY_BYTES)
                sys.stdout.buffer.flush()
            else:
                with output_file(path) as out:
                    shutil.copyfileobj(content, out, _COPY_BYTES)


@contextmanager
def output_files(path: Path) -> Iterator[Path]:
    """An empty directory; its files move to the directory of `path` when the block ends, the one named `path` last."""
    path = path.resolve()
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as name:
        yield Path(name)
        for file in file_names(Path(name), last=path.name):
            Path(name, file).replace(path.with_name(file))


@contextmanager
def output_directory(path: Path) -> Iterator[Path]:
    """An empty directory; its files move to directory `path` when the block ends."""
    path = path.resolve()
    unfinished = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        yield unfinished
        path.mkdir(exist_ok=True)
        for file in file_names(unfinished):
            Path(unfinished, file).replace(path / file)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


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


@contextmanager
def _renamed_file(path: Path) -> Iterator[Path]:
    """A new path beside `path`; the file there is renamed to `path` when the block ends."""
    path = path.resolve()
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        yield unfinished
        if path.exists():
            shutil.copymode(path, unfinished)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


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
