"""Findings in the joined tables: programs that were not verified, incomplete stacks, dumps that no sample needs."""

import os
import stat
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from perfuse.diagnostics import Diagnostic, diagnostic
from perfuse.filters.stacks import StackFilter
from perfuse.joins import Join, Unwinding
from perfuse.recording import Recording
from perfuse.table import Columns
from perfuse.value_class import replace

_SHOWN = 3


class JoinedProfile(Protocol):
    """A profile of joined recordings."""

    @property
    def tables(self) -> Mapping[str, Any]:
        """The common tables by name, each an Arrow stream."""
        ...

    @property
    def recordings(self) -> Sequence[Recording]:
        """The open files."""
        ...

    @property
    def joins(self) -> Sequence[Join]:
        """How each dump was joined with the samples."""
        ...

    @property
    def unwinding(self) -> Unwinding | None:
        """Totals of unwound stacks; None where there were none to unwind."""
        ...

    def has(self, table: str) -> bool:
        """Whether a table has rows."""
        ...

    stack_filter: StackFilter

    def filtered(self, stack_filter: StackFilter, /) -> "JoinedProfile":
        """The profile with another filter of its stacks."""
        ...


def unverified_programs(profile: JoinedProfile) -> list[Diagnostic]:
    """Programs and libraries that name samples and whose build id was not recorded, with what is known of them."""
    sampled = [one for one in profile.recordings if one.role == "samples" and one.entry.clock.kinds]
    if not sampled or not profile.has("callchains"):
        return []
    modules = Columns(profile.tables["modules"])
    rows = zip(modules["name"], modules["kind"], modules["build_id"], strict=True)
    paths = sorted({name for name, kind, build_id in rows if kind == "native" and build_id is None})
    recording = sampled[0].path
    recorded = _state(recording)
    changed: list[str] = []
    others: list[str] = []
    for path in paths:
        state = _state(path)
        if state is None:
            continue
        is_later = recorded is not None and state.st_mtime > recorded.st_mtime
        (changed if is_later else others).append(f"{path} ({state.st_size:,} bytes, changed {_time(state.st_mtime)})")
    found = [
        diagnostic("FU015", recording, f"{one}, after the recording was written ({_time(recorded.st_mtime)})")
        for one in changed
        if recorded is not None
    ]
    if others:
        more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        found.append(diagnostic("FU014", recording, f"no build ids: {', '.join(others[:_SHOWN])}{more}"))
    return found


def incomplete_stacks(profile: JoinedProfile) -> list[Diagnostic]:
    """A diagnostic for stacks that could not be unwound to their ends."""
    unwinding = profile.unwinding
    if unwinding is None:
        return []
    found, total = [], f"of {unwinding.num_stacks:,} stacks"
    stops = dict(unwinding.stops)
    stops.pop("outermost", 0)
    path = next(recording.path for recording in profile.recordings if recording.role == "samples")
    if cut := stops.pop("cut", 0):
        message = f"{cut:,} {total} end where the copy of {unwinding.cut_bytes or 0:,} bytes ends"
        found.append(replace(diagnostic("FU009", path, message), count=cut))
    if lost := sum(stops.values()):
        why = ", ".join(f"{count:,} {stop.replace('_', ' ')}" for stop, count in stops.items())
        found.append(replace(diagnostic("FU010", path, f"{lost:,} {total} are incomplete: {why}"), count=lost))
    return found


def unseen_dumps(profile: JoinedProfile) -> list[Diagnostic]:
    """Dumps of sampled processes whose code is in no stack."""
    joined = {join.path: join for join in profile.joins if join.pid is not None}
    dumps = [one for one in profile.recordings if one.role == "code_dump" and one.path in joined]
    if not dumps or not profile.has("callchains"):
        return []
    # Of all stacks: what a filter leaves says nothing about the dumps.
    whole = profile.filtered(StackFilter()) if profile.stack_filter else profile
    seen = {code for code in Columns(whole.tables["frames"])["code_object_id"] if code is not None}
    if len(dumps) == 1:
        unseen = dumps if not seen else []
    else:
        codes = Columns(profile.tables["code_objects"])
        sources = {
            source for code, source in zip(codes["code_object_id"], codes["source_id"], strict=True) if code in seen
        }
        unseen = [one for one in dumps if profile.recordings.index(one) not in sources]
    return [
        diagnostic("FU016", one.path, f"process {joined[one.path].pid}, {one.summary.producer or 'unknown producer'}")
        for one in unseen
    ]


def _state(path: str) -> os.stat_result | None:
    """Size and time of a file; None for what is not one."""
    try:
        state = os.stat(path)
    except OSError:
        return None
    return state if stat.S_ISREG(state.st_mode) else None


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
