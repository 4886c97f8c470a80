"""The Firefox Profiler: an exact small file, and real ones through the front end's own loader."""

import io
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fake_profile import FakeProfile
from perf_script import perf_script
from small_profile import add_cache_miss, small_profile

import perfuse
from perfuse.errors import ExportError, UsageError
from perfuse.exporters import export
from perfuse.exporters.firefox.shared import breakpad_id


def exported(profile: Any, **options: Any) -> Any:
    out = io.BytesIO()
    export(profile, out, to="firefox", **options)
    return json.loads(out.getvalue())


def test_small_profile_is_this_file(small: FakeProfile, golden: Any) -> None:
    golden("small.firefox.json", _readable(exported(small)) + "\n")


def _readable(value: Any, indent: str = "") -> str:
    """JSON with one member per line, and lists of plain values on one line."""
    if isinstance(value, dict):
        members = [f"{indent} {json.dumps(key)}: {_readable(member, indent + ' ')}" for key, member in value.items()]
        return "{\n" + ",\n".join(members) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        return "[\n" + ",\n".join(f"{indent} {_readable(item, indent + ' ')}" for item in value) + f"\n{indent}]"
    return json.dumps(value, ensure_ascii=False)


def test_dictionaries_give_the_same_bytes() -> None:
    assert exported(small_profile()) == exported(small_profile().use_dictionaries())


def test_weights_in_milliseconds(small: FakeProfile) -> None:
    samples = exported(small, weight="events")["threads"][0]["samples"]
    assert samples["weightType"] == "tracing-ms"
    assert samples["weight"] == [1.0] * 5


def test_another_event_is_another_track(small: FakeProfile) -> None:
    add_cache_miss(small)
    threads = exported(small, weight="events")["threads"]
    assert [thread["name"] for thread in threads] == [
        "app (cache-misses)",
        "app (cpu-clock)",
        "worker;1 (cpu-clock)",
    ]
    assert threads[0]["samples"]["weight"] == [100.0]
    assert threads[0]["samples"]["weightType"] == "samples"


def test_source_text_travels(small: FakeProfile) -> None:
    small.sql("UPDATE embedded_files SET text = 'function add(a, b)'::BLOB")
    sources = exported(small)["shared"]["sources"]
    names = exported(small)["shared"]["stringArray"]
    assert sources["content"][[names[i] for i in sources["filename"]].index("lib.js")] == "function add(a, b)"


def test_a_profile_without_samples_is_refused() -> None:
    with pytest.raises(ExportError, match="no samples"):
        exported(FakeProfile())


def test_an_unknown_weight_is_refused(small: FakeProfile) -> None:
    with pytest.raises(UsageError, match="weight"):
        exported(small, weight="bytes")


def test_breakpad_id_swaps_the_guid() -> None:
    assert breakpad_id("/lib/x.so", "0123456789abcdef0123456789abcdef01234567") == "67452301AB89EFCD0123456789ABCDEF0"
    assert breakpad_id("[jit] node 1", None) == "0" * 33


def test_libraries_of_one_name_without_build_ids_are_distinguished() -> None:
    ids = {breakpad_id(path, None) for path in ("/a/core.so", "/b/core.so", "/b/core.so")}
    assert len(ids) == 2
    assert all(re.fullmatch("[0-9A-F]{32}0", one) for one in ids)


def test_javascript_filter_and_categories(small: FakeProfile) -> None:
    profile = exported(small)
    names, funcs = profile["shared"]["stringArray"], profile["shared"]["funcTable"]
    javascript = {names[name] for name, js in zip(funcs["name"], funcs["isJS"], strict=True) if js}
    assert javascript == {"run", "add"}
    categories = profile["meta"]["categories"]
    frames = profile["shared"]["frameTable"]
    by_func: dict[str, set[tuple[str, str]]] = {}
    for func, category, subcategory in zip(frames["func"], frames["category"], frames["subcategory"], strict=True):
        kind = categories[category]
        by_func.setdefault(names[funcs["name"][func]], set()).add((kind["name"], kind["subcategories"][subcategory]))
    assert by_func == {
        "main": {("Native", "Other")},
        "run": {("Baseline JIT", "sparkplug"), ("Optimizing JIT", "turbofan")},
        "add": {("Optimizing JIT", "turbofan")},
        "[unknown] app": {("Native", "Other")},
        "sys_read": {("Kernel", "Other")},
        "Entry": {("JIT stub", "Other")},
        "[no stack]": {("Other", "Other")},
    }


def test_absurd_numbers_are_written(small: FakeProfile) -> None:
    """Sizes and weights are taken from the file unchecked."""
    small.sql("UPDATE code_objects SET size_bytes = 18446744073709551615")
    small.sql("UPDATE samples SET weight = 18446744073709551615")
    small.sql("UPDATE frames SET relative_address = 18446744073709551615")
    assert set(exported(small, weight="events")["shared"]["frameTable"]["address"]) == {-1}
    for target in ("collapsed", "speedscope"):
        export(small, io.BytesIO(), to=target, weight="events")
    export(small, io.BytesIO(), to="perf-map")


def test_the_front_end_agrees(expected_script: Path, profiler: Any, tmp_path: Path) -> None:
    """Its own loader has SQL's number of samples per function, and the collapsed export's tree per thread."""
    check_agreement(perf_script(expected_script), profiler, tmp_path / "p.json.gz")


