"""What `query` writes: every form and compression, read by programs that are not ours, with all rows."""

import csv
import gzip
import io
import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest
from command_line import Perfuse

DUMP = "jit-2345.dump"
QUERY = "SELECT start_address, size_bytes, size_bytes / 3 AS third FROM code_objects ORDER BY start_address"
MANY = "SELECT range AS n, range / 7 AS x FROM range(1000)"
"""More rows than a table on the screen has."""


def code_loads(path: str) -> list[tuple[int, int]]:
    """Address and size of each JIT_CODE_LOAD, by a walk over the records (jitdump specification, section Records)."""
    data = Path(path).read_bytes()
    at, found = struct.unpack_from("<I", data, 8)[0], []
    while at < len(data):
        record, size = struct.unpack_from("<II", data, at)
        if record == 0:
            found.append(struct.unpack_from("<QQ", data, at + 16 + 16))
        at += size
    return sorted(found)


def polars() -> Any:
    """A reader of Arrow, CSV, JSON and Parquet that shares no code with DuckDB or arrow-rs."""
    return pytest.importorskip("polars")


def read(path: Path) -> list[tuple[Any, ...]]:
    """The rows of a file, read by a program that did not write it."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        data, path = gzip.decompress(data), path.with_suffix("")
    elif path.suffix == ".zst":
        data, path = subprocess.run(["zstd", "-dc", path], check=True, capture_output=True).stdout, path.with_suffix("")
    match path.suffix:
        case ".csv" | ".tsv":
            _, *rows = csv.reader(io.StringIO(data.decode()), delimiter="," if path.suffix == ".csv" else "\t")
            return [(int(first), int(second), float(third)) for first, second, third in rows]
        case ".json":
            return [_numbers(row) for row in json.loads(data)]
        case ".ndjson" | ".jsonl":
            return [_numbers(json.loads(line)) for line in data.splitlines()]
        case ".parquet":
            return list(polars().read_parquet(data).rows())
        case ".arrows":
            return list(polars().read_ipc_stream(data).rows())
        case _:
            return list(polars().read_ipc(data).rows())


def _numbers(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(int(value, 16) if isinstance(value, str) else value for value in row.values())


@pytest.mark.truth(
    recording="jitdump", path="query", source="a struct walk over the dump; polars, csv, json, gzip, zstd"
)
@pytest.mark.parametrize("compressed", ["", ".gz", ".zst"])
@pytest.mark.parametrize(
    "ending", [".csv", ".tsv", ".json", ".ndjson", ".jsonl", ".parquet", ".arrow", ".feather", ".ipc", ".arrows"]
)
def test_each_ending_is_what_it_says(perfuse: Perfuse, ending: str, compressed: str) -> None:
    name = f"out{ending}{compressed}"
    done = perfuse("query", DUMP, QUERY, "-o", name)
    assert (done.code, done.out, done.err) == (0, "", "")
    assert read(Path(name)) == [(address, size, size / 3) for address, size in code_loads(DUMP)]


@pytest.mark.parametrize("form", ["csv", "tsv", "json", "ndjson", "parquet", "arrow", "arrow-stream"])
def test_standard_output_has_what_a_file_has(perfuse: Perfuse, recordings: Path, form: str) -> None:
    assert perfuse("query", DUMP, QUERY, "--format", form, "-o", "file").code == 0
    command = [sys.executable, "-m", "perfuse", "query", DUMP, QUERY, "--format", form]
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stdout == (recordings / "file").read_bytes()


@pytest.mark.parametrize("name", ["rows.xlsx", "rows", "rows.arow", "rows.json.bz2", "rows.gz"])
def test_an_unknown_ending_is_refused_with_the_known_ones(perfuse: Perfuse, name: str) -> None:
    done = perfuse("query", DUMP, QUERY, "-o", name)
    assert done.code == 2
    assert name in done.err
    for ending in (".csv", ".tsv", ".ndjson", ".parquet", ".arrow", ".feather", ".arrows", ".gz", ".zst", "--format"):
        assert ending in done.err
    assert not Path(name).exists()


def test_a_file_has_every_row_unless_there_is_a_limit(perfuse: Perfuse) -> None:
    for name in ("rows.txt", "rows.csv", "rows.json", "rows.ndjson"):
        assert perfuse("query", DUMP, MANY, "-o", name).err == ""
        text = Path(name).read_text(encoding="utf-8")
        assert len(text.splitlines()) == {"rows.json": 1002, "rows.ndjson": 1000}.get(name, 1001)
    done = perfuse("query", DUMP, MANY, "-o", "rows.txt", "--limit", "10")
    assert "990 more rows were left out" in done.err
    assert len(Path("rows.txt").read_text(encoding="utf-8").splitlines()) == 11
    assert perfuse("query", DUMP, MANY).out.splitlines()[-1] == "… 950 more rows (--limit 0 shows all)"


def test_a_file_of_a_query_that_fails_does_not_exist(perfuse: Perfuse) -> None:
    for name in ("rows.csv", "rows.json", "rows.arrow", "rows.parquet"):
        done = perfuse("query", DUMP, "SELECT CAST(name AS INTEGER) AS n FROM functions", "-o", name)
        assert done.code == 2
        assert "convert" in done.err
        assert not Path(name).exists()


@pytest.mark.truth(recording="jitdump", path="query", source="the numbers of the SQL, parsed by Python")
def test_numbers_have_the_digits_that_distinguish_them(perfuse: Perfuse) -> None:
    """The table has the shortest text that is read as the same double, or the same float."""
    values = [1 / 3, 0.1, 1234567.891, 2**53 + 2.0, 1e300, 5e-324, -0.0, 3.0]
    done = perfuse("query", DUMP, "SELECT unnest([" + ", ".join(f"{value!r}::DOUBLE" for value in values) + "]) AS x")
    printed = done.out.split()[1:]
    assert [float(text).hex() for text in printed] == [value.hex() for value in values]
    assert printed[:4] == ["0.3333333333333333", "0.1", "1234567.891", "9007199254740994.0"]
    singles = perfuse("query", DUMP, "SELECT 0.1::FLOAT AS a, (1 / 3)::FLOAT AS b, 16777216::FLOAT AS c").out.split()
    assert singles[3:] == ["0.1", "0.33333334", "16777216.0"]


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("FROM functionz", "did you mean functions"),
        ("FROM samplez", "samples"),
        ("SELECT name FROM functions JOIN code_objekts USING (function_id)", "did you mean code_objects"),
        ("FROM main.Funktions", "did you mean functions"),
        ("FROM zzzz", "known: sources, clocks"),
        ("SELECT nam FROM functions", "did you mean name"),
        ("SELECT f.nam FROM functions AS f", "did you mean name"),
        ("SELECT c.nam FROM functions f JOIN code_objects c USING (function_id)", "known: code_object_id"),
        ("SELECT functions.pth FROM functions", "did you mean path?"),
        ("SELECT tier FROM functions", "tier is a column of code_objects"),
    ],
)
def test_unknown_tables_and_columns_have_the_nearest_of_ours(perfuse: Perfuse, sql: str, hint: str) -> None:
    done = perfuse("query", DUMP, sql)
    assert done.code == 2
    assert hint in done.err
    for foreign in ("pg_tables", "duckdb_", "sqlite_"):
        assert foreign not in done.err


def test_duckdb_reads_the_compressed_files(perfuse: Perfuse) -> None:
    """DuckDB's own readers take `.csv.gz`, `.csv.zst` and `.json.gz` by their names."""
    for name, reader in (("a.csv.gz", "read_csv"), ("a.csv.zst", "read_csv"), ("a.ndjson.gz", "read_json")):
        assert perfuse("query", DUMP, MANY, "-o", name).code == 0
        assert duckdb.sql(f"SELECT count(*), sum(n) FROM {reader}('{name}')").fetchall() == [(1000, 499500)]


