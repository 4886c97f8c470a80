"""Durations of calls in real logs, compared with SQL over their slices."""

from pathlib import Path

import pytest

import perfuse
from perfuse import Profile
from perfuse.analysis.latency import CallAccount
from perfuse.analysis.orders import ORDERS
from perfuse.errors import UsageError
from perfuse.filters.names import matcher


@pytest.fixture(scope="module")
def named(xray_corpus: Path) -> Profile:
    """Three threads of sqlite that were moved between processors, with the program that names their functions."""
    return perfuse.fuse(xray_corpus / "fdr" / "sqmt-small-v5.xray", maps={0: xray_corpus / "bin" / "sqmt22-g1"})


@pytest.fixture(scope="module")
def account(named: Profile) -> CallAccount:
    return CallAccount(named)


@pytest.mark.parametrize("order", ORDERS)
def test_a_limit_returns_the_head_of_the_whole_list(account: CallAccount, order: str) -> None:
    whole = account.functions(order=order)  # type: ignore[arg-type]
    assert account.functions(7, order=order) == whole[:7]  # type: ignore[arg-type]
    assert len(whole) == account.num_functions() == len({one.function.function_id for one in whole})
    if order == "name":
        assert [one.function.name for one in whole] == sorted(one.function.name for one in whole)
    else:
        column = "num_calls" if order == "count" else f"{order}_ns"
        values = [getattr(one.latency, column) for one in whole]
        assert values == sorted(values, reverse=True)


def test_functions_have_names_and_lines(account: CallAccount) -> None:
    functions = {one.function.name: one.function for one in account.functions()}
    worker = functions["worker(int, int)"]
    assert (worker.native_id, worker.path and worker.path.rsplit("/", 1)[-1], worker.line) == (2, "sqmt.cc", 13)
    assert worker.module is not None
    assert worker.module.endswith("sqmt22-g1")


def test_no_durations_come_last(xray_corpus: Path) -> None:
    # Its last call is cut off.
    account = CallAccount(perfuse.fuse(xray_corpus / "fdr" / "typed-v5.xray"))
    timed = [one.latency.median_ns is not None for one in account.functions(order="median")]
    assert timed == sorted(timed, reverse=True)
    (cut,) = [one.latency for one in account.functions() if one.latency.num_truncated]
    assert (cut.num_timed, cut.num_calls) == (0, 1)


@pytest.mark.parametrize("by", ["thread", "cpu"])
def test_groups_are_those_of_slices(named: Profile, by: str) -> None:
    key = "thread_id" if by == "thread" else "cpu"
    expected = named.sql(f"SELECT function_id, {key}, count(*), sum(duration_ns)::BIGINT FROM slices GROUP BY ALL")
    found = {
        (
            one.function.function_id,
            one.thread.thread_id if one.thread else one.cpu,
            one.latency.num_calls,
            one.latency.sum_ns,
        )
        for one in CallAccount(named, by=by).functions()  # type: ignore[arg-type]
    }
    assert found == {*expected.fetchall()}


def test_threads_and_their_moves_are_those_of_events(named: Profile, account: CallAccount) -> None:
    moves = named.sql("""
        SELECT tid, before, cpu, count(*) FROM (
            SELECT thread_id, cpu, lag(cpu) OVER (PARTITION BY thread_id ORDER BY record_offset) AS before
            FROM call_events) JOIN threads USING (thread_id)
        WHERE before <> cpu GROUP BY ALL""").fetchall()
    found = account.migrations()
    assert {(one.thread.tid, one.from_cpu, one.to_cpu, one.num_migrations) for one in found} == {*moves}
    assert [one.num_migrations for one in found] == sorted((count for *_, count in moves), reverse=True)
    seen = named.sql("""
        SELECT tid, min(ts_ns), max(ts_ns), count(*) FROM call_events JOIN threads USING (thread_id) GROUP BY 1
    """).fetchall()
    threads = account.threads()
    assert {(one.thread.tid, one.first_ns, one.last_ns, one.num_events) for one in threads} == {*seen}
    assert sum(one.num_migrations for one in threads) == sum(count for *_, count in moves)
    assert [one.busy_ns for one in threads] == sorted((one.busy_ns for one in threads), reverse=True)


def test_totals(account: CallAccount) -> None:
    totals = account.totals
    # Records of the file as counted by the corpus: entries, entries with an argument, exits, tail exits, arguments.
    assert (totals.num_events, totals.num_calls) == (58337 + 27 + 52699 + 5665 + 27, 58337 + 27)
    assert (totals.num_unwound, totals.num_truncated, totals.num_lost, totals.num_orphans) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("worker(int", {"worker(int, int)"}),
        ("w?rk*", {"worker(int, int)"}),
        ("/^(main|query)$/", {"main", "query"}),
        ("nothing of that name", set()),
    ],
)
def test_patterns(account: CallAccount, pattern: str, meant: set[str]) -> None:
    assert {one.function.name for one in account.functions(pattern=pattern)} == meant
    assert account.num_functions(pattern) == len(meant)


def test_a_name_is_found_by_itself() -> None:
    for name in ("operator[](unsigned long)", "a*b", "std::vector<char*>::at", "x.y+z"):
        assert matcher(name)(name), name


def test_refusals(named: Profile, account: CallAccount) -> None:
    with pytest.raises(UsageError, match="by is one of function, thread, cpu"):
        CallAccount(named, by="core")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="order is one of"):
        account.functions(order="selv")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="not a valid regular expression"):
        account.functions(pattern="/(/")
