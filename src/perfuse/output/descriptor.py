"""Files the core writes to."""

from io import FileIO
from typing import IO


def descriptor_of(out: IO[bytes]) -> int | IO[bytes]:
    """A plain file as its descriptor, which takes bytes without Python; anything else as it is."""
    if not isinstance(getattr(out, "raw", None), FileIO):
        return out
    out.flush()
    return out.fileno()
