"""Files: what they are, on which clock, how they were joined, and what was found in them."""

from typing import TYPE_CHECKING, Any

from perfuse.value_class import as_dict
from perfuse.viewer.answers.parameters import Parameters

if TYPE_CHECKING:
    from perfuse.viewer.session import Session


def inputs(session: "Session", _parameters: Parameters) -> dict[str, Any]:
    """The files, and their diagnostics with what they mean and what to do."""
    return session.cached("files", lambda: _inputs(session))


def _inputs(session: "Session") -> dict[str, Any]:
    from perfuse import explain
    from perfuse.reports.inputs import inputs as listed

    profile = session.profile
    joins = {join.path: as_dict(join) for join in profile.joins}
    rows = []
    for one, recording in zip(listed(profile), profile.recordings, strict=True):
        span = recording.summary.span
        rows.append(
            {
                **as_dict(one),
                "size_bytes": recording.size_bytes,
                "role": recording.role,
                "records": recording.summary.records,
                "span_ns": span if span is None else [str(span[0]), str(span[1])],
                "clock": recording.clock._asdict(),
                "joined": joins.get(recording.path),
            }
        )
    found = []
    for diagnostic in profile.diagnostics:
        rule = explain(diagnostic.code)
        found.append(
            {
                "code": diagnostic.code,
                "severity": diagnostic.severity,
                "path": diagnostic.path,
                "message": diagnostic.message,
                "offset": diagnostic.offset,
                "field": diagnostic.field,
                "count": diagnostic.count,
                "section": diagnostic.section,
                "title": rule.title,
                "meaning": rule.meaning,
                "action": rule.action,
            }
        )
    unwound = None if profile.unwinding is None else as_dict(profile.unwinding)
    return {"files": rows, "diagnostics": found, "unwound": unwound, "command": session.command("check")}
