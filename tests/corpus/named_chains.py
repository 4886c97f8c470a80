"""perfuse's answer for a recording in the form of `perf_script`: each sample's call chain and its JIT code."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import perfuse

_SAMPLES = """
    SELECT p.pid, t.tid, s.ts_ns // 1000, s.stack_id
    FROM samples s JOIN threads t USING (thread_id) JOIN processes p USING (process_id)
"""

_STACKS = """
    SELECT k.stack_id, k.parent_stack_id, f.inline_depth, c.code_index, n.linkage_name
    FROM stacks k
    JOIN frames f ON f.frame_id = k.frame_id
    LEFT JOIN code_objects c ON c.code_object_id = f.code_object_id
    LEFT JOIN functions n ON n.function_id = c.function_id
"""


@dataclass(frozen=True, slots=True)
class NamedFrame:
    """An address of a chain; both fields are None where it is not in JIT code."""

    code_index: int | None
    linkage_name: str | None


@dataclass(frozen=True, slots=True)
class NamedSample:
    """One sample, its frames innermost first, one for each address."""

    pid: int
    tid: int
    time_us: int
    frames: list[NamedFrame]


def read(perf_data: Path, dump: Path) -> Iterator[NamedSample]:
    """Every sample of the recording joined with the dump."""
    profile = perfuse.fuse(str(perf_data), str(dump))
    stacks = {row[0]: row[1:] for row in profile.sql(_STACKS).fetchall()}
    for pid, tid, time_us, innermost in profile.sql(_SAMPLES).fetchall():
        frames = []
        stack_id = innermost
        while stack_id is not None:
            stack_id, inline_depth, code_index, linkage_name = stacks[stack_id]
            if inline_depth == 0:
                frames.append(NamedFrame(code_index, linkage_name))
        yield NamedSample(pid, tid, time_us, frames)
