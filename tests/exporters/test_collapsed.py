"""Collapsed stacks: exact lines, the format's own rules, and nothing lost."""

import io
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fake_profile import FakeProfile
from hypothesis import given, settings
from hypothesis import strategies as st
from perf_script import perf_script

from perfuse.errors import ExportError, UsageError
from perfuse.exporters import export

# flamegraph.pl and inferno: the count is the number after the last space; frames are split at `;`.
_LINE = re.compile(r"^(?P<stack>\S.*) (?P<count>\d+)$")


def collapsed(profile: Any, **options: Any) -> str:
    out = io.BytesIO()
    export(profile, out, to="collapsed", **options)
    return out.getvalue().decode()


def parse(text: str) -> Counter[tuple[str, ...]]:
    counts: Counter[tuple[str, ...]] = Counter()
    for line in text.splitlines():
        match = _LINE.match(line)
        assert match, line
        counts[tuple(match["stack"].split(";"))] += int(match["count"])
    return counts


def test_small_profile(small: FakeProfile) -> None:
    assert collapsed(small) == (
        "app 1\n"
        "app;Entry 1\n"
        "app;main;[unknown] app 1\n"
        "app;main;run 1\n"
        "app;main;run;add 2\n"
        "app;main;sys_read 1\n"
    )  # fmt: skip


def test_threads_and_annotations(small: FakeProfile) -> None:
    assert collapsed(small, root="thread", annotate=True) == (
        "app-10/10;main;[unknown] app 1\n"
        "app-10/10;main;run_[j] 1\n"
        "app-10/10;main;run_[j];add_[i] 2\n"
        "app-10/10;main;sys_read_[k] 1\n"
        "worker:1-10/11 1\n"
        "worker:1-10/11;Entry_[j] 1\n"
    )


def test_no_root_and_event_weights(small: FakeProfile) -> None:
    assert collapsed(small, root="none", weight="events") == (
        "Entry 1000000\n"
        "[no stack] 1000000\n"
        "main;[unknown] app 1000000\n"
        "main;run 1000000\n"
        "main;run;add 2000000\n"
        "main;sys_read 1000000\n"
    )


def test_a_profile_without_samples_is_refused() -> None:
    with pytest.raises(ExportError, match="no samples"):
        collapsed(FakeProfile())


def test_an_unknown_root_is_refused(small: FakeProfile) -> None:
    with pytest.raises(UsageError, match="root is one of process, thread, none"):
        collapsed(small, root="cpu")


@settings(deadline=None, max_examples=40)
@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\x00")), min_size=1, max_size=4))
def test_no_name_breaks_a_line(names: list[str]) -> None:
    profile = FakeProfile()
    profile.add("processes", process_id=0, pid=1, name="p")
    profile.add("threads", thread_id=0, process_id=0, tid=1)
    for i, name in enumerate(names):
        profile.add("functions", function_id=i, name=name, linkage_name=name)
        profile.add("frames", frame_id=i, function_id=i, kind="jit", inline_depth=0)
        profile.add("stacks", stack_id=i, parent_stack_id=i - 1 if i else None, frame_id=i, depth=i)
    profile.add(
        "samples", sample_id=0, ts_ns=0, thread_id=0, stack_id=len(names) - 1, weight=1, weight_unit="ns", event="cpu"
    )
    text = collapsed(profile)
    assert text.endswith("\n")
    ((stack, count),) = parse(text).items()
    assert count == 1
    assert len(stack) == len(names) + 1


def test_counts_are_perfs_own(expected_script: Path) -> None:
    """Every stack that perf printed, with as many samples."""
    profile = perf_script(expected_script)
    counts = parse(collapsed(profile, root="none"))
    assert counts == printed_stacks(profile)


def printed_stacks(profile: FakeProfile) -> Counter[tuple[str, ...]]:
    """The same computed from samples: each stack followed to its root."""
    parents = {
        stack: (parent, name)
        for stack, parent, name in profile.sql("""
            SELECT stack_id, parent_stack_id, coalesce(replace(fn.name, ';', ':'), CASE f.kind
                WHEN 'kernel' THEN '[unknown] kernel' WHEN 'jit' THEN '[unknown] jit'
                ELSE coalesce('[unknown] ' || parse_filename(m.path), '[unknown]') END)
            FROM stacks JOIN frames f USING (frame_id) LEFT JOIN functions fn USING (function_id)
            LEFT JOIN mappings m ON m.mapping_id = f.mapping_id
        """).fetchall()
    }
    counts: Counter[tuple[str, ...]] = Counter()
    for (stack,) in profile.sql("SELECT stack_id FROM samples").fetchall():
        path = []
        at = stack
        while at is not None:
            at, name = parents[at]
            path.append(name)
        counts[tuple(reversed(path)) or ("[no stack]",)] += 1
    return counts