@pytest.mark.parametrize("form", ["csv", "json", "ndjson", "parquet"])
def test_columns_of_one_name_are_all_written(perfuse: Perfuse, form: str) -> None:
    sql = "SELECT f.function_id, f.name, m.name FROM functions f JOIN modules m USING (module_id) ORDER BY 1 LIMIT 3"
    names = "SELECT f.name AS a, m.name AS b FROM functions f JOIN modules m USING (module_id) ORDER BY f.function_id"
    expected = json.loads(perfuse("query", DUMP, f"{names} LIMIT 3", "--json").out)
    assert perfuse("query", DUMP, sql, "--format", form, "-o", "out").code == 0
    read_as = {"csv": "read_csv", "parquet": "read_parquet"}.get(form, "read_json")
    rows = duckdb.sql(f"SELECT name, name_1 FROM {read_as}('out') ORDER BY function_id").fetchall()
    assert rows == [(row["a"], row["b"]) for row in expected]


@pytest.mark.parametrize("sql", ["", " ", "\n", ";"])
def test_an_empty_query_is_an_error(perfuse: Perfuse, sql: str) -> None:
    done = perfuse("query", DUMP, sql)
    assert done.code == 2
    assert "it must be a SELECT, or FROM a table" in done.err


@pytest.mark.parametrize("more", [(), ("--allow-files",)])
@pytest.mark.parametrize("sql", ["SELECT 1; SELECT 2", "FROM functions; SELECT 2;", "SELECT 1; CREATE TABLE x (a INT)"])
def test_rows_of_an_earlier_statement_are_not_lost(perfuse: Perfuse, sql: str, more: tuple[str, ...]) -> None:
    done = perfuse("query", DUMP, sql, *more)
    assert (done.code, done.out) == (2, "")
    assert "one statement is expected, not 2" in done.err


@pytest.mark.parametrize("sql", ["SELECT 1;", "SELECT ';';", "CREATE TABLE x AS SELECT 1; FROM x", "SELECT 'é';;"])
@pytest.mark.parametrize("end", ["", "-- why; when", "/* why; */ ;", "\n-- é\n-- è\n"])
def test_one_statement_may_end_with_a_semicolon_or_follow_others(perfuse: Perfuse, sql: str, end: str) -> None:
    assert perfuse("query", DUMP, f"{sql} {end}").code == 0


@pytest.mark.parametrize("sql", ["show tables", "SHOW TABLES;", "show all tables"])
def test_show_tables_lists_the_tables(perfuse: Perfuse, sql: str) -> None:
    listed = [row["name"] for row in json.loads(perfuse("query", DUMP, sql, "--json").out)]
    assert listed == [row["name"] for row in json.loads(perfuse("tables", DUMP, "--json").out)["tables"]]
