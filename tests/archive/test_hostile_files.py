"""Saved profiles that are cut or changed are refused, or have what was not changed; nothing outside of them is read."""

import contextlib
import lzma
import random
import struct
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import pytest

import perfuse as pf
from packs_of_tests import rewritten
from perfuse.archive import resolved_code

HERE = Path(__file__).parent
TESTDATA = HERE.parent / "cli" / "testdata"


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A small saved profile of a perf.data with its dump."""
    path = tmp_path_factory.mktemp("packed") / "small.perfuse"
    with pf.fuse(TESTDATA / "perf.data", TESTDATA / "jit-2345.dump") as profile:
        profile.save(path, code="all")
    return path.read_bytes()


def _open(data: bytes) -> None:
    """Opens bytes, and reads what a report reads; a panic of a library is a failure."""
    with contextlib.suppress(pf.UnreadableInput, pf.UsageError):
        recording = pf.open(data)
        if recording.format == "saved":
            recording.check()
            profile = recording.profile()
            for table in ("samples", "frames", "stacks", "functions", "threads"):
                profile.tables[table].to_arrow()


def test_cuts(packed: bytes) -> None:
    """A file that ends early is refused: its directory is at its end."""
    for end in range(0, len(packed), 97):
        with pytest.raises(pf.UnreadableInput):
            pf.open(packed[:end]).profile()


def test_changed_bytes_of_the_directory(packed: bytes, choice: random.Random) -> None:
    """Bytes of the zip directory, a ninth of them."""
    (start,) = struct.unpack_from("<I", packed, len(packed) - 6)
    for at in range(start + choice.randrange(9), len(packed), 9):
        for flip in (0x01, 0x80):
            changed = bytearray(packed)
            changed[at] ^= flip
            _open(bytes(changed))


def test_damage_is_found(packed: bytes) -> None:
    """A changed byte within a member is a finding of `check`, and an error where the member is used."""
    with ZipFile(_file(packed)) as archive:
        infos = [info for info in archive.infolist() if info.filename not in ("mimetype",)]
    for info in infos:
        changed = bytearray(packed)
        changed[info.header_offset + 30 + len(info.filename) + info.file_size // 2] ^= 0xFF
        recording = pf.open(bytes(changed))
        found = recording.check()
        assert [one.code for one in found] == ["SP001"], info.filename
        assert info.filename in found[0].message


def _file(data: bytes):  # type: ignore[no-untyped-def]
    import io

    return io.BytesIO(data)


def test_changed_bytes_of_the_manifest(packed: bytes, choice: random.Random) -> None:
    """Checksums are right, so that the content itself is read."""
    with ZipFile(_file(packed)) as archive:
        manifest = archive.read("manifest.json")
    for at in range(choice.randrange(29), len(manifest), 29):
        changed = bytearray(manifest)
        changed[at] = ord("9") if chr(manifest[at]).isdigit() else changed[at] ^ 0x08
        _open(rewritten(packed, {"manifest.json": bytes(changed)}))


def test_changed_bytes_of_tables(packed: bytes, choice: random.Random) -> None:
    """Parquet files with right checksums and wrong content, footers among them."""
    with ZipFile(_file(packed)) as archive:
        tables = {name: archive.read(name) for name in ("tables/stacks.parquet", "tables/frames.parquet")}
    for name, table in tables.items():
        for at in range(choice.randrange(71), len(table), 71):
            changed = bytearray(table)
            changed[at] ^= 0x55
            _open(rewritten(packed, {name: bytes(changed)}))


def test_names_that_lead_out(packed: bytes) -> None:
    for name in ("../evil", "/etc/evil", "a/../../evil", "a//b", "a\\b"):
        out = _file(packed)
        with ZipFile(out, "a", ZIP_STORED) as archive:
            archive.writestr(ZipInfo(name), b"x")
        with pytest.raises(pf.UnreadableInput):
            pf.open(out.getvalue())


def test_compressed_and_repeated_members(packed: bytes) -> None:
    out = _file(packed)
    with ZipFile(out, "a") as archive:
        archive.writestr(ZipInfo("more"), b"x" * 1000, compress_type=8)
    with pytest.raises(pf.UnreadableInput):
        pf.open(out.getvalue())
    out = _file(packed)
    with ZipFile(out, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr(ZipInfo("mimetype"), b"application/vnd.perfuse.profile+zip")
    with pytest.raises(pf.UnreadableInput):
        pf.open(out.getvalue())


def test_a_copy_that_unpacks_to_another_size(packed: bytes) -> None:
    """The manifest states the size of each recording; more is never unpacked."""
    with ZipFile(_file(packed)) as archive:
        manifest = archive.read("manifest.json")
    size = (TESTDATA / "perf.data").stat().st_size
    for other in (size - 1, size + 1, 2**62):
        changed = manifest.replace(f'"size_bytes":{size}'.encode(), f'"size_bytes":{other}'.encode())
        assert changed != manifest
        with pytest.raises(pf.UnreadableInput):
            pf.fuse(pf.open(rewritten(packed, {"manifest.json": changed}))).tables["records"].to_arrow()


def test_the_code_of_a_stranger_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data of xz that becomes larger than a limit is refused."""
    monkeypatch.setattr(resolved_code, "MAX_BYTES", 1 << 20)
    bomb = lzma.compress(b" " * (1 << 24))
    with pytest.raises(pf.UnreadableInput, match="larger than"):
        resolved_code.ResolvedCode("app.perfuse", {resolved_code.FACTS: bomb, resolved_code.BYTES: bomb})


def test_a_later_version_is_refused(packed: bytes) -> None:
    with ZipFile(_file(packed)) as archive:
        manifest = archive.read("manifest.json")
    later = manifest.replace(b'"major":1', b'"major":2')
    with pytest.raises(pf.UnreadableInput, match="version 2 of the layout"):
        pf.fuse(pf.open(rewritten(packed, {"manifest.json": later})))
