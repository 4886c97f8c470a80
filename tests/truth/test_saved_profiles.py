"""Saved profiles, read by programs that are not of this project: zstd, SHA-256, unzip's checksums, DuckDB."""

import gzip
import hashlib
import json
import shutil
import subprocess
import zipfile
from functools import cache
from pathlib import Path

import pytest

import perfuse

from .command import command_line
from .kinds import KINDS, Kind

ZSTD = shutil.which("zstd")


@cache
def _packed(name: str, directory: Path, path: str) -> Path:
    kind = KINDS[name]
    out = directory / f"{name}-{path.partition(':')[0]}.perfuse"
    if path == "pack":
        command_line("pack", *kind.paths, *kind.map_options, "-o", out, "--inputs")
    else:
        with perfuse.fuse(*kind.paths, **kind.fuse_options) as profile:
            profile.save(out, inputs=True)
    return out


@pytest.fixture
def packed(kind: Kind, path: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, saved with its recordings."""
    return _packed(kind.name, tmp_path_factory.getbasetemp(), path)


def _content(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


@pytest.mark.truth(
    recording="*",
    path=["pack", "api:Profile.save"],
    source="the bytes of the files, unpacked by zstd; DuckDB's reader",
)
def test_recordings_and_tables_are_in_the_file(recording: str, kind: Kind, packed: Path, tmp_path: Path) -> None:
    """zstd makes the recordings again, byte for byte; DuckDB reads every table with the stated number of rows."""
    import duckdb

    assert ZSTD, "zstd is needed"
    with zipfile.ZipFile(packed) as archive:
        assert archive.testzip() is None
        archive.extractall(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    expected = {hashlib.sha256(path.read_bytes()).hexdigest(): _content(path) for path in kind.paths}
    assert {one["sha256"] for one in manifest["inputs"]} == set(expected), recording
    for one in manifest["inputs"]:
        done = subprocess.run([ZSTD, "-dc", tmp_path / one["member"]], capture_output=True, check=True)
        assert done.stdout == expected[one["sha256"]]
    for row in manifest["tables"]:
        file = tmp_path / row["member"]
        assert hashlib.sha256(file.read_bytes()).hexdigest() == row["sha256"]
        [(num_rows,)] = duckdb.sql(f"SELECT count(*) FROM (SELECT * FROM '{file}')").fetchall()
        assert num_rows == row["rows"] > 0
