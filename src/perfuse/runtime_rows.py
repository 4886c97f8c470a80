"""Allocations, calls and samples of any recorder, as a Mono log."""

from typing import IO, TYPE_CHECKING

from perfuse.errors import ExportError
from perfuse.exporters.source import SUMMED
from perfuse.formats.mono_log import Written
from perfuse.formats.mono_writer import Writer

if TYPE_CHECKING:
    from perfuse.profile import Profile

_METADATA = "METADATA_END_LOAD"
_CLASS, _IMAGE, _THREAD, _VTABLE = 1, 2, 5, 7
_METHODS, _TYPES, _VTABLES, _AN_IMAGE, _A_DOMAIN = 0x1_0000_0000, 0x2_0000_0000, 0x3_0000_0000, 0x10, 0x20
"""Where what is numbered is said to lie: 16 bytes each."""
_UNKNOWN = 0xFFF_FFFF
"""The method of frames that have no function."""
_THREAD_ID = "coalesce(t.tid::UBIGINT, 4294967296 + 16 * t.thread_id::UBIGINT)"
_KINDS = "CASE kind::VARCHAR WHEN 'enter' THEN 1 WHEN 'exception_exit' THEN 3 ELSE 2 END"


def write_rows(profile: "Profile", out: IO[bytes]) -> Written:
    """Writes a log of the newest data version of a profile's tables `allocations`, `call_events` and `samples`.

    Methods and types are given addresses by their keys. Weights of samples, and where their frames are in their
    functions, have no place in a log.

    Raises:
        ExportError: The profile has none of these.
    """
    parts = _parts(profile)
    if not parts:
        raise ExportError("the profile tells of no allocations, calls or samples", hint="give a log that does")
    start = profile.span_ns[0] if profile.span_ns else 0
    ((pid,),) = profile.sql("SELECT coalesce(min(pid), 0) FROM processes").fetchall()
    with Writer(out, pid=max(pid, 0), startup_ms=0, startup_ns=max(start, 0), args="log") as writer:
        _write_names(profile, writer, max(start, 0))
        writer.flush()
        # One result at a time is what DuckDB has open.
        stacks = profile.sql(f"""
            SELECT stack_id, parent_stack_id,
                ({_METHODS} + 16 * coalesce(function_id, {_UNKNOWN})::UBIGINT)::UBIGINT AS method
            FROM stacks JOIN frames USING (frame_id)
        """)
        writer._core.stacks(stacks)
        events = profile.sql(f"""
            SELECT ts_ns, {_THREAD_ID}::UBIGINT AS thread, kind::UTINYINT AS kind, a::UBIGINT AS a, b::UBIGINT AS b,
                c::UBIGINT AS c, stack_id::UINTEGER AS stack_id
            FROM ({" UNION ALL ".join(parts)}) e JOIN threads t USING (thread_id)
            ORDER BY ts_ns, source_id, record_offset
        """)
        num_events = writer.num_events + writer._core.rows(events, out)
    return Written(0, num_events, {}, {})


def _parts(profile: "Profile") -> list[str]:
    """Queries for the rows of each table that is not empty."""
    place = "source_id, record_offset"
    selected = profile.selection.condition
    where = f"WHERE {selected}" if selected else ""
    parts = {
        "allocations": f"""
            SELECT ts_ns, thread_id, 0 AS kind, {_VTABLES} + 16 * coalesce(type_id, {_UNKNOWN})::UBIGINT AS a,
                coalesce(object_address, 0) AS b, coalesce(size_bytes, 0) AS c, stack_id, {place}
            FROM allocations {where}""",
        "call_events": f"""
            SELECT ts_ns, thread_id, {_KINDS} AS kind, {_METHODS} + 16 * function_id::UBIGINT AS a, 0 AS b, 0 AS c,
                NULL AS stack_id, {place} FROM call_events {where}{" AND" if where else " WHERE"} kind <> 'argument'""",
    }
    if profile.has_samples:
        parts["samples"] = f"""
            SELECT ts_ns, thread_id, 4 AS kind, 0 AS a, 0 AS b, 0 AS c, stack_id, {place} FROM samples
            WHERE event NOT IN ({SUMMED})"""
    return [part for part in parts.values() if profile.sql(f"{part} LIMIT 1").fetchall()]


def _write_names(profile: "Profile", writer: Writer, start: int) -> None:
    thread = 0
    writer.event(_METADATA, thread, start, mtype=_IMAGE, pointer=_AN_IMAGE, name="tables", mvid="")
    types = profile.sql("SELECT type_id, name::VARCHAR FROM types").fetchall()
    for key, name in [*types, (_UNKNOWN, "[unknown]")]:
        at = _TYPES + 16 * key
        writer.event(_METADATA, thread, start, mtype=_CLASS, pointer=at, image=_AN_IMAGE, name=name or "")
        vtable = _VTABLES + 16 * key
        writer.event(_METADATA, thread, start, mtype=_VTABLE, pointer=vtable, domain=_A_DOMAIN, **{"class": at})
    functions = profile.sql("SELECT function_id, name::VARCHAR FROM functions").fetchall()
    for key, name in [*functions, (_UNKNOWN, "[unknown]")]:
        writer.event("METHOD_JIT", thread, start, method=_METHODS + 16 * key, code=0, size=0, name=name or "")
    threads = profile.sql(f"SELECT {_THREAD_ID}::UBIGINT, name::VARCHAR FROM threads t").fetchall()
    for key, name in threads:
        if name:
            writer.event("METADATA_name", key, start, mtype=_THREAD, pointer=key, name=name)
