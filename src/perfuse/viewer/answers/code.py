"""The life of JIT code: what was compiled in which tier, when it was replaced, and where it is."""

from typing import TYPE_CHECKING, Any

from perfuse.reports.units import hex_text
from perfuse.viewer.answers.parameters import Parameters, RequestError
from perfuse.viewer.answers.selected import Selected, selected

if TYPE_CHECKING:
    from perfuse.viewer.session import Session

SORTS = {
    "compilations": "num DESC, bytes DESC",
    "size": "bytes DESC",
    "time": "first_ns",
    "again": "again DESC, num DESC",
    "name": "name",
}
KEY = "name, path, line"
"""What functions are distinguished by; also their order where the sort leaves it open."""
MOST_FUNCTIONS = 500
MOST_COMPILATIONS = 200
"""Compilations of one function that an answer has; helpers of a runtime have thousands under one name."""
MOST_RANGES = 20_000
TIER = "coalesce(c.tier, c.kind)"


def _require(session: "Session") -> None:
    if not session.profile.has("code_objects"):
        raise RequestError(404, "not_recorded", "the recording has no JIT code")


def _selects(part: Selected) -> tuple[str, dict[str, Any]]:
    """The condition for code that is created in the selection."""
    values: dict[str, Any] = {}
    conditions = ["true"]
    if part.from_ns is not None or part.to_ns is not None:
        values["first"], values["end"] = part.time_ns
        conditions.append("c.create_ns >= $first AND c.create_ns < $end")
    if part.threads is not None:
        conditions.append(f"c.thread_id IN ({', '.join(map(str, part.threads)) or 'NULL'})")
    return " AND ".join(conditions), values


def code(session: "Session", parameters: Parameters) -> dict[str, Any]:
    """Functions with all their compilations, by page; `num_again` counts those in a tier that a function had before."""
    _require(session)
    part = selected(session, parameters)
    sort, pattern = parameters.choice("sort", tuple(SORTS)), parameters.text("q")
    offset, limit = parameters.count("offset", 0), parameters.count("limit", 100, most=MOST_FUNCTIONS)
    condition, values = _selects(part)
    tiers_values = dict(values)
    if pattern is not None:
        condition += " AND contains(lower(f.name), lower($pattern))"
        values["pattern"] = pattern
    grouped = (
        "SELECT min(function_id) AS function, f.name AS name, f.path AS path, f.line AS line,"
        " count(*) AS num, sum(c.size_bytes) AS bytes,"
        f" count(*) - count(DISTINCT ({TIER}, c.process_id)) AS again,"
        " min(c.create_ns) AS first_ns, list(c.code_object_id ORDER BY c.create_ns, c.code_object_id) AS ids"
        f" FROM code_objects c JOIN functions f USING (function_id) WHERE {condition}"
        " GROUP BY f.name, f.path, f.line"
    )
    sql = session.profile.sql
    [(num,)] = sql(f"SELECT count(*) FROM ({grouped})", values or None).fetchall()
    order = f"{SORTS[sort]}, {KEY}"
    rows = sql(f"{grouped} ORDER BY {order} LIMIT {limit} OFFSET {offset}", values or None).fetchall()
    compilations = _compilations(session, [key for row in rows for key in row[-1][:MOST_COMPILATIONS]])
    own_condition, _ = _selects(part)
    tiers = sql(
        f"SELECT {TIER} AS tier, count(*), sum(c.size_bytes) FROM code_objects c WHERE {own_condition}"
        " GROUP BY 1 ORDER BY 3 DESC, 1",
        tiers_values or None,
    ).fetchall()
    return {
        "num": num,
        "rows": [
            {
                "function": function,
                "name": name,
                "path": path,
                "line": line,
                "bytes": int(size),
                "num_compilations": count,
                "num_again": again,
                "compilations": [compilations[key] for key in ids[:MOST_COMPILATIONS]],
            }
            for function, name, path, line, count, size, again, _, ids in rows
        ],
        "tiers": [{"tier": tier, "num": count, "bytes": int(size)} for tier, count, size in tiers],
        **part.command("report"),
    }


def _compilations(session: "Session", keys: list[int]) -> dict[int, dict[str, Any]]:
    """Compilations by key."""
    if not keys:
        return {}
    zero = session.times()[0] if session.has_times() else 0
    rows = session.profile.sql(
        f"SELECT c.code_object_id, {TIER}, c.kind, c.create_ns, c.retire_ns, c.start_address, c.size_bytes,"
        f" c.process_id FROM code_objects c WHERE c.code_object_id IN ({', '.join(map(str, keys))})"
    ).fetchall()
    found = {}
    for key, tier, kind, created, retired, address, size, process in rows:
        found[key] = {
            "code": key,
            "tier": tier,
            "kind": kind,
            "create_ns": created - zero,
            "retire_ns": None if retired is None else retired - zero,
            "address": hex_text(address),
            "size_bytes": size,
            "process": process,
        }
    return found


