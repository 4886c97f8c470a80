"""A profile small enough to check by hand: two threads, a JIT function in two tiers, inlining, holes."""

# ruff: noqa: E501 - a table reads best with a row a line

from fake_profile import FakeProfile

BUILD_ID = "0123456789abcdef0123456789abcdef01234567"
MS = 1_000_000


def small_profile() -> FakeProfile:
    """Six samples, 1 ms apart from 5 s on:

    ============  ====================================================================
    thread 10     main > run (sparkplug), main > run (turbofan) > [add] twice,
                  main > [unknown] app, main > sys_read
    thread 11     stub; no stack at all
    ============  ====================================================================
    """
    p = FakeProfile("app --jit; demo")
    p.add(
        "sources",
        format="perf_data",
        path="perf.data",
        arch="x86_64",
        clock_id=0,
        producer="perf",
        version="1",
    )
    p.add("sources", source_id=1, format="jitdump", path="jit-10.dump", arch="x86_64", clock_id=0, producer="V8")
    p.add("clocks", clock_id=0, source_id=0, kind="monotonic", offset_ns=0)
    p.add("processes", process_id=0, pid=10, name="app", start_ns=4999 * MS)
    p.add("threads", thread_id=0, process_id=0, tid=10, name="app", start_ns=4999 * MS)
    p.add("threads", thread_id=1, process_id=0, tid=11, name="worker;1", start_ns=5001 * MS, end_ns=5006 * MS)
    p.add("mappings", mapping_id=0, process_id=0, path="/opt/app", build_id=BUILD_ID, start_address=0x400000,
          end_address=0x500000, file_offset=0x1000, executable=True)  # fmt: skip
    p.add("modules", module_id=0, name="/opt/app", kind="native", build_id=BUILD_ID)
    p.add("modules", module_id=1, name="[jit] app", kind="jit")
    p.add("modules", module_id=2, name="[kernel.kallsyms]", kind="kernel")
    p.add(
        "functions",
        function_id=0,
        name="main",
        linkage_name="main",
        module_id=0,
        native_id=0x1000,
        path="app.c",
        line=3,
    )
    p.add(
        "functions",
        function_id=1,
        name="run",
        linkage_name="JS:*run app.js:7:1",
        module_id=1,
        path="app.js",
        line=7,
        column=1,
    )
    p.add(
        "functions",
        function_id=2,
        name="add",
        linkage_name="add",
        module_id=1,
        path="lib.js",
        line=2,
        column=5,
    )
    p.add("functions", function_id=3, name="Entry", linkage_name="Builtin:Entry", module_id=1)
    p.add("functions", function_id=4, name="sys_read", linkage_name="sys_read", module_id=2)
    p.add("code_objects", code_object_id=0, function_id=1, process_id=0, kind="jit", tier="sparkplug", create_ns=1, retire_ns=5001 * MS,
          start_address=0x7F0000001000, size_bytes=0x100, source_id=1)  # fmt: skip
    p.add("code_objects", code_object_id=1, function_id=1, process_id=0, kind="jit", tier="turbofan", create_ns=5001 * MS,
          start_address=0x7F0000001080, size_bytes=0x200, source_id=1)  # fmt: skip
    p.add("code_objects", code_object_id=2, function_id=3, process_id=0, kind="stub", create_ns=2,
          start_address=0x7F0000002000, size_bytes=0x40, source_id=1)  # fmt: skip
    p.add(
        "code_moves",
        code_object_id=2,
        ts_ns=5004 * MS,
        old_address=0x7F0000002000,
        new_address=0x7F0000003000,
    )
    p.add("embedded_files", path="lib.js")
    frames = [
        {"function_id": 0, "mapping_id": 0, "relative_address": 0x1011, "line": 4, "kind": "native", "unwound_by": "callchain"},
        {"function_id": 1, "code_object_id": 0, "relative_address": 0x10, "line": 8, "column": 3, "kind": "jit"},
        {"function_id": 1, "code_object_id": 1, "relative_address": 0x20, "line": 9, "column": 9, "kind": "jit"},
        {"function_id": 2, "code_object_id": 1, "relative_address": 0x20, "line": 2, "column": 7, "kind": "jit", "inline_depth": 1},
        {"mapping_id": 0, "relative_address": 0x2000, "kind": "native", "unnamed_because": "no symbol covers this address"},
        {"function_id": 4, "relative_address": None, "address": 0xFFFFFFFF81000010, "kind": "kernel"},
        {"function_id": 3, "code_object_id": 2, "relative_address": 0x4, "kind": "jit"},
    ]  # fmt: skip
    for i, frame in enumerate(frames):
        p.add(
            "frames",
            **(
                {
                    "frame_id": i,
                    "address": frame["relative_address"],
                    "inline_depth": 0,
                    "unwound_by": "sampled",
                }
                | frame
            ),
        )
    # main, its four callees' stacks, and the stub.
    for i, (parent, frame) in enumerate([(None, 0), (0, 1), (0, 2), (2, 3), (0, 4), (0, 5), (None, 6)]):
        p.add("stacks", stack_id=i, parent_stack_id=parent, frame_id=frame, depth=0)
    for i, (thread, stack) in enumerate([(0, 1), (0, 3), (1, 6), (0, 3), (0, 4), (1, None), (0, 5)]):
        p.add(
            "samples",
            sample_id=i,
            ts_ns=(5000 + i) * MS,
            thread_id=thread,
            stack_id=stack,
            weight=1 * MS,
            weight_unit="ns",
            event="cpu-clock",
        )
    return p


def add_cache_miss(profile: FakeProfile) -> None:
    """Adds a sample of an event that counts cache misses: its weight, 100, is not a time."""
    profile.add(
        "samples",
        sample_id=9,
        ts_ns=5003 * MS,
        thread_id=0,
        stack_id=1,
        weight=100,
        weight_unit="events",
        event="cache-misses",
    )
