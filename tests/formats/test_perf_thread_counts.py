"""Counts of threads that ended (`perf record -s`): table `thread_counts`, and `perf report -T`."""

from __future__ import annotations

import re
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import perf_crafting as crafting
import perfuse as pf
from needs import need
from perf_crafting import Attribute, PerfFile, Record

FIELDS = crafting.IP | crafting.TID | crafting.TIME | crafting.ID
READ = 8
ENABLED, RUNNING, ID, GROUP, LOST = 1, 2, 4, 8, 16
EVENT_DESC = 12

Row = tuple[str | None, int, int, int | None, int | None, int | None, int | None]


def _file(path: Path, read_format: int, bodies: list[tuple[int, tuple[int, ...]]], fields: int = FIELDS) -> Path:
    """Threads of process 7 and the words of their READ records; events `a` and `b` have ids 11 and 12."""
    events = [Attribute.of((1, config), fields, ids=[11 + config], read_format=read_format) for config in (0, 1)]
    records = [crafting.comm(events[0], 7, 7, "work")]
    for number, (tid, words) in enumerate(bodies):
        body = struct.pack(f"<II{len(words)}Q", 7, tid, *words) + events[0].sample_id(7, tid, 1000 + number)
        records.append(Record(READ, 0, body))
    names = crafting.event_desc(zip(events, ("a", "b"), strict=True))
    return PerfFile(events, records, {EVENT_DESC: names}).write(path)


def _rows(path: Path) -> list[Row]:
    with pf.fuse(path) as profile:
        return profile.sql(
            "SELECT event, tid, count, enabled_ns, running_ns, num_lost, ts_ns FROM thread_counts "
            "JOIN threads USING (thread_id) ORDER BY record_offset, event"
        ).fetchall()


@pytest.mark.parametrize(
    ("read_format", "words", "expected"),
    [
        (ENABLED | RUNNING | ID, (5, 900, 300, 12), [("b", 5, 900, 300, None)]),
        (ENABLED | RUNNING | ID | LOST, (5, 900, 300, 12, 2), [("b", 5, 900, 300, 2)]),
        (0, (5,), [("a", 5, None, None, None)]),
        (RUNNING, (5, 300), [("a", 5, None, 300, None)]),
        (ID, (5, 99), [(None, 5, None, None, None)]),
        (GROUP | ENABLED | ID, (2, 900, 5, 11, 6, 12), [("a", 5, 900, None, None), ("b", 6, 900, None, None)]),
        (GROUP | RUNNING | ID, (1, 300, 6, 12), [("b", 6, None, 300, None)]),
        (GROUP | ID | LOST, (2, 5, 11, 1, 6, 12, 2), [("a", 5, None, None, 1), ("b", 6, None, None, 2)]),
        (GROUP, (2, 5, 6), [("a", 5, None, None, None), (None, 6, None, None, None)]),
    ],
)  # fmt: skip
def test_each_layout_of_counts(
    tmp_path: Path, read_format: int, words: tuple[int, ...], expected: list[tuple[object, ...]]
) -> None:
    path = _file(tmp_path / "perf.data", read_format, [(8, words), (9, words)])
    assert _rows(path) == [(name, tid, *rest, 993 + tid - 1) for tid in (8, 9) for name, *rest in expected]


def test_counts_without_times(tmp_path: Path) -> None:
    path = _file(tmp_path / "perf.data", ID, [(8, (5, 11))], crafting.IP | crafting.TID | crafting.ID)
    assert _rows(path) == [("a", 8, 5, None, None, None, None)]


def test_a_record_that_ends_inside_its_counts_has_none(tmp_path: Path) -> None:
    path = _file(tmp_path / "perf.data", GROUP | ID, [(8, (2**40, 5, 11))], 0)
    file = PerfFile.read(path)
    file.attributes = [replace(one, ids=[]) for one in file.attributes]
    assert _rows(file.write(path)) == []


@pytest.mark.parametrize(
    ("read_format", "words"),
    [(ENABLED | RUNNING | ID, (5, 900)), (ENABLED | RUNNING, (5,)), (GROUP | ID, (2, 5, 11)), (0, ())],
)
def test_counts_that_are_cut_are_reported(tmp_path: Path, read_format: int, words: tuple[int, ...]) -> None:
    """The sample id that follows is none of them."""
    path = _file(tmp_path / "perf.data", read_format, [(8, words)])
    assert _rows(path) == []
    assert [one.code for one in pf.check(path) if "PERF_RECORD_READ" in one.message] == ["PD010"]


def test_counts_are_fields_of_their_record(tmp_path: Path) -> None:
    path = _file(tmp_path / "perf.data", ENABLED | RUNNING | ID | LOST, [(8, (5, 900, 300, 12, 2))])
    [record] = [one for one in pf.open(path).records() if one.name == "PERF_RECORD_READ"]
    read = {name: value for name, value in record.fields.items() if name not in ("misc", "sample_id")}
    values = [{"value": 5, "id": 12, "lost": 2}]
    assert read == {"pid": 7, "tid": 8, "time_enabled": 900, "time_running": 300, "values": values}


def test_sums_are_those_of_perf_report(tmp_path: Path) -> None:
    need("perf", "gcc")
    source = tmp_path / "threads.c"
    source.write_text(
        "#include <pthread.h>\n#include <unistd.h>\n#include <sys/wait.h>\nvolatile long sum;\n"
        "static void *work(void *end) { for (long i = 0; i < (long)end; i++) sum += i; return 0; }\n"
        "int main(void) { pthread_t one, two; pthread_create(&one, 0, work, (void *)3000000L);\n"
        "pthread_create(&two, 0, work, (void *)6000000L); pthread_join(one, 0); pthread_join(two, 0);\n"
        "if (!fork()) _exit(0); wait(0); return 0; }\n"
    )
    subprocess.run(["gcc", "-O1", "-pthread", "-o", tmp_path / "threads", source], check=True)
    path = tmp_path / "perf.data"
    record = ["perf", "record", "-s", "-e", "cpu-clock,page-faults", "-o", path, tmp_path / "threads"]
    subprocess.run(record, check=True, capture_output=True)
    report = subprocess.run(["perf", "report", "-T", "--stdio", "-i", path], check=True, capture_output=True, text=True)
    table = re.findall(r"^ +(\d+) +(\d+) +(\d+) +(\d+)$", report.stdout, re.MULTILINE)
    assert len(table) >= 3
    with pf.fuse(path) as profile:
        rows = profile.sql(
            "SELECT pid, tid, sum(count) FILTER (event = 'cpu-clock')::BIGINT, "
            "sum(count) FILTER (event = 'page-faults')::BIGINT FROM thread_counts "
            "JOIN threads USING (thread_id) JOIN processes USING (process_id) GROUP BY ALL"
        ).fetchall()
    assert sorted(rows) == sorted(tuple(map(int, row)) for row in table)
