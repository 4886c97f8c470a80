"""SQL over more calls than memory is for: tables are scanned as streams, and a limit is obeyed or refused."""

import gc
import json
import os
import signal
import struct
import subprocess
import sys
import time
import weakref
from pathlib import Path
from typing import Any

import pytest
from command_line import Perfuse

import perfuse as pf
from perfuse.errors import QueryError, UsageError
from perfuse.memory import memory_bytes

CALLS_PER_BUFFER = 100_000
FUNCTIONS = 50
TICKS = 7
"""Ticks from a call's begin to its end, and from there to the next call."""

RUN = """
import json, re, sys
import perfuse as pf
relation = pf.open(sys.argv[1]).profile().sql(sys.argv[2], memory=sys.argv[3] or None)
rows = relation.fetchall()
peak = int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) * 1024
print(json.dumps([rows, peak]))
"""


def write_log(path: Path, num_buffers: int) -> Path:
    """An XRay log with a call of each function in turn, of 7 ticks (nanoseconds) each."""
    pairs = b"".join(
        struct.pack("<IIII", function << 4, TICKS, function << 4 | 2, TICKS) for function in range(1, FUNCTIONS + 1)
    )
    body = pairs * (CALLS_PER_BUFFER // FUNCTIONS)
    with path.open("wb") as out:
        out.write(struct.pack("<HHIQ16x", 5, 1, 3, 1_000_000_000))
        for number in range(num_buffers):
            preamble = struct.pack("<Bi11x", 1, 100) + struct.pack("<Bqi3x", 9, 1_000 + number, 0)
            preamble += struct.pack("<Bi11x", 19, 77) + struct.pack("<BHQ5x", 5, 1, 10**9 * (1_000 + number))
            out.write(struct.pack("<BQ7x", 15, len(preamble) + len(body)) + preamble + body)
    return path


def query(path: Path, sql: str, memory: str = "") -> tuple[list[list[Any]], int]:
    """The rows of a query in a process of its own, and the largest memory of that process in bytes."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, path, sql, memory], capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    rows, peak = json.loads(done.stdout)
    return rows, peak


@pytest.fixture(scope="module")
def long_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("query") / "xray-log.long.1", 30)


@pytest.mark.truth(recording="xray_fdr", path="api:Profile.sql", source="calls written by the test")
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
def test_a_group_by_over_calls_does_not_hold_them(long_log: Path, tmp_path: Path) -> None:
    """Three million calls are 250 MB as a table; a query over all takes little more memory than over a thirtieth."""
    sql = "SELECT function_id, count(*), sum(duration_ns)::BIGINT FROM slices GROUP BY ALL ORDER BY 1"
    few, least = query(write_log(tmp_path / "xray-log.short.1", 1), sql)
    many, peak = query(long_log, sql)
    per_function = CALLS_PER_BUFFER // FUNCTIONS
    assert [row[1:] for row in few] == [[per_function, per_function * TICKS]] * FUNCTIONS
    assert [row[1:] for row in many] == [[30 * per_function, 30 * per_function * TICKS]] * FUNCTIONS
    assert peak - least < 150e6, f"{peak / 1e6:.0f} MB, {least / 1e6:.0f} MB for a thirtieth of the calls"


@pytest.mark.truth(recording="xray_fdr", path="api:Profile.sql", source="calls written by the test")
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
def test_a_query_stays_within_its_memory(long_log: Path) -> None:
    """A group for each of three million calls does not fit: DuckDB writes groups to temporary files."""
    sql = "SELECT count(*), sum(ns)::BIGINT FROM (SELECT slice_id, sum(duration_ns) ns, any_value(record_offset) "
    sql += "FROM slices GROUP BY slice_id)"
    rows, peak = query(long_log, sql, "400MB")
    assert rows == [[30 * CALLS_PER_BUFFER, 30 * CALLS_PER_BUFFER * TICKS]]
    assert peak < 400e6


@pytest.mark.truth(recording="xray_fdr", path="query", source="calls written by the test")
def test_what_cannot_be_done_within_the_memory_is_an_error(long_log: Path, perfuse: Perfuse) -> None:
    """Neither an abort nor a part of the rows: a list of all values cannot be written to temporary files."""
    done = perfuse("query", str(long_log), "SELECT length(list(start_ns)) + length(list(record_offset)) FROM slices")
    assert (done.code, done.out.split()[-1]) == (0, str(2 * 30 * CALLS_PER_BUFFER))
    done = perfuse("query", str(long_log), "FROM slices", "--memory", "1MB")
    assert (done.code, done.out) == (2, "")
    assert "a memory limit of 1,000,000 bytes is too small" in done.err
    assert "this query needs at least" in done.err
    done = perfuse("query", str(long_log), "FROM slices", "--memory", "much")
    assert done.code == 2
    assert "write it as 800MB" in done.err


def test_a_query_that_needs_more_memory_says_so(long_log: Path) -> None:
    profile = pf.open(long_log).profile()
    sql = "SELECT length(string_agg(record_offset::VARCHAR, ' ' ORDER BY hash(slice_id))) FROM slices"
    relation = profile.sql(sql, allow_files=True)
    profile.sql("SET memory_limit = '20MB'; SET temp_directory = ''", allow_files=True)
    from perfuse.query import query_errors

    with pytest.raises(QueryError) as raised, query_errors():
        relation.fetchall()
    assert raised.value.hint is not None
    assert "--memory" in raised.value.hint


def test_temporary_files_are_removed(long_log: Path, tmp_path: Path) -> None:
    """Also where the command ends without taking Python apart, after an error, and where it is interrupted."""
    sql = "SELECT count(*) FROM (SELECT slice_id, sum(duration_ns), any_value(record_offset) FROM slices GROUP BY 1)"
    lists = "SELECT length(list(start_ns)) + length(list(record_offset)) + length(list(slice_id)) FROM slices"
    command = [sys.executable, "-m", "perfuse", "query", str(long_log), "--memory", "380MB"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([*command, sql], capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stdout.split()[-1]) == (0, f"{30 * CALLS_PER_BUFFER}"), done.stderr
    assert list(tmp_path.iterdir()) == []
    done = subprocess.run([*command, lists], capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert "the query needs more memory than its limit" in done.stderr
    assert "--memory" in done.stderr
    assert list(tmp_path.iterdir()) == []
    with subprocess.Popen([*command, sql], env=environment, stderr=subprocess.PIPE) as process:
        while process.poll() is None and not any(tmp_path.iterdir()):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
    assert list(tmp_path.iterdir()) == []


def test_sizes_of_memory() -> None:
    assert memory_bytes("800MB") == 800_000_000
    assert memory_bytes("1.5GiB") == 3 << 29
    assert memory_bytes(" 4 g ") == 4_000_000_000
    assert memory_bytes(123) == 123
    for wrong in ("", "GB", "1XB", "-1GB"):
        with pytest.raises(UsageError, match="is not a size of memory"):
            memory_bytes(wrong)


def test_a_table_may_be_scanned_many_times(tmp_path: Path) -> None:
    log = write_log(tmp_path / "xray-log.scans.1", 1)
    profile = pf.open(log).profile()
    twice = (
        "SELECT count(*) FROM slices a JOIN slices b USING (slice_id) JOIN functions f ON f.function_id = a.function_id"
    )
    for _ in range(2):
        assert profile.sql(twice).fetchall() == [(CALLS_PER_BUFFER,)]
    assert profile.tables["slices"].num_rows == CALLS_PER_BUFFER
    assert profile.sql("SELECT count(*) FROM slices").fetchall() == [(CALLS_PER_BUFFER,)]


def test_a_profile_is_freed_after_a_query(tmp_path: Path) -> None:
    """The database scans tables without a reference to the profile that owns the database."""
    profile = pf.open(write_log(tmp_path / "xray-log.freed.1", 1)).profile()
    assert profile.sql("SELECT count(*) FROM slices, sources").fetchall() == [(CALLS_PER_BUFFER,)]
    watched = weakref.ref(profile)
    del profile
    gc.collect()
    assert watched() is None
