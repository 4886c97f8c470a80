"""Of a large saved table, a range of times is read without the rest: times and sums are known by construction."""

from __future__ import annotations

import json
import random
import struct
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from questions import answer_to, exported, graph, report

import perf_crafting as crafting
import perfuse as pf
from packs_of_tests import bytes_in_memory, damaged_copy, rewritten
from perf_crafting import Attribute, PerfFile, Record
from perfuse.exporters import TARGETS
from perfuse.viewer.routes import Routes
from perfuse.viewer.session import Session
from truth.kinds import KINDS

NUM_SAMPLES = 400_000
FIRST_NS, STEP_NS = 1_000_000_000, 10_000
GROUP_ROWS = 122_880
THIRD_GROUP = 2 * GROUP_ROWS
"""First row of the third of four row groups, by the documentation."""


PERIODS = [one | 1 for one in struct.unpack(f"<{NUM_SAMPLES}I", random.Random(7).randbytes(4 * NUM_SAMPLES))]


def _time(sample: int) -> int:
    return FIRST_NS + STEP_NS * sample


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Samples at regular times, of random periods, which need many bytes."""
    directory = tmp_path_factory.mktemp("ranges")
    body = struct.Struct("<QIIQQ")
    records = [
        Record(crafting.SAMPLE, 2, body.pack(0x4000 + number % 8, 7, 7 + number % 2, _time(number), PERIODS[number]))
        for number in range(NUM_SAMPLES)
    ]
    attribute = Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD)
    (directory / "perf.data").write_bytes(PerfFile([attribute], records).encoded())
    with pf.fuse(directory / "perf.data") as profile:
        profile.save(directory / "large.perfuse")
    return directory / "large.perfuse"


@pytest.fixture
def profile(saved: Path) -> Iterator[pf.Profile]:
    with pf.fuse(saved) as opened:
        yield opened


def _expected(first: int, end: int) -> list[tuple[int, int]]:
    """Number and sum of the periods of samples."""
    return [(end - first, sum(PERIODS[first:end]))]


QUERY = "SELECT count(*), sum(weight) FROM samples AS s"


@pytest.mark.parametrize(
    "condition",
    [
        "ts_ns >= {first} AND ts_ns < {end}",
        "s.ts_ns BETWEEN {first} AND {end} - 1",
        "ts_ns BETWEEN {first} AND {last}",
        "{first} <= s.TS_NS AND {last} >= ts_ns",
        "ts_ns > {first} - 1 AND ts_ns < {end} AND (thread_id >= 0 OR ts_ns = 5)",
        "ts_ns >= {first}.0 AND ts_ns <= {last}e0",
        "ts_ns - 1 >= {first} - 1 AND ts_ns < {end}",
        "NOT (ts_ns < {first} OR ts_ns >= {end})",
    ],
)
def test_conditions(profile: pf.Profile, condition: str) -> None:
    first, end = THIRD_GROUP + 100, THIRD_GROUP + 300
    text = condition.format(first=_time(first), end=_time(end), last=_time(end - 1))
    assert profile.sql(f"{QUERY} WHERE {text}").fetchall() == _expected(first, end)


def test_parameters(profile: pf.Profile) -> None:
    first, end = 5, THIRD_GROUP
    named = profile.sql(f"{QUERY} WHERE ts_ns >= $a AND ts_ns < $b", {"a": _time(first), "b": _time(end)})
    assert named.fetchall() == _expected(first, end)
    in_order = profile.sql(f"{QUERY} WHERE ts_ns >= ? AND ts_ns < ?", [_time(first), _time(end)])
    assert in_order.fetchall() == _expected(first, end)


def test_queries_that_need_all_rows(profile: pf.Profile) -> None:
    """A condition that does not leave rows out, or not everywhere where the table is named."""
    last = _time(NUM_SAMPLES - 1)
    all_rows, one = (NUM_SAMPLES,), (1,)
    for query, expected in (
        (f"SELECT count(*) FROM samples WHERE ts_ns >= {last} OR ts_ns < {last}", all_rows),
        (f"SELECT count(*) FILTER (ts_ns >= {last}) FROM samples", one),
        (f"SELECT (SELECT count(*) FROM samples) FROM samples WHERE ts_ns >= {last}", all_rows),
        (
            f"SELECT count(*) FROM samples AS a LEFT JOIN (FROM samples WHERE ts_ns >= {last}) AS b USING (ts_ns)",
            all_rows,
        ),
        (f"WITH samples AS (SELECT 5 AS ts_ns) SELECT count(*) FROM samples WHERE ts_ns >= {last}", (0,)),
        (f"SELECT ts_ns - {last} AS ts_ns FROM samples WHERE ts_ns >= {last}", (0,)),
        (f"SELECT count(*) FROM threads ANTI JOIN samples ON ts_ns >= {last} AND false", (2,)),
    ):
        rows = profile.sql(query).fetchall()
        assert rows == [expected], query
    asof = f"""SELECT s.ts_ns FROM (SELECT {_time(7)} + 1 AS at) AS t ASOF LEFT JOIN samples AS s ON t.at >= s.ts_ns
        WHERE s.ts_ns <= {_time(3)} OR s.ts_ns IS NULL"""
    assert profile.sql(asof).fetchall() == []


def test_between(profile: pf.Profile) -> None:
    """Seconds are from the first sample; 100,000 samples a second."""
    selected = profile.between(1.0, 1.5)
    assert selected.sql("SELECT count(*), sum(weight) FROM samples").fetchall() == _expected(100_000, 150_000)
    assert selected.span_ns == (_time(100_000), _time(149_999))
    assert profile.span_ns == (_time(0), _time(NUM_SAMPLES - 1))
    with pytest.raises(pf.UsageError, match="nothing was recorded after 5 s"):
        profile.between(5.0, 6.0)


def test_names_of_tables_and_errors_stay(profile: pf.Profile) -> None:
    at = _time(THIRD_GROUP)
    assert profile.sql(f"SELECT samples.ts_ns FROM samples WHERE ts_ns = {at}").fetchall() == [(at,)]
    assert profile.sql(f"SELECT samples FROM samples WHERE ts_ns = {at}").fetchall()[0][0]["ts_ns"] == at
    with pytest.raises(pf.QueryError, match="nothing"):
        profile.sql(f"SELECT nothing FROM samples WHERE ts_ns = {at}")
    relation = profile.sql(f"SELECT ts_ns FROM samples WHERE ts_ns < {_time(10)}")
    assert relation.aggregate("count(*)").fetchall() == [(10,)]


def _slow_copy(saved: Path, folder: Path) -> Path:
    """A copy of which small parts are mapped by themselves: what is written at once is mapped at once."""
    path = folder / "copy.perfuse"
    with saved.open("rb") as source, path.open("wb", buffering=0) as copy:
        while part := source.read(1 << 14):
            copy.write(part)
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/self/smaps")
@pytest.mark.parametrize("how", ["sql", "between"])
def test_bytes_that_are_read(saved: Path, tmp_path: Path, how: str) -> None:
    """A tenth of a second of four: a row group of four, and the rest of the file, copies above all, is not touched."""
    path = _slow_copy(saved, tmp_path)
    with ZipFile(path) as archive:
        size = archive.getinfo("tables/samples.parquet").file_size
    with pf.fuse(path) as profile:
        if how == "sql":
            found = profile.sql(f"{QUERY} WHERE ts_ns >= {_time(250_000)} AND ts_ns < {_time(260_000)}")
        else:
            found = profile.between(2.5, 2.6).sql(QUERY)
        assert found.fetchall() == _expected(250_000, 260_000)
        touched = bytes_in_memory(path)
    assert 0 < touched < size * 0.6 < path.stat().st_size / 4
    with pf.fuse(path) as profile:
        assert profile.sql(QUERY).fetchall() == _expected(0, NUM_SAMPLES)
        assert bytes_in_memory(path) > size


def test_damage_is_found_where_it_is_read(saved: Path, tmp_path: Path) -> None:
    """A changed byte in the middle of the table, in the second or third row group: other ranges are right."""
    damaged = damaged_copy(saved, tmp_path / "damaged.perfuse", "tables/samples")
    with pf.fuse(damaged) as profile:
        assert profile.sql(f"{QUERY} WHERE ts_ns < {_time(1000)}").fetchall() == _expected(0, 1000)
        last = f"{QUERY} WHERE ts_ns >= {_time(3 * GROUP_ROWS)}"
        assert profile.sql(last).fetchall() == _expected(3 * GROUP_ROWS, NUM_SAMPLES)
        middle = f"{QUERY} WHERE ts_ns BETWEEN {_time(GROUP_ROWS)} AND {_time(3 * GROUP_ROWS - 1)}"
        with pytest.raises(Exception, match="checksum"):
            profile.sql(middle).fetchall()
        with pytest.raises(pf.UnreadableInput, match="table samples: its checksum is wrong"):
            profile.tables["samples"].to_arrow()
    with pf.open(damaged) as file:
        assert [one.code for one in file.check()] == ["SP001"]


def test_damage_of_the_footer_is_found(saved: Path, tmp_path: Path) -> None:
    """Any byte of the footer: statistics and checksums that it states are wrong, whatever is asked."""
    data = bytearray(saved.read_bytes())
    with ZipFile(saved) as archive:
        info = archive.getinfo("tables/samples.parquet")
    end = info.header_offset + 30 + len(info.filename) + info.file_size
    length = int.from_bytes(data[end - 8 : end - 4], "little")
    out = tmp_path / "damaged.perfuse"
    for at in range(end - 8 - length, end, 97):
        data[at] ^= 0x10
        out.write_bytes(data)
        data[at] ^= 0x10
        with pf.fuse(out) as profile, pytest.raises(Exception, match="table samples"):
            profile.sql(f"{QUERY} WHERE ts_ns < {_time(1000)}").fetchall()


def test_tables_of_other_programs(saved: Path, tmp_path: Path) -> None:
    """Without checksums of row groups, a table is read as a whole: what DuckDB wrote of integers."""
    import duckdb

    with ZipFile(saved) as archive:
        (tmp_path / "stacks.parquet").write_bytes(archive.read("tables/stacks.parquet"))
    again = tmp_path / "again.parquet"
    duckdb.sql(f"COPY (FROM '{tmp_path}/stacks.parquet') TO '{again}' (COMPRESSION zstd)")
    out = tmp_path / "changed.perfuse"
    out.write_bytes(rewritten(saved.read_bytes(), {"tables/stacks.parquet": again.read_bytes()}))
    with pf.fuse(out) as profile, pf.fuse(saved) as expected:
        assert profile.tables["stacks"].to_arrow() == expected.tables["stacks"].to_arrow()


def _reported(part: pf.Profile, options: dict[str, object], _out: Path) -> object:
    return report(part, dict(options))


def _exported(part: pf.Profile, target: str, out: Path) -> object:
    part.export(out, to=target)
    return out.read_bytes()


def _viewed(part: pf.Profile, paths: tuple[str, ...], _out: Path) -> object:
    session = Session(lambda _progress: part, list(paths))
    session.open_now()
    answers = [Routes(session).answer("GET", f"/api/{one}", "", b"").body for one in paths]
    return [json.loads(one) if one.startswith(b"{") else one for one in answers]


def _compared(part: pf.Profile, by: str, _out: Path) -> object:
    return [graph(part, by), part.recordings[0].machine]


ASKED: dict[str, tuple[Callable[[pf.Profile, Any, Path], object], Any]] = {
    **{
        f"report {' '.join(options)}": (_reported, options)
        for options in ({}, {"--tree": True}, {"--inverted": True}, {"--stacks": True}, {"--by": "thread"})
    },
    **{
        f"export {name}": (_exported, name)
        for name in ("chrome", "collapsed", "cpuprofile", "firefox", "html", "otlp", "perfetto", "perf-script", "pprof")
    },
    **{f"export {name}": (_exported, name) for name in ("speedscope", "svg", "dot")},
    "callees": (_reported, {"--callees": "[unknown]"}),
    "callers": (_reported, {"--callers": "[unknown]"}),
    "diff by function": (_compared, "function"),
    "diff by module": (_compared, "module"),
    "view": (_viewed, ("overview", "report", "tree", "functions", "timeline", "symbols")),
}
"""What is asked of a time range, with its argument."""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/self/smaps")
@pytest.mark.parametrize("name", ASKED)
def test_bytes_that_answers_about_a_range_read(saved: Path, tmp_path: Path, name: str) -> None:
    """A tenth of a second of four: a row group of four and small tables; the copy, most of the file, is not touched."""
    ask, argument = ASKED[name]
    path = _slow_copy(saved, tmp_path)
    with ZipFile(path) as archive:
        table, copy = (archive.getinfo(one).file_size for one in ("tables/samples.parquet", "inputs/0/perf_data.zst"))
    with pf.fuse(path) as profile:
        found = ask(profile.between(2.5, 2.6), argument, tmp_path / "out")
        assert 0 < bytes_in_memory(path) < table * 0.6 < copy / 3
    with pf.fuse(saved.with_name("perf.data")) as profile:
        assert found == ask(profile.between(2.5, 2.6), argument, tmp_path / "out")


MOST_TARGETS = 8
"""Targets that a range of each of these kinds is exported to."""
KINDS_WITH_TIMES = ("perf_node", "perf_erlang", "perf_stacks", "perf_xray", "xray_fdr", "mono_samples", "mono_calls")


@pytest.mark.parametrize("name", KINDS_WITH_TIMES)
def test_answers_about_ranges_are_the_same(name: str, tmp_path: Path, choice: random.Random) -> None:
    """Ranges of recordings and of their saved profile: reports and exports, byte for byte or the same error."""
    kind = KINDS[name]
    if not all(path.exists() for path in kind.paths):
        pytest.skip("no corpus")
    path = tmp_path / "saved.perfuse"
    with pf.fuse(*kind.paths, **kind.fuse_options) as profile:
        profile.save(path)
        assert profile.span_ns is not None
        seconds = (profile.span_ns[1] - profile.span_ns[0]) / 1e9
        with pf.fuse(path) as saved:
            parts = [one.between(seconds / 3, seconds / 2) for one in (profile, saved)]
            asked: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
                *((f"report {one}", report, (one,)) for one in ({}, {"--tree": True}, {"--stacks": True})),
                *(
                    (one.name, exported, (one, one.outputs[0], tmp_path / "out"))
                    for one in choice.sample(TARGETS, MOST_TARGETS)
                ),
            ]
            different = []
            for what, ask, arguments in asked:
                expected, found = (answer_to(partial(ask, part, *arguments)) for part in parts)
                is_refused = "`perfuse pack --code all` saves it" in str(found)
                different += [what] if found != expected and not is_refused else []
    assert different == []
