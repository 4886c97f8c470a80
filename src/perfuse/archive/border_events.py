"""Calls and events of a range of time of a saved profile, without the copies of its recordings."""

from typing import TYPE_CHECKING, Any

from perfuse import _core

if TYPE_CHECKING:
    from perfuse.archive.opening import SavedContents

BORDER_EVENTS = "resolved/border_events.parquet"
"""Rows of `call_events` that calls of any range need."""

ROLES = frozenset({"samples", "code_dump", "unwind_tables", "call_trace"})
"""Roles of recordings whose calls and events of a range are read from the saved tables."""

MOST_GROUPS = 0.5
"""Of a greater share of the row groups of `call_events` the copies are read, which are smaller."""


def events_of_range(contents: "SavedContents", time_ns: tuple[int, int]) -> _core.Profile | None:
    """What has the calls and events of a range of time; None where they are read from the copies.

    Raises:
        UnreadableInput: The file is damaged, or contradicts itself.
    """
    manifest, core = contents.manifest, contents.core
    if BORDER_EVENTS not in contents.members or "call_events" not in contents.tables:
        return None
    facts = [contents.facts(number) for number in range(len(manifest.inputs))]
    stated = [one for one in facts if one is not None and one.keys is not None]
    if len(stated) < len(facts) or not all(one.role in ROLES for one in contents.recordings):
        return None
    groups = _core.saved_range_groups(core, time_ns)
    if groups is None or groups[0] > groups[1] * MOST_GROUPS:
        return None
    with contents.readable():
        events = _core.saved_range(core, time_ns)
        if events is None:
            return None
        placed = []
        for number, (one, known) in enumerate(zip(manifest.inputs, stated, strict=True)):
            keys = dict(known.keys or {})
            recording = events.recording(one.format, number, sorted(known.tables), keys, known.span, one.clock)
            placed.append(_core.Placed(recording, one.clock, one.pid))
        joined: Any = None if manifest.joined_rows is None else list(manifest.joined_rows)
        return events.profile(placed, (joined, list(manifest.named_rows)), manifest.partial)
