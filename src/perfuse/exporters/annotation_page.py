"""Annotated machine code as one HTML page, which works without a network."""

import html
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from perfuse.analysis.annotation import Annotation, Listing
from perfuse.analysis.source_files import SourceFiles
from perfuse.output.file import output_file
from perfuse.reports.annotation import annotation_json, callee_text, code_text
from perfuse.reports.names import where_text
from perfuse.viewer import bundle

STYLES = ("annotate/annotate.css", "annotate/listing.css")


def write_page(
    annotation: Annotation, listings: Sequence[Listing], sources: SourceFiles | None, path: str | Path
) -> None:
    """Writes the page; `-` is standard output.

    Args:
        annotation: The function.
        listings: The compilations whose code the page has.
        sources: Where source lines are looked up; None for none.
        path: File to write.
    """
    content = page(annotation, listings, sources).encode()
    if str(path) == "-":
        sys.stdout.buffer.write(content)
        return
    with output_file(Path(path)) as out:
        out.write(content)


def page_data(
    annotation: Annotation, listings: Sequence[Listing], sources: SourceFiles | None, *, opened: int
) -> dict[str, Any]:
    """What pages show: the report in the documented form, with the texts of instructions as the report prints them.

    Args:
        annotation: The function.
        listings: The compilations whose code is shown.
        sources: Where source lines are looked up; None for none.
        opened: Number of the compilation that is shown first.
    """
    data = annotation_json(annotation, listings, sources)
    for listing, row in zip(listings, data["listings"], strict=True):
        for one, shown in zip(listing.instructions, row["instructions"], strict=True):
            shown["shown"] = code_text(one, listing.compilation)
            shown["called"] = callee_text(one)
    data["opened"] = opened
    data["where"] = where_text(annotation.function)
    data["zero_ns"] = (annotation.span_ns or (0, 0))[0]
    return data


def page(annotation: Annotation, listings: Sequence[Listing], sources: SourceFiles | None) -> str:
    """The page as text. It opens at the hottest instruction of the hottest compilation."""
    numbers = [one.compilation.number for one in listings]
    opened = annotation.hottest.number if annotation.hottest.number in numbers else numbers[0]
    data = page_data(annotation, listings, sources, opened=opened)
    name = annotation.function.name
    # No text can contain the end tag of the element.
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")
    parts = {"title": html.escape(name), "data": text}
    return bundle.page(
        f"{name} · machine code", "annotate/annotate.html", styles=STYLES, module="annotate/page", data=parts
    )
