"""Recordings whose native modules exist on no machine.

perfuse names native frames by the files of the machine it runs on, where path or build id lead to them. The frames of
a recording changed by `with_absent_modules` have no such names, so that a test prints the same on every machine.
"""

import struct

_MAGIC = b"PERFILE2"
_HEADER = struct.Struct("<8s 8x 8x 16x 2Q 16x 32s")
"""Magic, two sizes, the attributes' section; offset and size of the data; the event types' section; feature bits."""
_SECTION = struct.Struct("<2Q")
_BUILD_ID_FEATURE = 2
_BUILD_ID_ENTRY = struct.Struct("<4x 2x H 4x 20s")
"""Type and misc of the entry, its size, pid, build id; a file name follows."""
_BUILD_ID_OFFSET = 12


def with_absent_modules(perf_data: bytes) -> bytes:
    """The recording with other build ids, and with modules below `/old/` instead of `/usr/`.

    Kernel, vdso, programs and libraries are then found neither at their paths nor in a cache. The recording is a
    little-endian file without compression that has its build ids in the header.
    """
    magic, data_offset, data_size, feature_bits = _HEADER.unpack_from(perf_data)
    assert magic == _MAGIC
    features = [bit for bit in range(256) if feature_bits[bit // 8] >> bit % 8 & 1]
    data_end = data_offset + data_size
    section = data_end + features.index(_BUILD_ID_FEATURE) * _SECTION.size
    ids_start, ids_size = _SECTION.unpack_from(perf_data, section)
    ids_end = ids_start + ids_size
    changed = bytearray(perf_data)
    entry_start = ids_start
    while entry_start < ids_end:
        entry_size, build_id = _BUILD_ID_ENTRY.unpack_from(perf_data, entry_start)
        id_start = entry_start + _BUILD_ID_OFFSET
        changed[id_start : id_start + len(build_id)] = bytes(byte ^ 0xFF for byte in build_id)
        entry_start += entry_size
    for start, end in ((data_offset, data_end), (ids_start, ids_end)):
        changed[start:end] = changed[start:end].replace(b"/usr/", b"/old/")
    return bytes(changed)
