"""Members of a saved profile that are compressed by xz."""

import lzma

MAX_BYTES = 1 << 30
"""Most bytes that one of these may become."""
MAX_MEMORY = 256 << 20
"""Most memory that unpacking may take besides."""


def packed(data: bytes) -> bytes:
    """The bytes of a member with this content."""
    return lzma.compress(data, preset=6)


def unpacked(data: bytes) -> bytes:
    """The content of a member.

    Raises:
        ValueError: It is cut or damaged, or too large.
    """
    unpacker = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=MAX_MEMORY)
    try:
        content = unpacker.decompress(data, MAX_BYTES)
    except lzma.LZMAError as error:
        raise ValueError(str(error)) from error
    if not unpacker.eof:
        raise ValueError("it is cut, or larger than 1 GiB")
    return content
