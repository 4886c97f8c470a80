"""Saved profiles with other contents of some members, and what is read of them."""

import io
from collections.abc import Mapping
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile, ZipInfo


def rewritten(packed: bytes, change: Mapping[str, bytes | None]) -> bytes:
    """The same file with other contents of some members, or without them (None), with right checksums."""
    out = io.BytesIO()
    with ZipFile(io.BytesIO(packed)) as archive, ZipFile(out, "w", ZIP_STORED) as new:
        for info in archive.infolist():
            content = change.get(info.filename, archive.read(info.filename))
            if content is not None:
                new.writestr(ZipInfo(info.filename), content)
    return out.getvalue()


def damaged_copy(path: Path, out: Path, *members: str) -> Path:
    """A copy of a saved profile with a changed byte in each of some members."""
    data = bytearray(path.read_bytes())
    with ZipFile(path) as archive:
        for info in archive.infolist():
            if info.filename.startswith(members):
                data[info.header_offset + 30 + len(info.filename) + info.file_size // 2] ^= 0xFF
    out.write_bytes(data)
    return out


def bytes_in_memory(path: Path) -> int:
    """Bytes of a file that this process has in memory, where it has mapped it: what was read of it."""
    total, is_of_file = 0, False
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines():
        name, _, rest = line.partition(" ")
        if not name.endswith(":"):
            is_of_file = rest.endswith(str(path))
        elif is_of_file and name == "Rss:":
            total += int(rest.split()[0]) * 1024
    return total
