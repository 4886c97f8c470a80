"""Section `calls`: how often methods were called, and how long they took."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perfuse.reports.calls import CallsReport, CallsRequest, body_lines, calls_report
from perfuse.reports.runtime.sections import Gathering, RuntimeRequest
from perfuse.reports.text import Style

_HEADER = ("kind", "title", "inputs", "clocks", "moments", "diagnostics")


def gather(of: Gathering) -> CallsReport | None:
    """The account of the selected threads and time."""
    asked = of.request
    told = calls_report(
        of.profile, CallsRequest(order=asked.call_order, limit=asked.rows(10), stacks=asked.stacks, functions=True)
    )
    return told if told.totals.num_calls else None


def as_json(told: CallsReport) -> Any:
    """As `report --json` has calls, without what is about the whole."""
    return {name: value for name, value in told.as_json().items() if name not in _HEADER}


def lines(told: CallsReport, asked: RuntimeRequest, style: Style) -> Iterator[str]:
    """Functions and stacks; threads too, where there is room."""
    return body_lines(told, style, brief=asked.is_overview)