def life(session: "Session", parameters: Parameters) -> dict[str, Any]:
    """When code ran: samples whose innermost frame is in code `codes`, by part of the time."""
    _require(session)
    part = selected(session, parameters)
    codes = parameters.keys("codes") or ()
    buckets = parameters.count("buckets", 200, least=1, most=2000)
    start, end = part.time_ns if session.has_times() else _code_span(session)
    width = max(1, -(-(end - start) // buckets))
    event = part.event or next((one.name for one in session.events() if not one.is_sum), None)
    rows: list[tuple[int, int, int, int, int]] = []
    if codes and event is not None:
        rows = part.profile.sql(
            "SELECT f.code_object_id, (s.ts_ns - $start) // $width, count(*), min(s.ts_ns), max(s.ts_ns)"
            " FROM samples s JOIN stacks USING (stack_id) JOIN frames f USING (frame_id)"
            f" WHERE f.code_object_id IN ({', '.join(map(str, codes))}) AND s.event::VARCHAR = $event GROUP BY 1, 2",
            {"start": start, "width": width, "event": event},
        ).fetchall()
    zero = session.times()[0] if session.has_times() else start
    found: dict[int, dict[str, Any]] = {}
    for code_object, bucket, count, first, last in sorted(rows):
        of = found.setdefault(
            code_object,
            {"code": code_object, "samples": 0, "first_ns": first - zero, "last_ns": 0, "buckets": [], "counts": []},
        )
        of["samples"] += count
        of["last_ns"] = last - zero
        of["buckets"].append(bucket)
        of["counts"].append(count)
    return {
        "from": start - zero,
        "to": start - zero + width * buckets,
        "bucket_ns": width,
        "event": event,
        "codes": list(found.values()),
        **part.command("report"),
    }


def over_time(session: "Session", parameters: Parameters) -> dict[str, Any]:
    """Number and size of code by tier and part of the time of its creation; and the size of all code that is live."""
    _require(session)
    part = selected(session, parameters)
    buckets = parameters.count("buckets", 300, least=1, most=4000)
    start, end = _code_span(session) if part.from_ns is None and part.to_ns is None else part.time_ns
    width = max(1, -(-(end - start) // buckets))
    rows = session.profile.sql(
        f"SELECT {TIER}, (c.create_ns - $start) // $width, count(*), sum(c.size_bytes) FROM code_objects c"
        " WHERE c.create_ns >= $start AND c.create_ns < $end GROUP BY 1, 2 ORDER BY 1, 2",
        {"start": start, "end": end, "width": width},
    ).fetchall()
    tiers = list(dict.fromkeys(row[0] for row in rows))
    num = -(-(end - start) // width)
    counts, sizes = ([[0] * num for _ in tiers] for _ in range(2))
    for tier, bucket, count, size in rows:
        counts[tiers.index(tier)][bucket] = count
        sizes[tiers.index(tier)][bucket] = int(size)
    zero = session.times()[0] if session.has_times() else start
    return {
        "from": start - zero,
        "to": start - zero + width * num,
        "bucket_ns": width,
        "tiers": tiers,
        "counts": counts,
        "bytes": sizes,
        "live_bytes": _live(session, start, width, num),
        **part.command("report"),
    }


def _live(session: "Session", start: int, width: int, num: int) -> list[int]:
    """Size of the code that exists at the end of each part of the time."""
    rows = session.profile.sql(
        "SELECT greatest((ts_ns - $start) // $width, 0) AS bucket, sum(change) FROM ("
        " SELECT create_ns AS ts_ns, size_bytes::HUGEINT AS change FROM code_objects"
        " UNION ALL SELECT retire_ns, -(size_bytes::HUGEINT) FROM code_objects WHERE retire_ns IS NOT NULL"
        ") GROUP BY 1 ORDER BY 1",
        {"start": start, "width": width},
    ).fetchall()
    changes = {bucket: int(change) for bucket, change in rows}
    live, found = 0, []
    for bucket in range(num):
        live += changes.get(bucket, 0)
        found.append(live)
    return found


def _code_span(session: "Session") -> tuple[int, int]:
    """First and last creation of code, and the end of the recording."""
    rows = session.profile.sql("SELECT min(create_ns), max(create_ns) FROM code_objects").fetchall()
    first, last = rows[0]
    if first is None:
        return (0, 1)
    if session.has_times():
        zero, end = session.times()
        first, last = min(first, zero), max(last, end)
    return first, last + 1


def space(session: "Session", parameters: Parameters) -> dict[str, Any]:
    """Code by address that exists at a time: parameters `at` and `process`."""
    _require(session)
    at, process = parameters.number("at", least=-(2**62)), parameters.number("process", most=2**32 - 1)
    zero = session.times()[0] if session.has_times() else 0
    moment = _code_span(session)[1] if at is None else zero + at
    condition = "c.create_ns <= $at AND (c.retire_ns IS NULL OR c.retire_ns > $at)"
    values: dict[str, Any] = {"at": moment}
    if process is not None:
        condition += " AND c.process_id = $process"
        values["process"] = process
    rows = session.profile.sql(
        f"SELECT c.start_address, c.size_bytes, {TIER}, f.name, c.create_ns, c.process_id, count(*) OVER ()"
        f" FROM code_objects c JOIN functions f USING (function_id) WHERE {condition}"
        f" ORDER BY c.process_id, c.start_address, c.code_object_id LIMIT {MOST_RANGES}",
        values,
    ).fetchall()
    return {
        "at": moment - zero,
        "num": rows[0][-1] if rows else 0,
        "ranges": [
            {
                "address": hex_text(address),
                "size_bytes": size,
                "tier": tier,
                "name": name,
                "create_ns": created - zero,
                "process": of,
            }
            for address, size, tier, name, created, of, _ in rows
        ],
        "command": session.command("report"),
    }
