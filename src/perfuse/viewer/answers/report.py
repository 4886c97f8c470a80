"""The report of a selection: exactly what `perfuse report --json` prints."""

from typing import TYPE_CHECKING, Any

from perfuse.viewer.answers.parameters import Parameters, RequestError
from perfuse.viewer.answers.selected import Selected, selected

if TYPE_CHECKING:
    from perfuse.viewer.session import Session


def report(session: "Session", parameters: Parameters) -> dict[str, Any]:
    """The report; parameter `limit` is that of the command, 0 for all rows."""
    part = selected(session, parameters, takes_filters=True)
    limit = parameters.count("limit", 0)
    document = report_of(part, limit)
    options = ["--limit", str(limit)] if limit else []
    if part.event is not None:
        options += ["--event", part.event]
    return {"kind": document["kind"], "report": document, **part.command("report", *options, "--json")}


def report_of(part: Selected, limit: int = 0) -> dict[str, Any]:
    """The document of `perfuse report --json`."""

    def make() -> dict[str, Any]:
        from perfuse.reports.registry import choose_kind

        options: dict[str, Any] = {} if part.event is None else {"--event": part.event}
        kind = choose_kind(part.profile, list(options))
        if not kind.takes_selection and part.profile is not part.session.profile:
            raise RequestError(400, "empty", "nothing to report: no sample, call or event is in the selection")
        return kind.build(part.profile, {**options, "--limit": limit}).as_json()

    return part.session.cached(("report", part.key, limit), make)
