"""Section `calls`: number and duration of method calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perfuse.reports.calls import CallsReport, CallsRequest, body_lines, calls_report
from perfuse.reports.runtime.sections import RuntimeRequest, SectionContext
from perfuse.reports.text import Style

_HEADER = ("kind", "title", "inputs", "clocks", "instants", "diagnostics")


def collect(context: SectionContext) -> CallsReport | None:
    """Call statistics of the selected threads and time."""
    request = context.request
    data = calls_report(
        context.profile,
        CallsRequest(order=request.call_order, limit=request.rows(10), stacks=request.stacks, functions=True),
    )
    return data if data.totals.num_calls else None


def as_json(data: CallsReport) -> Any:
    """The JSON of the report of calls, without the facts about the whole profile."""
    return {name: value for name, value in data.as_json().items() if name not in _HEADER}


def lines(data: CallsReport, request: RuntimeRequest, style: Style) -> Iterator[str]:
    """Functions and stacks; threads too, where the section is shown in full."""
    return body_lines(data, style, brief=request.is_overview)
