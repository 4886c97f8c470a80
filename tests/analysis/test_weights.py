"""Weights of the small profile, which are known by hand."""

from pathlib import Path

import pytest
from small_profile import MS, small_profile

import perfuse as pf
from perfuse.analysis.sampled import SampleFilter, events
from perfuse.analysis.weights import Weights
from perfuse.errors import UsageError
from perfuse.pictures.flame_graph import FlameGraph
from profiles import recorded


@pytest.fixture
def known():
    return small_profile()


def test_functions_by_self_and_by_total(known):
    weights = {row.name: (row.self_weight // MS, row.total_weight // MS) for row in Weights(known).functions()}
    assert weights == {
        "add": (2, 2),
        "run": (1, 3),
        "[unknown] app": (1, 1),
        "sys_read": (1, 1),
        "Entry": (1, 1),
        "[no stack]": (1, 1),
        "main": (0, 5),
    }
    assert Weights(known).functions(1)[0].name == "add"
    assert [row.name for row in Weights(known).functions(2, order="total")] == ["main", "run"]


def test_a_function_has_kind_module_and_tiers(known):
    rows = {row.name: row for row in Weights(known).functions()}
    run, unknown = rows["run"], rows["[unknown] app"]
    assert (run.module, run.kind, run.path, run.line, run.function_id) == ("[jit] app", "jit", "app.js", 7, 1)
    assert (unknown.function_id, unknown.unnamed_because) == (None, "no symbol covers this address")
    assert {row.name: row.origin for row in rows.values()} == {
        "add": "inlined",
        "run": "baseline",
        "[unknown] app": "unknown",
        "sys_read": "kernel",
        "Entry": "stub",
        "[no stack]": "unknown",
        "main": "native",
    }
    assert set(run.tiers) == {"sparkplug", "turbofan"}
    assert all(row.tiers == () for row in rows.values() if row.kind != "jit")


def test_groups(known):
    def weights(by):
        return {row.name: (row.kind, row.self_samples) for row in Weights(known).groups(by)}

    assert weights("thread") == {"app 10": ("", 5), "worker;1 11": ("", 2)}
    assert weights("process") == {"app 10": ("", 7)}
    assert weights("module")["/opt/app"] == ("native", 1)
    assert weights("tier") == {
        "turbofan": ("jit", 2),
        "sparkplug": ("jit", 1),
        "jit": ("jit", 1),
        "native": ("native", 1),
        "kernel": ("kernel", 1),
        "unknown": ("unknown", 1),
    }
    for by in ("thread", "process", "module", "tier"):
        assert sum(row.self_weight for row in Weights(known).groups(by)) == events(known)[0].weight


def test_selections(known):
    def total(**selection):
        return sum(row.self_samples for row in Weights(known, SampleFilter(**selection)).functions())

    assert total() == 7
    assert total(threads=(1,)) == 2
    assert total(processes=(7,)) == 0
    assert total(time_ns=(5000 * MS, 5002 * MS)) == 2
    with pytest.raises(UsageError, match="cycles") as error:
        total(event="cycles")
    assert error.value.hint == "there are cpu-clock"


def test_one_event_is_selected_because_weights_of_two_do_not_add_up(known):
    known.add(
        "samples", sample_id=7, ts_ns=9, thread_id=0, stack_id=0, weight=1, weight_unit="events", event="page-faults"
    )
    assert [(event.name, event.unit, event.num_samples) for event in events(known)] == [
        ("cpu-clock", "ns", 7),
        ("page-faults", "events", 1),
    ]
    assert FlameGraph.of(known).tree().total_samples == 7
    assert FlameGraph.of(known, event="page-faults").tree().total_samples == 1
    with pytest.raises(UsageError):
        FlameGraph.of(known, weight="bytes")


def test_sums_agree_with_sql(expected_script):
    """The same numbers computed differently: the set of functions in each stack, counted by DuckDB."""
    profile = recorded(expected_script)
    event = events(profile)[0].name
    sql = f"""
        WITH RECURSIVE above AS (
            SELECT stack_id AS leaf, stack_id, parent_stack_id, frame_id FROM stacks
            UNION ALL
            SELECT leaf, s.stack_id, s.parent_stack_id, s.frame_id
            FROM above JOIN stacks s ON s.stack_id = above.parent_stack_id
        ), passed AS (
            SELECT DISTINCT leaf, fn.name, module_id, fn.path, fn.line, fn.column
            FROM above JOIN frames USING (frame_id) JOIN functions fn USING (function_id)
        )
        SELECT name, count(*) FROM samples JOIN passed ON leaf = stack_id
        WHERE event = '{event}' GROUP BY name, module_id, path, line, "column"
    """
    expected = sorted(profile.sql(sql).fetchall())
    found = sorted((row.name, row.total_samples) for row in Weights(profile).functions() if row.function_id is not None)
    assert found == expected
    assert sum(row.self_samples for row in Weights(profile).functions()) == events(profile)[0].num_samples


def test_the_heaviest_of_many_functions_are_found_without_the_others():
    """Equal ones are sorted by name; the rest is counted."""
    names = [f"f{(7 * number) % 1000:03}" for number in range(1000)]
    text = "".join(f"main;{name} {1 + (name in {'f500', 'f400'})}\n" for name in names)
    weights = Weights(pf.fuse(text.encode()))
    assert weights.num_functions == 1001
    assert [row.name for row in weights.functions(4)] == ["f400", "f500", "f000", "f001"]
    assert [row.name for row in weights.functions(2, order="total")] == ["main", "f400"]
    assert [row.name for row in weights.functions()[-2:]] == ["f999", "main"]
    assert weights.functions(0) == []
    (group,) = weights.groups("module")
    assert (group.name, group.self_weight, group.self_samples) == ("[unknown]", 1002, 1002)


@pytest.mark.parametrize("name", ["node20", "jsc2.54-source"])
def test_a_function_has_all_tiers_that_are_on_stacks(jitdump_corpus: Path, name: str) -> None:
    """A name in the file has the tier: of functions with several such names, only one tier was listed."""
    produced = jitdump_corpus / "produced"
    with pf.fuse(produced / f"{name}.perf.data", produced / f"{name}.dump") as profile:
        tiers = profile.sql("""
            WITH RECURSIVE used AS (
                SELECT DISTINCT stack_id FROM samples
                UNION SELECT parent_stack_id FROM used JOIN stacks USING (stack_id) WHERE parent_stack_id IS NOT NULL
            )
            SELECT DISTINCT name, tier FROM used JOIN stacks USING (stack_id) JOIN frames USING (frame_id)
            JOIN code_objects USING (code_object_id) JOIN functions ON functions.function_id = frames.function_id
            WHERE tier IS NOT NULL
        """)
        expected = set(tiers.fetchall())
        listed = {(one.name, tier) for one in Weights(profile).functions() for tier in one.tiers}
    assert len({function for function, _ in expected}) < len(expected)
    assert listed == expected
