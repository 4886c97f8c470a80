"""A flame graph as one HTML file, which works without a network."""

import base64
import html
import json
import struct
import zlib
from typing import IO, Any

from arro3.core import Table

from perfuse._core import __version__
from perfuse.analysis.flame import FlameTree, Metric
from perfuse.analysis.profiles import SampleProfile
from perfuse.analysis.sampled import thread_labels
from perfuse.exporters.contents import STACKS_OF_ONE_EVENT, note_other_events
from perfuse.exporters.palette import ORIGINS, SHADES
from perfuse.exporters.source import no_samples_error
from perfuse.filters.names import module_name
from perfuse.reports.text import printable
from perfuse.value_class import as_dict
from perfuse.viewer import bundle

_NUMBERS = ("group_id", "function_id", "line")
_SYMBOL_COLUMNS = (*_NUMBERS, "name", "short_name", "module", "tier", "origin", "path", "unnamed_because")


CONTENTS = STACKS_OF_ONE_EVENT


def write(
    profile: SampleProfile,
    out: IO[bytes],
    *,
    inverted: bool = False,
    weight: Metric = "weight",
    event: str | None = None,
    threads: tuple[int, ...] | None = None,
    processes: tuple[int, ...] | None = None,
    time_ns: tuple[int, int] | None = None,
) -> None:
    """Writes a page with search, zoom, callers and callees, threads, and the heaviest functions.

    Args:
        profile: The profile.
        out: A binary file object.
        inverted: Whether callers are below callees when it opens.
        weight: Meaning of widths when it opens: `weight` or `samples`.
        event: Name of an event; by default the one with the most samples.
        threads: Keys (`thread_id`) of threads; all by default.
        processes: Keys (`process_id`) of processes; all by default.
        time_ns: Start and end (not included) on the profile's clock.

    Raises:
        ExportError: There are no samples.
        UsageError: The profile has no such event, thread or process.
    """
    flame = FlameTree.of(
        profile, inverted=inverted, weight=weight, event=event, threads=threads, processes=processes, time_ns=time_ns
    )
    if not flame.event.num_samples:
        raise no_samples_error(profile)
    if event is None:
        note_other_events(profile, flame.event.name)
    out.write(page(flame).encode())


def page(flame: FlameTree) -> str:
    """The page of a flame graph."""
    title = printable(flame.title)
    # Base64 of deflated bytes: no name can contain the end tag of the element.
    data = {"title": html.escape(title), "profile": base64.b64encode(packed(flame)).decode("ascii")}
    return bundle.page(
        f"{title} · flame graph", "flame/flame.html", styles=("flame/flame.css",), module="flame/main", data=data
    )


def packed(flame: FlameTree) -> bytes:
    """The data of the page, compressed: length of a JSON text, the text, padding to 8 bytes, the nodes of the tree."""
    tree = flame.tree(split_threads=True)
    text = json.dumps(description(flame, Table.from_arrow(tree.symbols())), separators=(",", ":")).encode()
    head = struct.pack("<I", len(text)) + text
    head += b" " * (-len(head) % 8)
    return zlib.compress(head + tree.to_bytes(), 6)


def description(flame: FlameTree, symbols: Table) -> dict[str, Any]:
    """What a page shows of a flame graph besides its nodes: title, event, threads, colours, and symbols by column."""
    columns: dict[str, Any] = {}
    for name in _SYMBOL_COLUMNS:
        values: list[Any] = list(symbols[name].to_pylist())
        if name == "module":
            values = [module_name(value) if value else None for value in values]
        if name in (*_NUMBERS, "name"):
            columns[name] = values
        elif name == "short_name":
            # Most names are equal to their short form.
            columns[name] = [
                short if short != full else None for short, full in zip(values, columns["name"], strict=True)
            ]
        else:
            texts = list(dict.fromkeys(value for value in values if value is not None))
            numbers = {text: number for number, text in enumerate(texts)}
            columns[name] = {"texts": texts, "ids": [numbers.get(value, -1) for value in values]}
    return {
        "title": flame.title,
        "version": __version__,
        "event": flame.event.name,
        "unit": flame.event.unit,
        "counted": flame.is_of_samples,
        "inverted": flame.inverted,
        "metric": flame.metric,
        "threads": thread_labels(flame.profile),
        "origins": [as_dict(origin) for origin in ORIGINS],
        "shades": SHADES,
        "symbols": columns,
    }
