"""What was recorded: files, processes, threads, events, and which views there is something to see in."""

import shlex
from typing import TYPE_CHECKING, Any

from perfuse import _core
from perfuse.value_class import as_dict
from perfuse.viewer.answers.parameters import Parameters
from perfuse.viewer.answers.selected import Selected

if TYPE_CHECKING:
    from perfuse.viewer.session import Session


def overview(session: "Session", _parameters: Parameters) -> dict[str, Any]:
    """Everything that the page needs before it asks for parts."""
    return {**session.cached("overview", lambda: _overview(session)), "has": _has(session)}


def _overview(session: "Session") -> dict[str, Any]:
    from perfuse.exporters.palette import ORIGINS, SHADES
    from perfuse.reports.inputs import inputs, severity_counts
    from perfuse.reports.registry import choose_kind

    profile = session.profile
    tiers = dict(_core.tiers_of_origins())
    events = session.events()
    zero, last = session.times() if session.has_times() else (None, None)
    sizes = [recording.size_bytes for recording in profile.recordings]
    listed = [{**as_dict(one), "size_bytes": size} for one, size in zip(inputs(profile), sizes, strict=True)]
    threads = _threads(session)
    opened = Selected(profile, session, None, None, None, None)
    return {
        "title": profile.title,
        "files": listed,
        "zero_ns": None if zero is None else str(zero),
        "span_ns": None if zero is None or last is None else last - zero,
        "unit": _unit(session),
        "clock": profile.recordings[0].clock.kind if len({r.clock.kind for r in profile.recordings}) == 1 else None,
        "kind": choose_kind(profile, ()).name,
        "events": [
            {"name": e.name, "unit": e.unit, "samples": e.num_samples, "weight": e.weight, "is_sum": e.is_sum}
            for e in events
        ],
        "processes": _processes(session, threads),
        "threads": threads,
        "tiers": _tiers(session),
        "origins": [{**as_dict(origin), "tiers": tiers[origin.name]} for origin in ORIGINS],
        "shades": SHADES,
        "diagnostics": severity_counts(profile.diagnostics),
        "snapshots": _snapshots(session),
        "base": list(session.base_files),
        "selection": shlex.join(opened.options or []),
        "limits_ns": opened.limits_ns,
        **opened.command("report"),
    }


def _has(session: "Session") -> dict[str, bool]:
    profile = session.profile
    return {
        "samples": any(not event.is_sum for event in session.events()),
        "weights": bool(session.events()),
        "calls": profile.has_traces,
        "timeline": session.state()["timeline"] not in ("none", "failed"),
        "heap": bool(_snapshots(session)),
        "code": profile.has("code_objects"),
        "machine_code": profile.has("code_objects") or (profile.has_samples and profile.has("mappings")),
        "counters": profile.has("counter_samples"),
        "allocations": profile.has("allocations"),
        "gc": profile.has("slices"),
        "locks": profile.has("lock_events"),
    }


def _unit(session: "Session") -> str:
    """`ticks` where no file contains the length of a tick; then all times are in ticks."""
    return "ticks" if any(event.unit == "ticks" for event in session.events()) else "ns"


def _threads(session: "Session") -> list[dict[str, Any]]:
    """The threads, the heaviest first."""
    from perfuse.analysis.sampled import SampleFilter, call_tree, thread_labels
    from perfuse.table import Columns

    weights: dict[int, tuple[int, int]] = {}
    if session.events():
        tree = call_tree(session.profile, SampleFilter(session.events()[0].name), split_threads=True)
        for key, weight, samples in Columns(tree.weights("thread")).tuples("thread_id", "self_weight", "self_samples"):
            before = weights.get(key, (0, 0))
            weights[key] = before[0] + weight, before[1] + samples
    labels = dict(thread_labels(session.profile))
    zero = session.times()[0] if session.has_times() else 0
    rows = []
    for row in session.thread_rows():
        weight, samples = weights.get(row["thread"], (0, 0))
        times = {name: None if row[name] is None else row[name] - zero for name in ("start_ns", "end_ns")}
        rows.append({**row, **times, "label": labels[row["thread"]], "weight": weight, "samples": samples})
    return sorted(rows, key=lambda row: (-row["weight"], row["thread"]))


def _processes(session: "Session", threads: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The processes, the heaviest first."""
    from perfuse.table import Columns

    found = []
    for key, pid, name in Columns(session.profile.tables["processes"]).tuples("process_id", "pid", "name"):
        of = [row for row in threads if row["process"] == key]
        weight = sum(row["weight"] for row in of)
        found.append({"process": key, "pid": pid, "name": name, "weight": weight, "threads": [r["thread"] for r in of]})
    return sorted(found, key=lambda row: (-row["weight"], row["pid"]))


def _tiers(session: "Session") -> list[dict[str, Any]]:
    """Tiers of the code that ran, as in the report."""
    if not session.events():
        return []
    from perfuse.analysis.sampled import SampleFilter
    from perfuse.analysis.weights import Weights

    weights = Weights(session.profile, SampleFilter(session.events()[0].name))
    return [{"name": one.name, "weight": one.self_weight} for one in weights.groups("tier")]


def _snapshots(session: "Session") -> list[dict[str, Any]]:
    """The heap snapshots, in time order."""
    if not session.profile.has_heap_snapshots:
        return []

    def make() -> list[dict[str, Any]]:
        from perfuse.analysis.heap import snapshots

        rows = snapshots(session.profile)
        sizes = session.profile.heap_sizes() if rows else {}
        zero = session.times()[0] if session.has_times() else 0
        found = []
        for row in rows:
            objects, size = sizes.get(row.snapshot_id, (0, 0))
            found.append({"snapshot": row.snapshot_id, "ts_ns": row.ts_ns - zero, "objects": objects, "bytes": size})
        return found

    return session.cached("snapshots", make)
