"""Tables of a saved profile in another reader of Parquet: types and values of each column."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import duckdb
import pytest
from fake_profile import DUCKDB_TYPES

import perfuse as pf
from perfuse.table import specification
from truth.kinds import KINDS


@pytest.mark.parametrize("name", ["perf_xray", "mono_calls", "perf_stacks"])
def test_types_and_values(name: str, tmp_path: Path) -> None:
    kind = KINDS[name]
    if not all(path.exists() for path in kind.paths):
        pytest.skip("no corpus")
    path = tmp_path / "saved.perfuse"
    with pf.fuse(*kind.paths) as profile:
        manifest = profile.save(path).manifest
        with ZipFile(path) as archive:
            archive.extractall(tmp_path)
        for row in manifest.tables:
            file = str(tmp_path / str(row["member"]))
            rows = duckdb.read_parquet(file)
            types = dict(zip(rows.columns, map(str, rows.types), strict=True))
            assert types == {name: DUCKDB_TYPES[kind] for name, kind, *_ in specification(str(row["name"]))["columns"]}
            if row["complete"] and row["name"] != "diagnostics":
                columns = profile.tables[str(row["name"])].to_arrow()
                for column in rows.columns:
                    expected = columns[column].to_pylist()
                    assert [one for (one,) in rows.select(f'"{column}"').fetchall()] == expected, (file, column)