@pytest.mark.parametrize("name", ["node24", "cpython313", "jsc2.52"])
def test_the_front_end_agrees_about_recordings(name: str, corpus: Path, profiler: Any, tmp_path: Path) -> None:
    """The same, of recordings that were read and joined here; one of them as JSLB."""
    files = [corpus / "produced" / f"{name}.perf.data", corpus / "produced" / f"{name}.dump"]
    path = tmp_path / ("p.jslb" if name == "node24" else "p.json.gz")
    check_agreement(perfuse.fuse(*files), profiler, path)


def check_agreement(profile: Any, profiler: Any, path: Path) -> None:
    export(profile, path)
    profiler.load(path)
    processes = profiler.ask("profile", "info", "--all")["processes"]
    threads = {thread["tid"]: thread["threadHandle"] for process in processes for thread in process["threads"]}
    sampled = profile.sql("SELECT tid FROM threads SEMI JOIN samples USING (thread_id)").fetchall()
    assert threads.keys() == {tid for (tid,) in sampled}
    trees = call_trees(profile)
    for tid, handle in threads.items():
        theirs: Counter[tuple[str, str]] = Counter()
        for function in profiler.functions(handle):
            theirs["self", function["name"]] += function["selfSamples"]
            theirs["total", function["name"]] += function["totalSamples"]
        assert theirs == function_counts(profile, tid)
        assert flat(profiler.call_tree(handle)) == trees[tid]


def test_the_front_end_counts_milliseconds(small: FakeProfile, profiler: Any, tmp_path: Path) -> None:
    """Two events, weights in milliseconds, inlining, a stack without frames: the loader accepts them."""
    add_cache_miss(small)
    small.sql("UPDATE samples SET weight = 2500000 WHERE stack_id = 3")
    export(small, tmp_path / "p.json", weight="events")
    profiler.load(tmp_path / "p.json")
    totals = {}
    for handle in ("t-0", "t-1"):
        listed = profiler.functions(handle)
        totals[handle] = {function["name"]: function["totalSamples"] for function in listed}
    assert totals["t-0"] == {"main": 100, "run": 100}
    assert totals["t-1"] == {"main": 8, "run": 6, "add": 5, "[unknown] app": 1, "sys_read": 1}


def flat(nodes: list[Any], above: tuple[str, ...] = ()) -> Counter[tuple[str, ...]]:
    """Samples of every path in the front end's call tree."""
    totals: Counter[tuple[str, ...]] = Counter()
    for node in nodes:
        assert "childrenTruncated" not in node
        path = (*above, node["name"].replace(";", ":"))
        totals[path] += node["totalSamples"]
        totals += flat(node["children"], path)
    return totals


def call_trees(profile: Any) -> dict[int, Counter[tuple[str, ...]]]:
    """Samples of every path, by tid, from the collapsed export."""
    out = io.BytesIO()
    export(profile, out, to="collapsed", root="thread")
    trees: dict[int, Counter[tuple[str, ...]]] = {}
    for line in out.getvalue().decode().splitlines():
        stack, _, count = line.rpartition(" ")
        thread, *path = stack.split(";")
        tree = trees.setdefault(int(thread.rpartition("/")[2]), Counter())
        path = path or ["[no stack]"]
        for depth in range(1, len(path) + 1):
            tree[tuple(path[:depth])] += int(count)
    return trees


def function_counts(profile: Any, tid: int) -> Counter[tuple[str, str]]:
    """Self and total samples by function name, added up over functions of one name."""
    rows = profile.sql(f"""
        WITH RECURSIVE named AS (
            SELECT s.stack_id, parent_stack_id,
                coalesce(function_id::VARCHAR, f.kind || coalesce(m.path, '')) AS function,
                coalesce(fn.name, CASE f.kind
                    WHEN 'kernel' THEN '[unknown] kernel' WHEN 'jit' THEN '[unknown] jit'
                    ELSE coalesce('[unknown] ' || parse_filename(m.path), '[unknown]') END) AS name
            FROM stacks s JOIN frames f USING (frame_id) LEFT JOIN functions fn USING (function_id)
            LEFT JOIN mappings m ON m.mapping_id = f.mapping_id
        ),
        walk AS (
            SELECT sample_id, stack_id, true AS is_self
            FROM samples JOIN threads USING (thread_id) WHERE tid = {tid}
            UNION ALL
            SELECT sample_id, parent_stack_id, false FROM walk JOIN named USING (stack_id)
            WHERE parent_stack_id IS NOT NULL
        )
        SELECT name, function, count(DISTINCT sample_id), count(*) FILTER (is_self)
        FROM walk JOIN named USING (stack_id) GROUP BY ALL
    """).fetchall()
    counts: Counter[tuple[str, str]] = Counter()
    for name, _, total, own in rows:
        counts["self", name] += own
        counts["total", name] += total
    ((without,),) = profile.sql(f"""
        SELECT count(*) FROM samples JOIN threads USING (thread_id) WHERE tid = {tid} AND stack_id IS NULL
    """).fetchall()
    counts += Counter({("self", "[no stack]"): without, ("total", "[no stack]"): without})
    return counts
