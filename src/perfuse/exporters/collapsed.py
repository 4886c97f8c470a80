"""Collapsed ("folded") stacks, as FlameGraph and inferno read them: `root;caller;callee COUNT` a line."""

from collections import Counter
from typing import IO, Literal

from perfuse.analysis.sampled import chosen_event
from perfuse.errors import UsageError
from perfuse.exporters.source import SUMMED, Source, text
from perfuse.exporters.tree import name_tree

_ROOTS = {
    "process": "coalesce(p.name::VARCHAR, p.pid::VARCHAR)",
    "thread": "coalesce(t.name::VARCHAR, p.name::VARCHAR, '') || '-' || p.pid || '/' || coalesce(t.tid, t.thread_id)",
    "none": "NULL::VARCHAR",
}
_WEIGHTS = {"samples": f"sum(if(event::VARCHAR IN ({SUMMED}), weight, 1))", "events": "sum(weight)"}

# The suffixes flamegraph.pl --color=java and inferno colour by.
_ANNOTATED = """
    label || CASE
        WHEN inline_depth > 0 THEN '_[i]'
        WHEN kind = 'kernel' THEN '_[k]'
        WHEN kind = 'jit' THEN '_[j]'
        ELSE '' END
"""


def write(
    profile: Source,
    out: IO[bytes],
    *,
    root: Literal["process", "thread", "none"] = "process",
    annotate: bool = False,
    weight: Literal["samples", "events"] = "samples",
    event: str | None = None,
) -> None:
    """Writes collapsed stacks, sorted.

    A `;` in a name would cut it in two and the format has no escape: it is written as `:`, and white space as
    one space.

    Args:
        profile: What to write.
        out: Where to.
        root: What stands before the outermost function: the process's name, the thread as `name-pid/tid`, or
            nothing.
        annotate: Whether to add `_[j]` to JIT code, `_[k]` to the kernel's and `_[i]` to inlined functions.
        weight: What is counted: samples, or what they stand for (nanoseconds where the event is a clock). Of a call
            trace and of allocations it is what they stand for in any case: `wall-time`, `calls`, `allocated-bytes` or
            `allocations`.
        event: Event; by default the one with the most samples.

    Raises:
        UsageError: An option has no such value, or there are no samples of that event.
    """
    for option, value, known in (("root", root, _ROOTS), ("weight", weight, _WEIGHTS)):
        if value not in known:
            raise UsageError(f"{option} is one of {', '.join(known)}, not {value!r}", field=option)
    tree = name_tree(profile, _ANNOTATED if annotate else "label")
    names = [_one_frame(name) for name in tree.names]
    rows = profile.sql(f"""
        SELECT {_ROOTS[root]} AS root, stack_id, {_WEIGHTS[weight]}
        FROM samples JOIN threads t USING (thread_id) JOIN processes p USING (process_id)
        WHERE coalesce(event::VARCHAR, '') = {text(chosen_event(profile, event).name or "")}
        GROUP BY ALL
    """).fetchall()
    counts: Counter[tuple[str | None, int]] = Counter()
    for start, stack, count in rows:
        counts[start, -1 if stack is None else tree.node_of[stack]] += count
    lines = []
    for (start, node), count in counts.items():
        frames = [names[label] for label in tree.path(node)]
        if start is not None:
            frames.insert(0, _one_frame(start))
        lines.append(f"{';'.join(frames or ['[no stack]'])} {count}\n")
    lines.sort()
    out.writelines(line.encode() for line in lines)


def _one_frame(name: str) -> str:
    return " ".join(name.replace(";", ":").split()) or "[unknown]"
