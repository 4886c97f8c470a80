"""Call traces as tables: slices, samples, durations of calls, and selections."""

from pathlib import Path

import pytest
from arro3.core import Table

import perfuse
from perfuse import Profile


@pytest.fixture(scope="module")
def profile(xray_corpus: Path) -> Profile:
    """Four threads that run one after another, and the one that started them."""
    return perfuse.fuse(xray_corpus / "fdr" / "threads4-v5.xray")


def _columns(stream: object, *names: str) -> list[tuple[object, ...]]:
    table = Table.from_arrow(stream)
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))


def test_a_call_is_a_slice(profile: Profile) -> None:
    statistics = profile.call_statistics()
    query = """
        SELECT count(*), count(DISTINCT slice_id), min(slice_id), max(slice_id), sum(self_ns)::BIGINT,
            bool_and(parent_slice_id < slice_id)
        FROM slices
    """
    ((slices, keys, first, last, self_ns, ordered),) = profile.sql(query).fetchall()
    assert _columns(statistics.totals(), "num_calls") == [(slices,)]
    assert (keys, first, last, ordered) == (slices, 0, slices - 1, True)
    assert self_ns == sum(busy for (busy,) in _columns(statistics.threads(), "busy_ns"))


def test_statistics_are_what_sql_makes_of_slices(profile: Profile) -> None:
    query = """
        SELECT function_id, count(*), min(duration_ns), quantile_disc(duration_ns, 0.5),
            quantile_disc(duration_ns, 0.9), quantile_disc(duration_ns, 0.99), max(duration_ns),
            sum(duration_ns)::BIGINT, sum(self_ns)::BIGINT
        FROM slices GROUP BY 1 ORDER BY 1
    """
    columns = (
        "function_id",
        "num_timed",
        "min_ns",
        "median_ns",
        "p90_ns",
        "p99_ns",
        "max_ns",
        "sum_ns",
        "self_ns",
    )
    assert _columns(profile.call_statistics().functions(), *columns) == profile.sql(query).fetchall()


def test_a_trace_has_samples(profile: Profile) -> None:
    query = """
        SELECT event::VARCHAR, weight_unit::VARCHAR, count(*), count(DISTINCT stack_id), sum(weight)::BIGINT
        FROM samples GROUP BY 1, 2 ORDER BY 1
    """
    paths = Table.from_arrow(profile.call_statistics(paths=True).paths())
    busy_ns, num_calls = (sum(paths[name].to_pylist()) for name in ("self_ns", "num_calls"))
    num_paths = len({*paths["path_id"].to_pylist()})
    expected = [
        ("calls", "calls", len(paths), num_paths, num_calls),
        ("wall-time", "ns", len(paths), num_paths, busy_ns),
    ]
    assert profile.sql(query).fetchall() == expected
    assert profile.flame().event.name == "wall-time"


def test_frames_of_a_trace_are_marked(profile: Profile) -> None:
    query = """
        SELECT DISTINCT kind::VARCHAR, unwound_by::VARCHAR, f.function_id IS NOT NULL
        FROM frames LEFT JOIN functions f USING (function_id)
    """
    assert profile.sql(query).fetchall() == [("traced", "trace", True)]


def test_calls_of_compiled_methods_are_in_jit_code(mono_corpus: Path) -> None:
    # The log has 108 events METHOD_ENTER (MANIFEST.md), and all of its methods were compiled while it was written.
    logged = perfuse.fuse(mono_corpus / "tiny" / "v01-calls.mlpd")
    calls = "SELECT sum(weight)::BIGINT FROM samples WHERE event = 'calls'"
    assert logged.jit_only().sql(calls).fetchall() == logged.sql(calls).fetchall() == [(108,)]


def test_methods_without_code_are_traced(mono_corpus: Path) -> None:
    query = """
        SELECT name LIKE '(wrapper %', count(*) FROM frames JOIN functions USING (function_id)
        WHERE kind = 'traced' GROUP BY 1
    """
    assert perfuse.fuse(mono_corpus / "tiny" / "v17-calls.mlpd").sql(query).fetchall() == [(True, 4)]


def test_a_time_cuts_calls(profile: Profile) -> None:
    assert profile.span_ns is not None
    first_ns, last_ns = profile.span_ns
    middle_s = (last_ns - first_ns) / 2e9
    parts = [profile.between(0.0, middle_s), profile.between(middle_s, 1.0)]
    whole = "SELECT sum(weight)::BIGINT FROM samples WHERE event = 'wall-time'"
    weights = [part.sql(whole).fetchall()[0][0] for part in parts]
    # Half a nanosecond is always rounded in one direction; the last event is at the end of the second part.
    assert sum(weights) == profile.sql(whole).fetchall()[0][0]
    assert weights == [sum(b for (b,) in _columns(p.call_statistics().threads(), "busy_ns")) for p in parts]
    stacks = "SELECT count(*) FROM samples ANTI JOIN stacks USING (stack_id)"
    assert [part.sql(stacks).fetchall() for part in parts] == [[(0,)], [(0,)]]


def test_a_thread_by_itself(profile: Profile) -> None:
    columns = ("thread_id", "num_calls", "busy_ns")
    threads = _columns(profile.call_statistics().threads(), *columns)
    tids = dict(profile.sql("SELECT thread_id, tid FROM threads").fetchall())
    for key, num_calls, busy_ns in threads:
        one = profile.thread(tids[key])
        assert _columns(one.call_statistics().threads(), *columns) == [(key, num_calls, busy_ns)]
        query = "SELECT sum(weight)::BIGINT FROM samples WHERE event = 'calls'"
        assert one.sql(query).fetchall() == [(num_calls,)]


def test_statistics_that_were_not_requested_are_absent(profile: Profile) -> None:
    statistics = profile.call_statistics()
    with pytest.raises(ValueError, match="edges=True"):
        statistics.edges()
    with pytest.raises(ValueError, match="by is one of function, thread, cpu"):
        profile.call_statistics(by="module")


def test_sums_have_no_durations(xray_corpus: Path) -> None:
    profile = perfuse.fuse(xray_corpus / "profiling" / "prof-lua.0.xray")
    statistics = profile.call_statistics()
    totals = ("num_events", "num_calls", "first_ns", "last_ns")
    assert _columns(statistics.totals(), *totals) == [(0, 362, None, None)]
    assert {*_columns(statistics.functions(), "num_timed", "max_ns")} == {(0, None)}
    negative = "SELECT count(*) FROM call_sums WHERE self_ns < 0 OR total_ns < self_ns"
    assert profile.sql(negative).fetchall() == [(0,)]
    assert profile.sql("SELECT min(weight) FROM samples WHERE event = 'wall-time'").fetchall() == [(0,)]
    assert profile.sql("SELECT count(*) FROM slices").fetchall() == [(0,)]
