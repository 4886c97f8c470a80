"""The page of `perfuse view` with its data in one file: overview, timeline, flame graph, tree, functions, callers.

Times are selected in steps: the call tree of each step is folded here, and the page adds them up.
"""

import base64
import html
import struct
import zlib
from array import array
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from arro3.core import Table

from perfuse.analysis.flame import FlameTree
from perfuse.errors import ExportError, UsageError
from perfuse.reports.json_text import json_text
from perfuse.reports.text import printable
from perfuse.viewer import bundle
from perfuse.viewer.container import container
from perfuse.viewer.parts import part_of

if TYPE_CHECKING:
    from perfuse.analysis.sampled import Event
    from perfuse.profile import Profile
    from perfuse.viewer.session import Session

MOST_SLICES = 250_000
"""Slices of the timeline that a file may have."""
MOST_BYTES = 24 << 20
"""Size of a file."""
NUM_STEPS = 100
STYLES = ("flame/flame.css", "view/view.css", "view/panels.css", "annotate/view.css")
SLICE_COLUMNS = {"track": "u16", "depth": "u16", "index": "u32", "start": "f64", "duration": "f64", "symbol": "u32"}
STEP_COLUMNS = {"node": "u32", "step": "u16", "samples": "u32", "weight": "f64"}
LIMIT_HINT = "`perfuse view` shows it without a limit; --between A..B selects a part of the time"


MOST_SAMPLES = 250_000


class TooLargeError(ExportError):
    """The page would be larger than browsers open well."""


def takes(profile: "Profile") -> bool:
    """Whether there is something with a time and a weight to show; filters of stacks do not apply to timelines."""
    from perfuse.analysis.sampled import events

    return not profile.stack_filter and profile.span_ns is not None and bool(events(profile))


def page(profile: "Profile", paths: Sequence[str], options: Sequence[str] = (), *, state: str = "") -> str:
    """The page as text.

    Args:
        profile: The profile.
        paths: The files, as a command names them.
        options: Further options of commands about them.
        state: What is shown first, as in the address of `perfuse view`: `tab=flame&dir=inverted`.

    Raises:
        TooLargeError: It would be larger than a browser opens well.
        UsageError: The profile has nothing that the page shows.
    """
    from perfuse.viewer.session import Session

    _check_size(profile)
    session = Session(lambda _progress: profile, paths, options)
    session.open_now()
    if not session.events():
        raise UsageError("there is nothing with a weight to show", hint="perfuse report shows what was recorded")
    answers, slices = _answers(session)
    tree, steps = _trees(session)
    data = {
        "state": html.escape(state),
        "profile": _packed(tree),
        "answers": _packed(json_text(answers, indent=None).encode("utf-8", "backslashreplace")),
        "slices": _packed(_columns(SLICE_COLUMNS, slices)),
        "steps": _packed(_columns(STEP_COLUMNS, steps)),
    }
    title = f"{printable(profile.title)} · perfuse"
    text = bundle.page(title, "view/file.html", styles=STYLES, module="view/main_file", data=data)
    if len(text) > MOST_BYTES:
        raise TooLargeError(
            f"the page would have {len(text) / 1e6:.0f} MB, more than {MOST_BYTES / 1e6:.0f}", hint=LIMIT_HINT
        )
    return text


def _check_size(profile: "Profile") -> None:
    """Refuses what is surely too large, before it is computed.

    Raises:
        TooLargeError: It is.
    """
    from perfuse.analysis.sampled import events

    num_calls = profile.count_rows("call_events", kinds=("enter",)) if profile.has("call_events") else 0
    num_samples = sum(one.num_samples for one in events(profile) if not one.is_sum)
    if num_calls > MOST_SLICES or num_samples > MOST_SAMPLES:
        found = f"{num_calls:,} calls" if num_calls > MOST_SLICES else f"{num_samples:,} samples"
        raise TooLargeError(f"{found} are more than the {MOST_SLICES:,} of a page", hint=LIMIT_HINT)


def _columns(kinds: Mapping[str, str], columns: Mapping[str, bytes]) -> bytes:
    return container({}, {name: (kind, columns[name]) for name, kind in kinds.items()})


def _packed(data: bytes) -> str:
    """Base64 of deflated bytes: no name can contain the end tag of the element."""
    return base64.b64encode(zlib.compress(data, 6)).decode("ascii")


def _answers(session: "Session") -> tuple[dict[str, Any], dict[str, bytes]]:
    """Answers of the server that the page needs whole, and the slices of the timeline."""
    from perfuse.viewer.answers.inputs import inputs
    from perfuse.viewer.answers.overview import overview
    from perfuse.viewer.answers.parameters import Parameters
    from perfuse.viewer.answers.timeline import symbol_columns, timeline

    nothing = Parameters("")
    shown = overview(session, nothing)
    event = session.events()[0]
    absent = ("calls", "heap", "code", "machine_code", "counters", "allocations", "gc", "locks")
    shown["has"] = {**shown["has"], **dict.fromkeys(absent, False), "samples": True, "weights": True}
    shown["events"] = shown["events"][:1]
    shown["snapshots"] = []
    shown["embedded"] = {"steps": NUM_STEPS, "event": event.name}
    found: dict[str, Any] = {"overview": shown, "files": inputs(session, nothing)}
    slices: dict[str, bytes] = dict.fromkeys(SLICE_COLUMNS, b"")
    if shown["has"]["timeline"]:
        of = session.timeline
        if of.num_slices > MOST_SLICES:
            message = f"the timeline has {of.num_slices:,} slices, more than {MOST_SLICES:,}"
            raise TooLargeError(message, hint=LIMIT_HINT)
        found["timeline"] = {**timeline(session, nothing), "counters": []}
        symbols = of.symbols
        found["symbols"] = {"first": 0, "num_symbols": len(symbols), "symbols": symbol_columns(symbols)}
        slices = _slices(session)
    return found, slices


