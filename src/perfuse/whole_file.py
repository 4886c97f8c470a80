"""Files that are written whole, or not at all."""

import gzip
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase, BufferedWriter, RawIOBase
from pathlib import Path
from typing import IO, cast


@contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes its name when the block ends well, and is gone when it does not.

    A name that ends in `.gz` is compressed. What is no file, a pipe say, is written to as it is.
    """
    if path.exists() and not path.is_file():
        # A pipe or a device such as /dev/null: replacing it would be wrong.
        with path.open("wb") as out:
            yield out
        return
    path = path.resolve()
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with unfinished.open("xb") as file, _packed(file, path) as out:
            yield out
        if path.exists():
            shutil.copymode(path, unfinished)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


@contextmanager
def _packed(file: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    if path.suffix.lower() != ".gz":
        yield file
        return
    # No name and no time: the same profile gives the same bytes.
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0) as packed:
        buffered = BufferedWriter(cast(RawIOBase, cast(BufferedIOBase, packed)), buffer_size=1 << 20)
        yield buffered
        buffered.flush()
