"""The difference of two groups of runs as one HTML file, which works without a network: a flame graph of both sides."""

from __future__ import annotations

import base64
import html
import json
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfuse.filters.names import function_text
from perfuse.output.file import output_file
from perfuse.reports.diff import header_fields
from perfuse.reports.names import source_place, where_texts
from perfuse.viewer import bundle

if TYPE_CHECKING:
    from perfuse.analysis.diff import FunctionChange
    from perfuse.analysis.diff_tree import StackDifference
    from perfuse.reports.diff import DiffReport


def write_page(report: DiffReport, path: str) -> None:
    """Writes the page to a file; `-` is standard output.

    Raises:
        ExportError: The file cannot be written.
    """
    data = page(report).encode()
    if path == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    with output_file(Path(path)) as out:
        out.write(data)


def page(report: DiffReport) -> str:
    """The page of a report whose stacks were compared."""
    assert report.stacks is not None
    text = json.dumps(_description(report, report.stacks), separators=(",", ":"), allow_nan=False)
    # Base64 of deflated bytes: no name can contain the end tag of the element.
    difference = base64.b64encode(zlib.compress(text.encode(), 6)).decode("ascii")
    data = {"title": html.escape(title(report)), "difference": difference}
    return bundle.page(
        f"{title(report)} · difference", "diff/diff.html", styles=("diff/diff.css",), module="diff/main", data=data
    )


def title(report: DiffReport) -> str:
    """What is compared with what."""
    base, new = (side[0].title for side in report.runs)
    return base if base == new else f"{base} > {new}"


def _description(report: DiffReport, stacks: StackDifference) -> dict[str, Any]:
    functions = stacks.functions
    nodes = stacks.nodes.functions
    ranked = functions.ranked(functions.functions)
    places = where_texts([one.named for one in functions.functions], source_place)
    totals = [one.figures["total"] for one in nodes]
    selfs = [one.figures["self"] for one in nodes]
    bounds = [_bounds(stacks, one) for one in nodes]
    return {
        "title": title(report),
        "unit": report.unit_of("total"),
        "summary": [[name, text if isinstance(text, str) else text[0]] for name, text in header_fields(report)],
        "hasIntervals": any(bound is not None for pair in bounds for bound in pair),
        "intervalText": _interval_text(stacks),
        "functions": [_function(*one) for one in zip(functions.functions, places, strict=True)],
        "order": [one.key for one in ranked if one.verdict != "same"],
        "nodes": {
            "parent": stacks.parents,
            "function": stacks.of_function,
            "base": [_number(one.base) for one in selfs],
            "new": [_number(one.new) for one in selfs],
            "baseTotal": [_number(one.base) for one in totals],
            "newTotal": [_number(one.new) for one in totals],
            "low": [low for low, _ in bounds],
            "high": [high for _, high in bounds],
        },
    }


def _interval_text(stacks: StackDifference) -> str:
    if stacks.nodes.has_one_run:
        return f"95 %, with {stacks.nodes.options.noise:.0%} of noise between runs assumed; one run proves nothing"
    return "95 %" + ("" if stacks.nodes.allows_verdicts else "; too few runs for a proof")


def _bounds(stacks: StackDifference, one: FunctionChange) -> tuple[float | None, float | None]:
    """The interval of the total of a node; where there are verdicts, those of unclear nodes contain 0."""
    change = one.figures["total"]
    if change.base == change.new:
        return 0.0, 0.0
    if change.estimate is None:
        return None, None
    low, high = change.estimate.bounds()
    if stacks.nodes.allows_verdicts and one.verdict not in ("changed", "new", "gone"):
        low, high = min(low, 0.0), max(high, 0.0)
    return round(low, 4), round(min(high, 1e6), 4)


def _function(one: FunctionChange, where: str) -> dict[str, Any]:
    name, short = one.named.name, function_text(one.named.name)
    change = one.figures["self"]
    return {
        "name": name,
        **({"short": short} if short != name else {}),
        "where": where,
        "verdict": one.verdict,
        "evidence": one.evidence,
        "base": _number(change.base),
        "new": _number(change.new),
    }


def _number(value: float | None) -> float:
    """A number of six digits; means over runs, shares and numbers per unit of work are not whole."""
    number = value or 0
    return int(number) if number == int(number) else float(f"{number:.6g}")
