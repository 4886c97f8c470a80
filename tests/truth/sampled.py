"""The innermost JIT frame of each sample, as perfuse reports it."""

from dataclasses import dataclass
from pathlib import Path

import perfuse

_LEAVES = """
    SELECT s.ts_ns, f.address, c.start_address, c.code_index, n.name, n.linkage_name, c.tier,
           f.path, f.line, f.column
    FROM samples s
    JOIN threads t ON t.thread_id = s.thread_id
    JOIN processes p ON p.process_id = t.process_id
    JOIN stacks k ON k.stack_id = s.stack_id
    JOIN frames f ON f.frame_id = k.frame_id
    JOIN code_objects c ON c.code_object_id = f.code_object_id
    JOIN functions n ON n.function_id = c.function_id
    WHERE f.kind = 'jit' AND (t.tid = p.pid OR NOT $main_thread_only)
    ORDER BY s.ts_ns
"""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A sample that was taken in JIT code."""

    ts_ns: int
    address: int
    start_address: int
    code_index: int
    name: str
    linkage_name: str
    tier: str | None
    path: str | None
    line: int | None
    column: int | None

    @property
    def code_offset(self) -> int:
        """Bytes from the start of the code."""
        return self.address - self.start_address


def leaves(perf_data: Path, dump: Path, *, main_thread_only: bool = True) -> list[Leaf]:
    """Samples whose innermost frame is JIT code, in time order."""
    query = _LEAVES.replace("$main_thread_only", str(main_thread_only).lower())
    return [Leaf(*row) for row in perfuse.fuse(str(perf_data), str(dump)).sql(query).fetchall()]


def share(right: int, total: int, at_least: int) -> float:
    """Share of the samples that are right; fails where there are too few for a meaningful share."""
    assert total >= at_least, f"only {total} samples, which shows nothing"
    return right / total
