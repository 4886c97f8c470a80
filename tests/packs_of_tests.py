"""Saved profiles with other contents of some members."""

import io
from collections.abc import Mapping
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
