"""The Firefox Profiler: an exact small file, and real ones through the front end's own loader."""

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fake_profile import FakeProfile
from perf_script import perf_script
from perfuse.errors import ExportError, UsageError
from perfuse.exporters import export
from perfuse.exporters.firefox.shared import breakpad_id
from small_profile import MS, small_profile


def exported(profile: Any, **options: Any) -> Any:
    out = io.BytesIO()
    export(profile, out, to="firefox", **options)
    return json.loads(out.getvalue())


def test_small_profile_is_this_file(small: FakeProfile, golden: Any) -> None:
    profile = exported(small)
    lines = json.dumps(profile, indent=1, ensure_ascii=False)
    # One line a column keeps the file readable.
    golden("small.firefox.json", _compact_arrays(lines) + "\n")


def _compact_arrays(text: str) -> str:
    lines: list[str] = []
    depth = 0
    for line in text.splitlines():
        if depth:
            lines[-1] += line.strip() + ("" if line.rstrip().endswith("[") else " ")
        else:
            lines.append(line)
        stripped = line.strip().rstrip(",")
        depth += stripped.endswith("[") and not any(c in stripped for c in "{")
        if depth and stripped in ("]",):
            depth -= 1
            lines[-1] = lines[-1].rstrip()
    return "\n".join(lines)


def test_dictionaries_give_the_same_bytes() -> None:
    assert exported(small_profile()) == exported(small_profile().use_dictionaries())


def test_weights_in_milliseconds(small: FakeProfile) -> None:
    samples = exported(small, weight="events")["threads"][0]["samples"]
    assert samples["weightType"] == "tracing-ms"
    assert samples["weight"] == [1.0] * 5


def test_another_event_is_another_track(small: FakeProfile) -> None:
    small.add("samples", sample_id=9, ts_ns=5003 * MS, thread_id=0, stack_id=1, weight=100, weight_unit="events", event="cache-misses")
    threads = exported(small, weight="events")["threads"]
    assert [thread["name"] for thread in threads] == ["app (cache-misses)", "app (cpu-clock)", "worker;1 (cpu-clock)"]
    assert threads[0]["samples"]["weight"] == [100.0]
    assert threads[0]["samples"]["weightType"] == "samples"


def test_source_text_travels(small: FakeProfile) -> None:
    small.sql("UPDATE embedded_files SET text = 'function add(a, b)'::BLOB")
    sources = exported(small)["shared"]["sources"]
    names = exported(small)["shared"]["stringArray"]
    assert sources["content"][[names[i] for i in sources["filename"]].index("lib.js")] == "function add(a, b)"


def test_no_samples_is_said() -> None:
    with pytest.raises(ExportError, match="no samples"):
        exported(FakeProfile())


def test_unknown_weight_is_said(small: FakeProfile) -> None:
    with pytest.raises(UsageError, match="weight"):
        exported(small, weight="bytes")


def test_breakpad_id_swaps_the_guid() -> None:
    assert breakpad_id("0123456789abcdef0123456789abcdef01234567") == "67452301AB89EFCD0123456789ABCDEF0"
    assert breakpad_id("") == "0" * 33


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
    }


def test_the_front_end_agrees_about_every_function(expected_script: Path, profiler: Any, tmp_path: Path) -> None:
    """Self and total samples of every function in every thread, and each call tree, equal what SQL says."""
    profile = perf_script(expected_script)
    path = tmp_path / "p.json.gz"
    export(profile, path)
    profiler.load(path)
    info = profiler.ask("profile", "info", "--all")
    threads = [thread for process in info["processes"] for thread in process["threads"]]
    assert {(thread["tid"]) for thread in threads} == {
        tid for (tid,) in profile.sql("SELECT tid FROM threads SEMI JOIN samples USING (thread_id)").fetchall()
    }
    for thread in threads:
        profiler.ask("thread", "select", thread["threadHandle"])
        listed = profiler.ask("thread", "functions", "--limit", "0", "--include-idle")["functions"]
        ours = function_counts(profile, thread["tid"])
        theirs = Counter()
        for function in listed:
            theirs[function["name"]] += (function["totalSamples"] << 32) + function["selfSamples"]
        assert theirs == ours


def function_counts(profile: FakeProfile, tid: int) -> Counter[str]:
    """Total and self samples by function name, added up over functions of one name."""
    rows = profile.sql(f"""
        WITH RECURSIVE named AS (
            SELECT s.stack_id, parent_stack_id,
                coalesce(function_id::VARCHAR, kind || coalesce(mapping_id::VARCHAR, '')) AS function,
                coalesce(fn.name, CASE kind WHEN 'kernel' THEN '[unknown] kernel' WHEN 'jit' THEN '[unknown] jit'
                    ELSE coalesce('[unknown] ' || parse_filename(m.path), '[unknown]') END) AS name
            FROM stacks s JOIN frames f USING (frame_id) LEFT JOIN functions fn USING (function_id)
            LEFT JOIN mappings m ON m.mapping_id = f.mapping_id
        ),
        walk AS (
            SELECT sample_id, stack_id, true AS is_self FROM samples JOIN threads USING (thread_id) WHERE tid = {tid}
            UNION ALL
            SELECT sample_id, parent_stack_id, false FROM walk JOIN named USING (stack_id)
            WHERE parent_stack_id IS NOT NULL
        )
        SELECT name, function, count(DISTINCT sample_id), count(*) FILTER (is_self)
        FROM walk JOIN named USING (stack_id) GROUP BY ALL
    """).fetchall()
    counts: Counter[str] = Counter()
    for name, _, total, own in rows:
        counts[name] += (total << 32) + own
    return counts
