"""The JVM, by perf's own JVMTI agent: sampled lines are lines of the method that was busy.

Debian ships no libperf-jvmti.so, so this is a stored recording and not a run; recorded/jvmti/README.md
describes how it was made.
"""

from pathlib import Path

import pytest

from .producers import PROGRAMS, function_lines, phases
from .sampled import leaves, share

RECORDED = Path(__file__).parent / "recorded" / "jvmti"
SOURCE = PROGRAMS / "Phases.java"


@pytest.mark.truth(recording="perf_openjdk", path="api:Profile.sql", source="the program's own times")
def test_samples_are_on_lines_of_the_method_that_was_busy() -> None:
    sampled = leaves(RECORDED / "perf.data.gz", RECORDED / "jit.dump.gz", main_thread_only=False)
    for phase in phases((RECORDED / "phases.txt").read_text(encoding="utf-8")):
        lines = function_lines(SOURCE, f"static int {phase.function}(")
        inside = [leaf for leaf in sampled if phase.start_ns <= leaf.ts_ns <= phase.end_ns]
        right = [
            leaf
            for leaf in inside
            if leaf.linkage_name == f"LPhases;{phase.function}(I)I" and leaf.line in lines and leaf.column is None
        ]
        assert share(len(right), len(inside), at_least=200) >= 0.99, phase.function
        assert {Path(leaf.path or "").name for leaf in right} == {"Phases.java"}