def _slices(session: "Session") -> dict[str, bytes]:
    """All slices, by track, depth and start."""
    of = session.timeline
    places = (
        (track.number, depth, position)
        for track in of.tracks
        for depth, num in enumerate(track.slices)
        for position in range(num)
    )
    rows = [one for one in map(of.slice, places) if one is not None]
    rows.sort(key=lambda one: one.place)
    columns: dict[str, list[Any]] = {
        "track": [one.track for one in rows],
        "depth": [one.depth for one in rows],
        "index": [one.position for one in rows],
        "start": [float(one.start_ns - of.zero_ns) for one in rows],
        "duration": [float(one.duration_ns) for one in rows],
        "symbol": [one.symbol for one in rows],
    }
    return {name: _column(kind, columns[name]) for name, kind in SLICE_COLUMNS.items()}


def _column(kind: str, values: Sequence[Any]) -> bytes:
    return array({"u16": "H", "u32": "I", "f64": "d"}[kind], values).tobytes()


_Nodes = list[tuple[int, int, int, int, float]]


def _nodes(tree: Any) -> _Nodes:
    """Parent (-1 for none), symbol, thread, own samples and own weight of each node, callers first."""
    data = tree.to_bytes()
    num = len(data) // 24
    distance, symbol, thread, samples = (struct.unpack_from(f"<{num}I", data, 4 * num * n) for n in range(4))
    weights = struct.unpack_from(f"<{num}d", data, 16 * num + 16 * num % 8)
    parents = [at - by if by else -1 for at, by in enumerate(distance)]
    return list(zip(parents, symbol, thread, samples, weights, strict=True))


def _keys(tree: Any) -> list[tuple[Any, ...]]:
    """What identifies each symbol of a tree in another tree."""
    table = Table.from_arrow(tree.symbols())
    names = ("name", "module", "tier", "origin", "path", "line", "unnamed_because")
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))


def _trees(session: "Session") -> tuple[bytes, dict[str, bytes]]:
    """The call tree of everything as `flame.html` has it, and what each of its nodes has in each step of the time."""
    from perfuse.viewer.answers.selected import Selected
    from perfuse.viewer.answers.tree import tree_bytes

    event = session.events()[0].name
    whole = FlameTree.of(session.profile, event=event)
    opened = Selected(session.profile, session, None, None, None, None)
    packed = tree_bytes(whole, 0.0, {**opened.command_of_weights("flame", "-o", "flame.html")})
    tree = whole.tree(split_threads=True)
    of_path: dict[tuple[Any, ...], int] = {}
    keys = _keys(tree)
    for number, (parent, symbol, thread, _, _) in enumerate(_nodes(tree)):
        of_path[parent, keys[symbol], thread] = number
    rows: list[tuple[int, int, int, float]] = []
    if session.has_times():
        zero, last = session.times()
        edges = [(last - zero + 1) * step // NUM_STEPS for step in range(NUM_STEPS + 1)]
        for step, (start, end) in enumerate(pairwise(edges)):
            if start == end:
                continue
            found = _tree_of(session.profile, session.events()[0], zero, (start, end))
            if found is not None:
                rows += _of_step(found, step, of_path)
    columns = [[row[n] for row in rows] for n in range(len(STEP_COLUMNS))]
    return packed, {
        name: _column(kind, values) for (name, kind), values in zip(STEP_COLUMNS.items(), columns, strict=True)
    }


def _tree_of(profile: "Profile", event: "Event", zero_ns: int, time_ns: tuple[int, int]) -> Any:
    """The call tree of a part of the time; None where nothing was recorded in it."""
    start, end = time_ns
    try:
        if not event.is_sum:
            times = (zero_ns + start, zero_ns + end)
            return FlameTree.of(profile, event=event.name, time_ns=times).tree(split_threads=True)
        # Sums of calls have no time of their own: the calls are cut, then summed.
        part = part_of(profile, zero_ns, start, end, None)
        return FlameTree.of(part, event=event.name).tree(split_threads=True)
    except UsageError:
        return None


def _of_step(tree: Any, step: int, of_path: dict[tuple[Any, ...], int]) -> list[tuple[int, int, int, float]]:
    """Nodes of the whole tree with what they have in a step."""
    keys = _keys(tree)
    numbers: list[int] = []
    rows = []
    for parent, symbol, thread, samples, weight in _nodes(tree):
        number = of_path[-1 if parent < 0 else numbers[parent], keys[symbol], thread]
        numbers.append(number)
        if samples or weight:
            rows.append((number, step, samples, weight))
    return rows
