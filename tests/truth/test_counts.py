"""Counts of records and rows are those of walks over the files' structures, and of the formats' own tools.

The walks are in `outside.py`. Of Mono logs the corpus has the counts of another decoder, of SFrame the text of readelf.
"""

import json
from pathlib import Path

import pytest

from perfuse.profile import Profile

from .command import command_line, json_of
from .conftest import fused
from .kinds import KINDS, Kind
from .outside import num_records, num_rows, outside


@pytest.mark.truth(
    recording=["perf_[!mx]*", "perf_xray", "xray_*", "mono_*", "jitdump", "collapsed", "sframe_*"],
    path="info",
    source="records by kind: a walk over the structures of the file, another decoder of Mono logs, readelf --sframe",
)
def test_info_counts_records(kind: Kind) -> None:
    found = json_of("info", *kind.paths)["recordings"]
    assert [one["format"] for one in found] == list(kind.formats)
    for file, recording in enumerate(found):
        assert named(recording["records"]) == num_records(kind.name, file)


@pytest.mark.truth(
    recording=["perf_data", "xray_*", "mono_*", "jitdump", "collapsed", "sframe_*"],
    path="records",
    source="records by kind: a walk over the structures of the file, another decoder of Mono logs, readelf --sframe",
)
def test_records_lists_each(kind: Kind) -> None:
    counts: dict[str, int] = {}
    offsets = []
    for line in command_line("records", kind.paths[0], "--json", "--limit", "0").splitlines():
        record = json.loads(line)
        counts[record["name"]] = counts.get(record["name"], 0) + 1
        offsets.append(record["offset"])
    assert named(counts) == num_records(kind.name)
    if kind.formats[0] not in ("collapsed", "sframe"):  # their records share bytes, or are rows of text
        assert len(set(offsets)) == len(offsets)


@pytest.mark.truth(
    recording=["perf_data", "xray_*", "mono_*", "jitdump", "collapsed"],
    path="watch",
    source="records by kind: a walk over the structures of the file, another decoder of Mono logs",
)
def test_watch_counts_records(kind: Kind) -> None:
    updates = [json.loads(line) for line in command_line("watch", "--for", "0.1", "--json", kind.paths[0]).splitlines()]
    assert named(updates[-1]["records"]) == num_records(kind.name)


def named(counts: dict[str, int]) -> dict[str, int]:
    """Counts without kinds that do not occur."""
    return {name: count for name, count in counts.items() if count}


@pytest.mark.truth(
    recording=["perf_*", "xray_*", "mono_*", "jitdump", "collapsed", "sframe_*"],
    path=["query", "api:Profile.sql", "api:Profile.tables"],
    source="rows that records make one by one: a walk over the file, another decoder of Mono logs, readelf --sframe",
)
def test_rows_are_those_of_the_records(kind: Kind, profile: Profile, path: str) -> None:
    expected = num_rows(kind.name)
    counts = ", ".join(f"(SELECT count(*) FROM {table}) AS {table}" for table in expected)
    if path == "query":
        (found,) = json_of("query", *kind.paths, f"SELECT {counts}")
    elif path == "api:Profile.sql":
        (row,) = profile.sql(f"SELECT {counts}").fetchall()
        found = dict(zip(expected, row, strict=True))
    else:
        found = {name: profile.tables[name].num_rows for name in expected}
    assert found == expected


@pytest.mark.truth(
    recording=["perf_*", "xray_*", "mono_*", "jitdump", "collapsed", "sframe_*"],
    path="tables",
    source="rows that records make one by one: a walk over the file, another decoder of Mono logs, readelf --sframe",
)
def test_tables_lists_every_row(kind: Kind) -> None:
    for name, num in num_rows(kind.name).items():
        rows = json_of("tables", *kind.paths, name, "--limit", "0")
        assert len(rows) == num, name


@pytest.mark.truth(
    recording=["perf_*", "collapsed", "mono_samples"],
    path="api:Profile.count_rows",
    source="number of samples: a walk over the perf.data; the lines by hand; another decoder of Mono logs",
)
def test_count_rows_of_samples(kind: Kind, profile: Profile) -> None:
    table = "callchains" if kind.formats[0] == "perf_data" else "samples"
    (weight, *_) = outside(kind.name).weights.values()
    expected = len(kind.paths[0].read_text().splitlines()) if kind.name == "collapsed" else weight.num_samples
    assert profile.count_rows(table) == expected


@pytest.mark.parametrize("name", KINDS)
def test_examples_have_what_their_kind_is_about(name: str) -> None:
    """An example without rows of a table would make tests of its cells compare nothing."""
    kind, empty = KINDS[name], []
    if all(path.exists() for path in kind.paths):
        profile = fused(name)
        for table in kind.contents - {"stack_copies"}:
            if not profile.tables[table].num_rows:
                empty.append(table)
    assert not empty


def test_every_example_exists_where_the_corpus_is(jitdump_corpus: Path, kind_paths: list[Path]) -> None:
    assert jitdump_corpus.is_dir()
    assert [path for path in kind_paths if not path.exists()] == []
