"""Where the records of a file are, by walks over the structures that each format's specification defines."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from elftools.elf.elffile import ELFFile

from mlpd_events import event_ranges


@dataclass(frozen=True, slots=True)
class Place:
    """A record: its first byte, the byte after it, and its kind as the format numbers it."""

    offset: int
    end: int
    kind: int

    @property
    def inside(self) -> int:
        """An offset inside the record, which is neither its start nor its end."""
        return (self.offset + self.end + 1) // 2


def perf_data(data: bytes) -> Iterator[Place]:
    """Records of the data section, to the end of the file where its size was not written."""
    at, size = struct.unpack_from("<QQ", data, 40)
    end = at + size if size else len(data)
    while at + 8 <= min(end, len(data)):
        kind, _, record_bytes = struct.unpack_from("<IHH", data, at)
        yield Place(at, at + record_bytes, kind)
        at += record_bytes


def jitdump(data: bytes) -> Iterator[Place]:
    """Records after the header, whose size is in it."""
    (at,) = struct.unpack_from("<I", data, 8)
    while at + 16 <= len(data):
        kind, size = struct.unpack_from("<II", data, at)
        yield Place(at, at + size, kind)
        at += size


def xray(data: bytes) -> Iterator[Place]:
    """Records of an XRay log of FDR mode (version 5), Basic mode (version 3), or a profile."""
    _, mode = struct.unpack_from("<HH", data)
    if data[:8] == PROFILE_MAGIC:
        return _xray_profile(data)
    return _xray_fdr(data) if mode == 1 else (Place(at, at + 32, data[at]) for at in range(32, len(data) - 31, 32))


PROFILE_MAGIC = struct.pack("<Q", 0x7872617970726F66)
_CUSTOM_EVENT, _TYPED_EVENT = 5, 8


def _xray_fdr(data: bytes) -> Iterator[Place]:
    at = 32
    while at + 8 <= len(data):
        kind, size = data[at] >> 1, 16
        if not data[at] & 1:
            size = 8
        elif kind in (_CUSTOM_EVENT, _TYPED_EVENT):
            size += struct.unpack_from("<i", data, at + 1)[0]
        yield Place(at, at + size, data[at] & 0xF)
        at += size


def _xray_profile(data: bytes) -> Iterator[Place]:
    at = 32
    while at + 16 <= len(data):
        (size,) = struct.unpack_from("<I", data, at)
        end = at + 16 + size
        yield Place(at, at + 16, 0)
        at += 16
        while at < min(end, len(data)):
            start = at
            while at + 4 <= len(data) and struct.unpack_from("<i", data, at) != (0,):
                at += 4
            at += 20
            yield Place(start, at, 1)


def mono(data: bytes) -> Iterator[Place]:
    """Events of a Mono log."""
    return (Place(*one) for one in event_ranges(data))


def collapsed(data: bytes) -> Iterator[Place]:
    """Lines."""
    at = 0
    for line in data.splitlines(keepends=True):
        yield Place(at, at + len(line), 0)
        at += len(line)


_SFRAME_HEADER, _SFRAME_FUNCTION = 28, 20


def sframe_functions(data: bytes, number: int = 0) -> list[Place]:
    """Function entries of an SFrame section of version 2, in a program or a member of an archive.

    The kind is the start address as it is stored.
    """
    start, elf = (0, data) if data[:4] == b"\x7fELF" else _archive_member(data, number)
    section = ELFFile(io.BytesIO(elf)).get_section_by_name(".sframe")
    at = start + section["sh_offset"]
    magic, version, auxiliary, count, entries = struct.unpack_from("<HB4xBI8xI", data, at)
    assert (magic, version) == (0xDEE2, 2)
    first = at + _SFRAME_HEADER + auxiliary + entries
    offsets = range(first, first + count * _SFRAME_FUNCTION, _SFRAME_FUNCTION)
    return [Place(one, one + _SFRAME_FUNCTION, *struct.unpack_from("<i", data, one)) for one in offsets]


def _archive_member(data: bytes, number: int) -> tuple[int, bytes]:
    """Offset and bytes of a member with code; the first member of an archive is its index of symbols."""
    at = 8
    for _ in range(number + 2):
        size = int(data[at + 48 : at + 58])
        start = at + 60
        at = start + size + size % 2
    return start, data[start : start + size]


_WALKS: dict[str, Callable[[bytes], Iterator[Place]]] = {
    "perf_data": perf_data,
    "jitdump": jitdump,
    "xray": xray,
    "mono": mono,
    "collapsed": collapsed,
}


def places(of: str, data: bytes) -> list[Place]:
    """The whole records of a file."""
    return [one for one in _WALKS[of](data) if one.end <= len(data)]
