"""Members of a saved profile that are compressed by xz."""

import lzma

MAX_MEMORY = 256 << 20
"""Most memory that unpacking may take besides the content."""


def packed(data: bytes) -> bytes:
    """The bytes of a member with this content."""
    return lzma.compress(data, preset=6)


def unpacked(data: bytes, most_bytes: int) -> bytes:
    """The content of a member.

    Raises:
        ValueError: It is cut or damaged, or larger than allowed.
    """
    unpacker = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=MAX_MEMORY)
    try:
        content = unpacker.decompress(data, most_bytes)
    except lzma.LZMAError as error:
        raise ValueError(str(error)) from error
    if not unpacker.eof:
        raise ValueError(f"it is cut, or larger than {most_bytes >> 20} MiB")
    return content
