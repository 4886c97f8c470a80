"""A program with an XRay map, assembled by hand: with the functions of `src/small.cc` in the corpus only."""

import struct
from itertools import accumulate

FUNCTIONS = {
    "_ZN4demo3Acc3addEl": "enter exit",
    "_ZNK4demo3Acc5totalEv": "enter exit",
    "_ZN4demo4leafEl": "enter exit",
    "_ZN4demo3midEl": "enter exit",
    "_ZN4demo8mid_tailEl": "enter tail",
    "_ZN4demo7chain_bEl": "enter tail",
    "_ZN4demo7chain_aEl": "enter tail",
    "_ZN4demo7throwerEi": "enter exit",
    "_ZN4demo7catcherEi": "enter exit exit",
    "_ZN4demo4factEl": "enter exit",
    "with_arg": "arguments exit",
    "with_ptr": "arguments exit",
    "custom_a": "enter custom exit",
    "custom_bin": "enter custom exit",
    "sleeper": "enter exit",
    "_Z3runi": "enter exit",
    "_ZN4demo5twiceIiEET_S1_": "enter exit",
    "_ZN4demo5twiceIdEET_S1_": "enter exit",
}
"""Functions by symbol, in the order of their numbers, from 1, each with the kinds of its sleds."""

_KINDS = {"enter": 0, "exit": 1, "tail": 2, "arguments": 3, "custom": 4}
_TEXT, _MAP, _BYTES_EACH = 0x1000, 0x2000, 0x40
_NAMES = (".text", "xray_instr_map", ".symtab", ".strtab", ".shstrtab")


def program() -> bytes:
    """The bytes of a 64-bit little-endian ELF file for x86-64."""
    starts = [_TEXT + index * _BYTES_EACH for index in range(len(FUNCTIONS))]
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in FUNCTIONS)
    ofs_names = list(accumulate((len(name) + 1 for name in FUNCTIONS), initial=1))
    symbols = bytes(24) + b"".join(
        struct.pack("<IBBHQQ", ofs, 0x12, 0, 1, start, _BYTES_EACH)
        for ofs, start in zip(ofs_names, starts, strict=False)
    )
    titles = b"\0" + b"".join(name.encode() + b"\0" for name in _NAMES)
    contents = (bytes(len(FUNCTIONS) * _BYTES_EACH), _map(starts), symbols, strings, titles)
    offsets = list(accumulate(map(len, contents), initial=64))
    headers = bytes(64)
    ofs_title = 1
    # Type, flags, address, linked section, entry size.
    kinds = ((1, 6, _TEXT, 0, 0), (1, 2, _MAP, 0, 0), (2, 0, 0, 4, 24), (3, 0, 0, 0, 0), (3, 0, 0, 0, 0))
    for name, (kind, flags, address, link, size), content, offset in zip(
        _NAMES, kinds, contents, offsets, strict=False
    ):
        headers += struct.pack(
            "<IIQQQQIIQQ", ofs_title, kind, flags, address, offset, len(content), link, int(kind == 2), 1, size
        )
        ofs_title += len(name) + 1
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    return (
        ident
        + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, offsets[-1], 0, 64, 0, 0, 64, 6, 5)
        + b"".join(contents)
        + headers
    )


def _map(starts: list[int]) -> bytes:
    """Version 2: addresses are relative to their own field."""
    entries = b""
    for start, kinds in zip(starts, FUNCTIONS.values(), strict=True):
        for number, kind in enumerate(kinds.split()):
            here = _MAP + len(entries)
            sled = start + number * 16 - here
            entries += struct.pack("<qqBBB13x", sled, start - (here + 8), _KINDS[kind], 1, 2)
    return entries
