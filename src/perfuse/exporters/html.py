"""A flame graph as one HTML file, which works without a network."""

import base64
import html
import json
import re
import struct
import zlib
from collections.abc import Iterable
from dataclasses import asdict
from importlib.resources import files
from typing import IO, Any

from arro3.core import Table

from perfuse._core import __version__
from perfuse.analysis.flame import FlameTree, Metric
from perfuse.analysis.profiles import SampleProfile
from perfuse.analysis.sampled import thread_labels
from perfuse.exporters.contents import contents, note_other_events
from perfuse.exporters.palette import ORIGINS, SHADES
from perfuse.reports.names import module_name
from perfuse.reports.text import printable
from perfuse.table import SUM_EVENTS

MODULES = (
    "format",
    "symbols",
    "palette",
    "profile",
    "view",
    "search",
    "layout",
    "painter",
    "table",
    "tooltip",
    "address",
    "controls",
    "keys",
    "markup",
    "app",
    "main",
)
"""The viewer's modules, each after the modules it imports."""

_SYMBOL_COLUMNS = ("group_id", "name", "short_name", "module", "tier", "origin", "path", "line", "unnamed_because")
_IMPORT = re.compile(r'^import .*? from "\.\.?/[\w/]+\.js";\n', re.MULTILINE | re.DOTALL)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const|let)\b)", re.MULTILINE)


CONTENTS = contents(
    samples="sums by stack, of one event",
    calls="sums by stack, of one event",
    call_sums="sums by stack, of one event",
    allocations="sums by stack, of one event",
)


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
        UsageError: The profile has no such event.
    """
    flame = FlameTree.of(
        profile, inverted=inverted, weight=weight, event=event, threads=threads, processes=processes, time_ns=time_ns
    )
    if event is None:
        note_other_events(profile, flame.event.name)
    out.write(page(flame).encode())


def page(flame: FlameTree) -> str:
    """The page of a flame graph."""
    folder = files("perfuse.viewer") / "flame"
    parts = {
        "title": html.escape(printable(flame.title)),
        "style": (folder / "flame.css").read_text(encoding="utf-8"),
        "script": script(),
        # Base64 of deflated bytes: no name can contain the end tag of the element.
        "profile": base64.b64encode(packed(flame)).decode("ascii"),
    }
    template = (folder / "flame.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda slot: parts[slot[1]], template)


def script() -> str:
    """All modules of the viewer as one script: they import only each other, so their order replaces the imports."""
    return joined_modules([("flame", module) for module in MODULES])


def joined_modules(modules: Iterable[tuple[str, str]]) -> str:
    """Modules of viewers, by folder and name, as one script; each follows the modules it imports."""
    viewer = files("perfuse.viewer")
    sources = ((viewer / folder / f"{module}.js").read_text(encoding="utf-8") for folder, module in modules)
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", source)) for source in sources)


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
        if name in ("group_id", "line", "name"):
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
        "counted": flame.event.name not in SUM_EVENTS,
        "inverted": flame.inverted,
        "metric": flame.metric,
        "threads": thread_labels(flame.profile),
        "origins": [asdict(origin) for origin in ORIGINS],
        "shades": SHADES,
        "symbols": columns,
    }
