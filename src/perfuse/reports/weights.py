"""Who the samples belong to: SQL over samples, stacks, frames and what they point to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perfuse.profile import Profile

FRAME_NAMES = """
    SELECT frame_id,
           CASE WHEN functions.name IS NOT NULL THEN functions.name::VARCHAR ELSE '[unknown]' END AS name,
           coalesce(modules.name::VARCHAR, mappings.path::VARCHAR, '') AS module,
           functions.path::VARCHAR AS path,
           functions.line AS line,
           frames.kind::VARCHAR AS kind,
           code_objects.tier::VARCHAR AS tier,
           frames.unnamed_because::VARCHAR AS unnamed_because
    FROM frames
    LEFT JOIN functions ON functions.function_id = frames.function_id
    LEFT JOIN modules ON modules.module_id = functions.module_id
    LEFT JOIN mappings ON mappings.mapping_id = frames.mapping_id
    LEFT JOIN code_objects ON code_objects.code_object_id = frames.code_object_id
"""
"""A row a frame: what to call it."""


@dataclass(frozen=True, slots=True)
class Event:
    """What was sampled: `weight` is in `unit` (`ns` or `events`)."""

    name: str
    samples: int
    weight: int
    unit: str


@dataclass(frozen=True, slots=True)
class FunctionWeight:
    """What a function cost: by itself, and with all it called (recursion counted once).

    `path` and `line` are where it is declared; `tiers` its compiler tiers, the most expensive first.
    """

    name: str
    module: str
    path: str | None
    line: int | None
    kind: str
    tiers: str | None
    self_weight: int
    total_weight: int
    samples: int


@dataclass(frozen=True, slots=True)
class Share:
    """What one group of samples cost, grouped by where their innermost frame is."""

    name: str
    kind: str
    self_weight: int
    samples: int


def events(profile: Profile) -> list[Event]:
    """Every event sampled, the one with the most samples first."""
    rows = profile.sql(
        "SELECT event::VARCHAR, count(*), sum(weight)::HUGEINT, any_value(weight_unit)::VARCHAR FROM samples"
        " GROUP BY 1 ORDER BY 2 DESC, 1"
    ).fetchall()
    return [Event(name, samples, int(weight), unit) for name, samples, weight, unit in rows]


def function_weights(profile: Profile, event: str) -> list[FunctionWeight]:
    """Every function of the stacks that were sampled, in no order. The same function of two processes is one."""
    rows = profile.sql(f"""
        WITH RECURSIVE
        names AS ({FRAME_NAMES}),
        leaves AS (
            SELECT stack_id, sum(weight)::HUGEINT AS weight, count(*) AS samples FROM samples
            WHERE event = {quoted(event)} AND stack_id IS NOT NULL GROUP BY 1),
        on_stack AS (
            SELECT stack_id AS leaf, stack_id AS reached, TRUE AS innermost FROM leaves
            UNION ALL
            SELECT leaf, parent_stack_id, FALSE FROM on_stack JOIN stacks ON stacks.stack_id = reached
            WHERE parent_stack_id IS NOT NULL),
        once AS (
            SELECT leaf, name, module, path, line, any_value(names.kind) AS kind, bool_or(innermost) AS innermost,
                   coalesce(max(tier) FILTER (innermost), max(tier)) AS tier
            FROM on_stack JOIN stacks ON stacks.stack_id = reached JOIN names USING (frame_id)
            GROUP BY leaf, name, module, path, line),
        by_tier AS (
            SELECT name, module, path, line, any_value(kind) AS kind, tier, sum(weight) AS total,
                   coalesce(sum(weight) FILTER (innermost), 0) AS self,
                   coalesce(sum(samples) FILTER (innermost), 0) AS samples
            FROM once JOIN leaves ON leaf = leaves.stack_id GROUP BY name, module, path, line, tier)
        SELECT name, module, path, line, any_value(kind), string_agg(tier, ', ' ORDER BY self DESC, total DESC, tier),
               sum(self), sum(total), sum(samples)
        FROM by_tier GROUP BY name, module, path, line""").fetchall()
    return [
        FunctionWeight(name, module, path, line, kind, tiers, int(self), int(total), int(samples))
        for name, module, path, line, kind, tiers, self, total, samples in rows
    ]


def shares(profile: Profile, event: str, by: str) -> list[Share]:
    """Self weight by `module`, `tier`, `thread` or `process`, heaviest first."""
    group = {
        "module": "CASE WHEN module = '' THEN '[' || names.kind || ']' ELSE module END",
        "tier": "CASE WHEN names.kind = 'jit' THEN coalesce(tier, 'jit') ELSE coalesce(names.kind, 'no stack') END",
        "thread": "coalesce(threads.name::VARCHAR, '?') || ' ' || tid",
        "process": "coalesce(processes.name::VARCHAR, '?') || ' ' || pid",
    }[by]
    kind = "mode(coalesce(names.kind, 'unknown'))" if by in {"module", "tier"} else "''"
    rows = profile.sql(f"""
        WITH names AS ({FRAME_NAMES})
        SELECT {group} AS name, {kind}, sum(weight)::HUGEINT AS self, count(*)
        FROM samples
        JOIN threads ON threads.thread_id = samples.thread_id
        JOIN processes ON processes.process_id = threads.process_id
        LEFT JOIN stacks ON stacks.stack_id = samples.stack_id
        LEFT JOIN names ON names.frame_id = stacks.frame_id
        WHERE event = {quoted(event)} GROUP BY 1 ORDER BY self DESC, name""").fetchall()
    return [Share(name or "", kind, int(weight), samples) for name, kind, weight, samples in rows]


def quoted(text: str) -> str:
    """The text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"
