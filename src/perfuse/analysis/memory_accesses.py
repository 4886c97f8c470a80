"""Sampled accesses to memory: where the data came from, and whose it was."""

from dataclasses import dataclass
from typing import Literal

from perfuse.profile import Profile

AccessGroup = Literal["level", "object", "function"]


@dataclass(frozen=True, slots=True)
class AccessSum:
    """Accesses with something in common.

    Attributes:
        name: The level of the memory hierarchy and whether it was hit; the file whose mapping contains the data; or the
            function of the access. None where not recorded.
        operation: `load`, `store`, `prefetch` or `execute`; None where not recorded, or where several are counted.
        count: Number of sampled accesses.
        latency_cycles: Sum of their latencies; None where none was recorded.
        num_latencies: Number of accesses with a latency.
        remote: How many of them were served by another processor or node.
    """

    name: str | None
    operation: str | None
    count: int
    latency_cycles: int | None
    num_latencies: int
    remote: int


_NAMES = {
    "level": """level::VARCHAR || CASE WHEN level_hit THEN ' hit' WHEN NOT level_hit THEN ' miss' ELSE '' END""",
    "object": "d.path::VARCHAR",
    "function": "f.name::VARCHAR",
}
_JOINS = {
    "level": "",
    "object": """LEFT JOIN frames o ON o.frame_id = data_frame_id
        LEFT JOIN mappings d ON d.mapping_id = o.mapping_id""",
    "function": """JOIN samples s USING (sample_id) LEFT JOIN stacks k USING (stack_id)
        LEFT JOIN frames i ON i.frame_id = k.frame_id
        LEFT JOIN functions_of_stacks f ON f.function_id = i.function_id""",
}


def access_sums(profile: Profile, by: AccessGroup) -> list[AccessSum]:
    """Accesses by level and operation, by object, or by function: those with the largest latency first."""
    if not profile.has("memory_accesses"):
        return []
    condition = profile.selection.where("m.ts_ns", "t.thread_id")
    thread = "JOIN samples t USING (sample_id)" if profile.selection.selects_threads else ""
    operation = "operation::VARCHAR" if by == "level" else "NULL"
    rows = profile.sql(f"""
        SELECT {_NAMES[by]} AS name, {operation} AS op, count(*) AS num,
            sum(latency_cycles)::BIGINT AS latency, count(latency_cycles), count(*) FILTER (remote)
        FROM memory_accesses m {thread} {_JOINS[by]} {f"WHERE {condition}" if condition else ""}
        GROUP BY ALL ORDER BY latency DESC NULLS LAST, num DESC, name, op""").fetchall()
    return [AccessSum(*row) for row in rows]
