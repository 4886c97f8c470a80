"""The timeline: tracks, names, and tiles."""

from typing import TYPE_CHECKING, Any

from perfuse.viewer.answers.parameters import Parameters, RequestError
from perfuse.viewer.container import container

if TYPE_CHECKING:
    from perfuse.pictures.timeline import Symbol, Track
    from perfuse.viewer.session import Session

COLUMNS = {
    "tile": "i32",
    "track": "u16",
    "depth": "u16",
    "start": "f64",
    "duration": "f64",
    "symbol": "u32",
    "count": "u32",
    "busy": "f64",
    "index": "u32",
}
TILE_BUCKETS = 512
MOST_TILES = 64
MOST_TRACKS = 4096
MOST_K = 48
MOST_SYMBOLS = 50_000
TRACK_NAMES = {
    "calls": "calls",
    "samples": "sampled",
    "gc": "garbage collection",
    "jit": "compiler",
    "lock": "locks",
    "custom": "slices",
    "compile": "compiled code",
    "instants": "events",
    "state": "states",
    "cpu": "processor",
}


def timeline(session: "Session", _parameters: Parameters) -> dict[str, Any]:
    """The tracks, by process, thread and kind, and the counters."""
    state = session.state()["timeline"]
    if state in ("none", "failed"):
        _ = session.timeline  # raises why
    if state != "ready":
        return {"state": state, "tracks": [], "counters": [], "command": session.command("convert", "-o", "trace.json")}
    found = session.timeline
    processes = {row["thread"]: row["process"] for row in session.thread_rows()}
    rows = [_track(session, track, processes) for track in found.tracks]
    rows.sort(key=_place)
    span = max(1, session.times()[1] - session.times()[0])
    return {
        "state": state,
        "tracks": rows,
        "counters": _counters(session),
        "num_symbols": len(found.symbols),
        "finest_k": 0,
        "top_k": min(MOST_K, max(0, (span // TILE_BUCKETS).bit_length())),
        "bytes": found.num_bytes,
        "command": session.command("convert", "-o", "trace.json"),
    }


def _place(row: dict[str, Any]) -> tuple[int, ...]:
    """Processors first, then processes: those of all threads, then their threads."""
    of = -1 if row["process"] is None else row["process"]
    return of, row["cpu"] or 0, row["thread"] is not None, row["thread"] or 0, row["track"]


def _track(session: "Session", track: "Track", processes: dict[int, int]) -> dict[str, Any]:
    zero = session.times()[0]
    first, last = track.span_ns or (zero, zero)
    process = track.process_id if track.thread_id is None else processes.get(track.thread_id)
    return {
        "track": track.number,
        "kind": track.kind,
        "name": TRACK_NAMES[track.kind] if track.cpu is None else f"CPU {track.cpu}",
        "thread": track.thread_id,
        "process": process,
        "cpu": track.cpu,
        "depths": len(track.slices),
        "slices": sum(track.slices),
        "first_ns": first - zero,
        "last_ns": last - zero,
        "busy_ns": track.busy_ns,
    }


def _counters(session: "Session") -> list[dict[str, Any]]:
    """The counters with numbers as values, each with its process; None where several have the pid of its recording."""
    if not session.profile.has("counter_samples"):
        return []

    def make() -> list[dict[str, Any]]:
        rows = session.profile.sql(
            "SELECT c.counter_id, any_value(c.name), any_value(c.section), any_value(c.unit), min(s.value),"
            " max(s.value), count(s.value), any_value(c.source_id)"
            " FROM counters c JOIN counter_samples s USING (counter_id)"
            " WHERE s.value IS NOT NULL GROUP BY c.counter_id ORDER BY 3, 2, 1"
        ).fetchall()
        found = session.profile.sql("SELECT pid, min(process_id), count(*) FROM processes GROUP BY pid").fetchall()
        process_of = {pid: process for pid, process, number in found if number == 1}
        pids = session.profile.process_pids()
        names = ("counter", "name", "section", "unit", "min", "max", "num")
        return [
            {**dict(zip(names, row, strict=True)), "process": process_of.get(pids.get(source_id))}
            for *row, source_id in rows
        ]

    return session.cached("counters", make)


def symbols(session: "Session", parameters: Parameters) -> dict[str, Any]:
    """Names of slices by number, as columns."""
    found = session.timeline.symbols
    first = parameters.count("first", 0)
    limit = parameters.count("limit", MOST_SYMBOLS, most=MOST_SYMBOLS)
    return {"first": first, "num_symbols": len(found), "symbols": symbol_columns(found[first : first + limit])}


def symbol_columns(rows: "list[Symbol]") -> dict[str, Any]:
    """Symbols in the form of the flame graph's page."""
    from perfuse.filters.names import module_name

    def texts(values: list[str | None]) -> dict[str, Any]:
        numbers: dict[str, int] = {}
        ids = [-1 if value is None else numbers.setdefault(value, len(numbers)) for value in values]
        return {"texts": list(numbers), "ids": ids}

    return {
        "group_id": [row.group for row in rows],
        "name": [row.name for row in rows],
        "short_name": [row.short_name if row.short_name != row.name else None for row in rows],
        "line": [row.line for row in rows],
        "module": texts([module_name(row.module) if row.module else None for row in rows]),
        "tier": texts([row.tier for row in rows]),
        "origin": texts([row.origin for row in rows]),
        "path": texts([row.path for row in rows]),
        "unnamed_because": texts([row.unnamed_because for row in rows]),
    }


def tiles(session: "Session", parameters: Parameters) -> bytes:
    """Boxes of some tracks in some tiles: see `crates/engine/src/timeline/tile.rs`."""
    found = session.timeline
    k = parameters.required("k", most=MOST_K)
    first = parameters.required("first", least=-(2**30), most=2**30)
    last = parameters.required("last", least=first, most=2**30)
    tracks = parameters.keys("tracks") or ()
    least, most = _depths(parameters)
    if last - first >= MOST_TILES or len(tracks) > MOST_TRACKS:
        raise RequestError(400, "too_many", f"at most {MOST_TILES} tiles of {MOST_TRACKS} tracks at a time")
    rows = []
    for number in tracks:
        if number >= len(found.tracks):
            raise RequestError(400, "no_track", f"there is no track {number}")
        rows += [(number, depth) for depth in range(least, min(most + 1, len(found.tracks[number].slices)))]

    def make() -> bytes:
        columns = found.core.tiles(rows, k, first, last)
        if columns is None:
            raise RequestError(400, "too_many", "there are too many boxes", "ask for fewer tracks or tiles")
        head = {"kind": "tiles", "k": k, "first": first, "last": last}
        return container(head, {name: (kind, columns[name]) for name, kind in COLUMNS.items()})

    return make()


def _depths(parameters: Parameters) -> tuple[int, int]:
    """First and last depth of `depths=0-60`."""
    text = parameters.text("depths")
    if text is None:
        return 0, 2**16
    least, dash, most = text.partition("-")
    if not (dash and least.isdecimal() and most.isdecimal() and len(text) < 20 and int(least) <= int(most)):
        raise RequestError(400, "bad_parameter", "depths is a range such as 0-60")
    return int(least), int(most)
