"""Recordings of real programs: their sums, compared with what other programs read of the same files."""

import csv
import struct
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from fleet.generated import Written
from perfuse.errors import UnreadableInput
from perfuse.fleet import Fleet
from perfuse.fleet.comparing import graphs_of
from perfuse.fleet.questions import call_percentiles, heap_growth, select_event
from perfuse.fleet.selecting import Recordings

ALL = Recordings()
NAMES = ("node24", "node20", "wasmtime50")
WITH_PERIODS = ("node24", "wasmtime50")


@pytest.fixture(scope="module")
def real(jitdump_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """A dataset of three pairs of perf.data and dump."""
    folder = jitdump_corpus / "produced"
    fleet = Fleet(tmp_path_factory.mktemp("real") / "dataset")
    pairs = [f"{folder / name}.perf.data+{folder / name}.dump" for name in NAMES]
    assert fleet.add(pairs).num_added == len(NAMES)
    return fleet


def _script(path: Path, field: str, cache: Path) -> list[int]:
    """A field of each sample, as `perf script` prints it."""
    command = ["perf", "--buildid-dir", str(cache), "script", "-i", str(path), "-F", field]
    done = subprocess.run(command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    return [int(line) for line in done.stdout.split()]


def test_samples_and_weights_are_those_of_perf(real: Fleet, jitdump_corpus: Path, tmp_path: Path) -> None:
    """`perf script` prints the period of each sample, where the recording has periods."""
    rows = real.rows(
        "SELECT json_extract_string(inputs, '$[0].path'), num_samples, weight FROM recordings"
        " JOIN event_totals USING (recording_id)"
    )
    found = {Path(path).name: (number, weight) for path, number, weight in rows}
    for name in NAMES:
        path = jitdump_corpus / "produced" / f"{name}.perf.data"
        assert found[path.name][0] == len(_script(path, "tid", tmp_path)), name
        if name in WITH_PERIODS:
            assert found[path.name][1] == sum(_script(path, "period", tmp_path)), name


def test_own_weights_add_up_to_the_whole(real: Fleet) -> None:
    rows = real.rows(
        "SELECT e.weight, e.num_samples, sum(f.self)::BIGINT, sum(f.self_samples)::BIGINT FROM event_totals AS e"
        " JOIN function_totals AS f USING (recording_id, event) GROUP BY ALL"
    )
    assert len(rows) == len(NAMES)
    assert all((weight, number) == (own, samples) for weight, number, own, samples in rows)


def test_another_engine_reads_the_same(fleet: Fleet, written: Written) -> None:
    """Polars, on the files that are part of the dataset, with the join that the page describes."""
    polars = pytest.importorskip("polars")
    tables = {name: polars.read_parquet(paths) for name, paths in fleet.files().items() if paths}
    counted = tables["recordings"].filter(polars.col("state") != "failed").select("recording_id", "attempt_id")
    rows = (
        tables["function_totals"]
        .join(counted, on=["recording_id", "attempt_id"])
        .group_by("function_hash")
        .agg(polars.col("self").sum())
        .join(tables["functions"].unique("function_hash"), on="function_hash")
    )
    expected: Counter[str] = Counter()
    for one in written.stacks.values():
        for stack, number in one.items():
            expected[stack.split(";")[-1]] += number
    found = dict(zip(rows["name"].to_list(), rows["self"].to_list(), strict=True))
    assert {name: number for name, number in found.items() if number} == dict(expected)


def test_calls_and_heaps_are_stored(xray_corpus: Path, mono_corpus: Path, tmp_path: Path) -> None:
    """The numbers of calls are those that llvm-xray counts; the last snapshot is the one that is reported."""
    log = xray_corpus / "fdr" / "lua-small-v5.xray"
    fleet = Fleet(tmp_path / "dataset")
    result = fleet.add([log, mono_corpus / "v17" / "heapshot.mlpd"], labels={"host": "h"})
    assert result.num_added == 2
    ((events, calls),) = fleet.rows(
        "SELECT (SELECT weight FROM event_totals WHERE event = 'calls'), sum(calls)::BIGINT FROM call_stats"
    )
    assert events == calls
    rows = call_percentiles(fleet, ALL, None, "host")
    assert sum(one.calls for one in rows) == calls
    assert all(one.median is None or one.max is None or one.median <= one.max for one in rows)
    every, *types = heap_growth(fleet, ALL, None)
    assert every.days[0][1] == sum(one.days[0][1] for one in types)


@pytest.mark.parametrize("name", ["lua-small-v5", "threads4-v5"])
def test_times_of_calls_are_compared_by_the_number_of_calls(name: str, xray_corpus: Path, tmp_path: Path) -> None:
    """llvm-xray counted the calls; time is what is compared unless another event is named."""
    (log,) = xray_corpus.glob(f"*/{name}.xray")
    with (xray_corpus / "expected" / f"{name}.account.csv").open() as file:
        counts = sorted(int(row["count"]) for row in csv.DictReader(file))
    fleet = Fleet(tmp_path / "dataset")
    assert fleet.add([log]).num_added == 1
    event = select_event(fleet, ALL, None)
    assert (event.name, event.num_samples) == ("wall-time", sum(counts))
    for one in (event, select_event(fleet, ALL, "calls")):
        (graph,) = graphs_of(fleet, ALL, one, nodes=True)
        assert graph.num_counted == sum(counts)
        assert sorted(function.num_self for function in graph.functions.values()) == counts
        assert graph.nodes is not None
        assert sum(graph.nodes.self_samples) == sum(counts)


def test_functions_known_by_numbers_have_no_name(xray_corpus: Path, tmp_path: Path) -> None:
    """A log states numbers; the names are in the instrumentation map of the program, which is not beside it."""
    (log,) = xray_corpus.glob("fdr/threads4-v5.xray")
    fleet = Fleet(tmp_path / "dataset")
    assert fleet.add([log]).num_added == 1
    event = select_event(fleet, ALL, None)
    assert event.unnamed_weight == event.weight > 0


def test_negative_numbers_of_basic_mode_are_not_names_either(tmp_path: Path) -> None:
    """Functions of objects from 128 on have negative numbers: 200 of 300 ns are of function -5, the rest of 7."""
    records = ((0, 7, 1000), (0, -5, 1050), (1, -5, 1250), (1, 7, 1300))
    log = struct.pack("<HHIQ16x", 3, 0, 3, 1_000_000_000)
    log += b"".join(struct.pack("<HBBiQIIQ", 0, 0, kind, number, at, 1, 1, 0) for kind, number, at in records)
    path = tmp_path / "xray-log.a.AAAAAA"
    path.write_bytes(log)
    fleet = Fleet(tmp_path / "dataset")
    assert fleet.add([path]).num_added == 1
    event = select_event(fleet, ALL, None)
    assert (event.weight, event.unnamed_weight) == (300, 300)


def test_a_program_names_the_functions_of_logs(xray_corpus: Path, jitdump_corpus: Path, tmp_path: Path) -> None:
    """The names and numbers of calls are those of llvm-xray with the same program; others are read as before."""
    fleet = Fleet(tmp_path / "dataset")
    other = jitdump_corpus / "produced" / "node24.perf.data"
    log, program = xray_corpus / "fdr" / "threads4-v5.xray", xray_corpus / "bin" / "threads22"
    assert fleet.add([log, other], maps=[program]).num_added == 2
    with (xray_corpus / "expected" / "threads4-v5.account.csv").open() as file:
        expected = {row["function"].split("(")[0]: int(row["count"]) for row in csv.DictReader(file)}
    # Its demangler writes `void f<A<B>>`, another one `f<A<B> >`.
    plain = {name: number for name, number in expected.items() if "<" not in name}
    rows = fleet.rows("SELECT name, sum(calls)::BIGINT FROM call_stats JOIN functions USING (function_hash) GROUP BY 1")
    assert len(rows) == len(expected)
    assert {name.split("(")[0]: calls for name, calls in rows if "<" not in name} == plain


def test_a_file_without_a_map_stops_before_recordings_are_read(xray_corpus: Path, tmp_path: Path) -> None:
    fleet = Fleet(tmp_path / "dataset")
    (log,) = xray_corpus.glob("fdr/threads4-v5.xray")
    with pytest.raises(UnreadableInput, match="no XRay instrumentation map"):
        fleet.add([log], maps=["/proc/self/exe"])
    assert not (tmp_path / "dataset").exists()
