"""What a fused profile tells: gathered once, then printed or given as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from perfuse.analysis.sampled import Event, SampleFilter, events
from perfuse.analysis.weights import FunctionWeight, GroupWeight, UnnamedFrames, Weights
from perfuse.errors import UsageError
from perfuse.reports.inputs import DiagnosticCount, Input, diagnostic_counts, inputs

if TYPE_CHECKING:
    from perfuse.profile import Profile

GROUPS = ("processes", "threads", "modules", "tiers")


@dataclass(frozen=True, slots=True)
class JoinedDump:
    """How a dump was found and put on the profile's clock."""

    path: str
    pid: int | None
    found_by: str
    alignment: str
    offset_ns: int
    uncertainty_ns: int | None


@dataclass(frozen=True, slots=True)
class Unwound:
    """How copies of stacks were unwound: frames by what found them, stacks by why they end."""

    num_stacks: int
    frames: dict[str, int]
    stops: dict[str, int]
    cut_bytes: int | None


@dataclass(frozen=True, slots=True)
class ProfileReport:
    """Everything `perfuse report` tells of samples; weights are of `event`, in `event.unit`."""

    title: str
    inputs: list[Input]
    joins: list[JoinedDump]
    unwound: Unwound | None
    start_ns: int
    duration_ns: int
    events: list[Event]
    top_self: list[FunctionWeight]
    top_total: list[FunctionWeight]
    processes: list[GroupWeight]
    threads: list[GroupWeight]
    modules: list[GroupWeight]
    tiers: list[GroupWeight]
    unnamed: list[UnnamedFrames]
    diagnostics: list[DiagnosticCount]

    @property
    def event(self) -> Event:
        """The event that is reported: the one with the most samples."""
        return self.events[0]

    def as_json(self) -> dict[str, Any]:
        """The contract of `report --json` for samples."""
        groups = {name: list(map(_group_json, getattr(self, name))) for name in GROUPS}
        functions = {name: list(map(_function_json, getattr(self, name))) for name in ("top_self", "top_total")}
        events = [
            {"name": one.name, "samples": one.num_samples, "weight": one.weight, "unit": one.unit}
            for one in self.events
        ]
        return {"kind": "samples", **asdict(self), "events": events, **functions, **groups}


def _function_json(one: FunctionWeight) -> dict[str, Any]:
    return {
        "name": one.name,
        "module": one.module or "",
        "path": one.path,
        "line": one.line,
        "kind": one.kind,
        "tiers": list(one.tiers),
        "self_weight": one.self_weight,
        "total_weight": one.total_weight,
        "samples": one.self_samples,
    }


def _group_json(one: GroupWeight) -> dict[str, Any]:
    return {"name": one.name, "kind": one.kind, "self_weight": one.self_weight, "samples": one.self_samples}


def profile_report(profile: Profile, limit: int = 20, event: str | None = None) -> ProfileReport:
    """Gathers the report of a profile with samples; `limit` functions, all with 0.

    Raises:
        UsageError: There are no samples (of that event).
    """
    weights = Weights(profile, SampleFilter(event=event))
    if not weights.event.num_samples:
        raise UsageError("there are no samples to report")
    found = events(profile)
    start = min(one.first_ns for one in found)
    return ProfileReport(
        title=profile.title,
        inputs=inputs(profile),
        joins=[
            JoinedDump(join.path, join.pid, join.how, join.alignment, join.offset_ns, join.uncertainty_ns)
            for join in profile.joins
        ],
        unwound=_unwound(profile),
        start_ns=start,
        duration_ns=max(one.last_ns for one in found) - start,
        events=sorted(found, key=lambda one: one != weights.event),
        top_self=[one for one in weights.functions(limit or None) if one.self_weight],
        top_total=[one for one in weights.functions(limit or None, order="total") if one.total_weight],
        processes=weights.groups("process"),
        threads=weights.groups("thread"),
        modules=weights.groups("module"),
        tiers=weights.groups("tier"),
        unnamed=weights.unnamed(),
        diagnostics=diagnostic_counts(profile),
    )


def _unwound(profile: Profile) -> Unwound | None:
    told = profile.unwinding
    return Unwound(told.num_stacks, told.frames, told.stops, told.cut_bytes) if told else None
