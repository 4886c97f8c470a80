"""Profiles for flame graphs: perf's own output of real recordings, many stacks, hostile names."""

from pathlib import Path
from typing import Any

from fake_profile import FakeProfile
from perf_script import perf_script

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "quote\" and 'quote' & ampersand",
    "line\nbreak\r\ttab\0null",
    "\u202eright to left\u202c override",
    "]]> --> {{script}} ${x} `tick` \\u0041 \\1",
    "名前の長い関数" * 40,
    "e\u0301" * 30,
    "",
    "__proto__",
    "constructor",
]


def recorded(script: Path) -> Any:
    """A real recording as perf printed it, with tiers derived from V8's marks and the JVM's code objects."""
    profile = perf_script(script)
    profile.sql("SELECT 1").fetchall()
    tier = """
        UPDATE code_objects SET
            kind = CASE WHEN f.name SIMILAR TO '(Builtin|BytecodeHandler|Stub):.*' THEN 'stub' ELSE kind END,
            tier = CASE
                WHEN f.linkage_name LIKE 'JS:~%' THEN 'ignition' WHEN f.linkage_name LIKE 'JS:^%' THEN 'sparkplug'
                WHEN f.linkage_name LIKE 'JS:+%' THEN 'maglev' WHEN f.linkage_name LIKE 'JS:*%' THEN 'turbofan'
            END
        FROM functions f WHERE f.function_id = code_objects.function_id
    """
    profile._connection.execute(tier)
    profile._connection.execute(
        "UPDATE frames SET unnamed_because = 'no symbol covers this address' WHERE function_id IS NULL"
    )
    profile._connection.execute(
        "UPDATE functions SET module_id = (SELECT count(*) FROM modules) FROM code_objects c "
        "WHERE c.function_id = functions.function_id AND functions.module_id IS NULL"
    )
    profile._connection.execute(
        "INSERT INTO modules SELECT count(*), '[jit] ' || ?, 'jit', NULL FROM modules", [profile.title]
    )
    return profile


def many_stacks(num: int = 50_000, depth: int = 24, num_functions: int = 3_000) -> Any:
    """`num` distinct stacks over a tree that branches more at greater depth; four threads, six samples a stack."""
    profile = FakeProfile(f"{num} stacks")
    run = profile._connection.execute
    profile.add("processes", process_id=0, pid=100, name="big")
    profile.add_all(
        "threads", [{"thread_id": i, "process_id": 0, "tid": 100 + i, "name": f"worker {i}"} for i in range(4)]
    )
    profile.add("modules", module_id=0, name="/opt/lib/libbig.so", kind="native")
    run(f"""
        INSERT INTO functions (function_id, name, linkage_name, module_id, path, line)
        SELECT i, 'ns::fn_' || i, 'fn', 0, 'f' || i % 97 || '.cc', 1 + i % 900 FROM range({num_functions}) t(i)
    """)
    run("INSERT INTO code_objects (code_object_id, function_id, kind, tier) SELECT i, i, 'jit', "
        f"['ignition', 'sparkplug', 'maglev', 'turbofan'][1 + i % 4] FROM range({num_functions}) t(i)")  # fmt: skip
    run("INSERT INTO frames (frame_id, function_id, code_object_id, inline_depth, kind, unwound_by) "
        "SELECT i, i, CASE WHEN i % 3 > 0 THEN i END, 0, ['native', 'jit', 'jit'][1 + i % 3], 'callchain' "
        f"FROM range({num_functions}) t(i)")  # fmt: skip
    size = f"greatest(1, ({num} / power({num}, $d / {depth - 1}.0))::BIGINT)"
    # The path of leaf n at level d consists of the first digits of n.
    run(f"""
        CREATE TABLE paths AS SELECT DISTINCT d, n // {size.replace("$d", "d")} AS place
        FROM range({num}) l(n), range({depth}) m(d)
    """)
    run("CREATE TABLE numbered AS SELECT *, row_number() OVER (ORDER BY d, place) - 1 AS id FROM paths")
    here, above = size.replace("$d", "c.d"), size.replace("$d", "(c.d - 1)")
    run(f"""
        INSERT INTO stacks SELECT c.id, p.id, hash(c.d * 1000003 + c.place) % {num_functions}, c.d
        FROM numbered c LEFT JOIN numbered p ON p.d = c.d - 1 AND p.place = (c.place * {here}) // {above}
        ORDER BY c.id
    """)
    run(f"""
        INSERT INTO samples (sample_id, ts_ns, thread_id, stack_id, weight, weight_unit, event)
        SELECT row_number() OVER () - 1, id * 1000, id % 4, id, 250000 * (1 + hash(id) % 6), 'ns', 'cpu-clock'
        FROM numbered WHERE d = {depth - 1}
    """)
    return profile


def hostile() -> Any:
    """Names that try to break out of the text they are written into."""
    profile = FakeProfile('</title><script>alert("title")</script> \u202e{{script}}')
    profile.add("processes", process_id=0, pid=1, name=HOSTILE[0])
    profile.add_all("threads", [{"thread_id": i, "process_id": 0, "tid": i, "name": HOSTILE[i]} for i in range(2)])
    for i, name in enumerate(HOSTILE):
        profile.add("modules", module_id=i, name=name, kind="native")
        profile.add("functions", function_id=i, name=name, linkage_name=name, module_id=i, path=name, line=i + 1)
        profile.add("frames", frame_id=i, function_id=i, inline_depth=0, kind="native", unwound_by="sampled")
        profile.add("stacks", stack_id=i, parent_stack_id=None, frame_id=i, depth=0)
        profile.add(
            "samples",
            sample_id=i,
            ts_ns=i,
            thread_id=i % 2,
            stack_id=i,
            weight=7,
            weight_unit="events",
            event=HOSTILE[1],
        )
    return profile


def narrow_boxes(num: int = 4000) -> Any:
    """`main` calls `wide`, which has half of the samples, and `num` functions with one sample each."""
    profile = FakeProfile("narrow")
    profile.add("processes", process_id=0, pid=100, name="app")
    profile.add("threads", thread_id=0, process_id=0, tid=100, name="app")
    names = ["main", "wide", *(f"narrow_{i}" for i in range(num))]
    profile.add_all("functions", [{"function_id": i, "name": name} for i, name in enumerate(names)])
    profile.add_all("frames", [{"frame_id": i, "function_id": i, "kind": "native"} for i in range(len(names))])
    callers = [None, *[0] * (num + 1)]
    profile.add_all(
        "stacks", [{"stack_id": i, "parent_stack_id": caller, "frame_id": i} for i, caller in enumerate(callers)]
    )
    stacks = [*[1] * num, *range(2, num + 2)]
    one = {"thread_id": 0, "weight": 1_000_000, "weight_unit": "ns", "event": "cpu-clock"}
    profile.add_all(
        "samples", [{"sample_id": i, "ts_ns": i, "stack_id": stack, **one} for i, stack in enumerate(stacks)]
    )
    return profile
