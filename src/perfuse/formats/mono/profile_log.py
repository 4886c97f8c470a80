"""Events of a profile as a Mono log: its own Mono logs, or the allocations, calls and samples of any recorder."""

from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any, Protocol

from perfuse import _core
from perfuse.errors import ExportError, UsageError, require_version
from perfuse.filters.selection import Selection, ThreadKey
from perfuse.formats.mono.log import WriteSummary, match_kinds
from perfuse.formats.mono.writer import Writer
from perfuse.recording import Recording
from perfuse.table import REALTIME_OFFSET, SUM_EVENTS


class LoggedProfile(Protocol):
    """A profile whose events can be written as a log; `perfuse.Profile` is one."""

    @property
    def recordings(self) -> Sequence[Recording]:
        """The open files."""
        ...

    @property
    def tables(self) -> Mapping[str, Any]:
        """The common tables by name."""
        ...

    @property
    def selection(self) -> Selection:
        """The selected threads and time."""
        ...

    @property
    def span_ns(self) -> tuple[int, int] | None:
        """Its first and last time."""
        ...

    @property
    def has_samples(self) -> bool:
        """Whether it has samples that are not sums over calls."""
        ...

    def sql(self, query: str, /) -> Any:
        """Runs SQL over the common tables."""
        ...


class RuntimeLog:
    """Writes what a profile selects of its Mono logs; `Profile.runtime_log` is one."""

    def __init__(self, profile: LoggedProfile) -> None:
        self._profile = profile

    @property
    def is_of_mono_logs(self) -> bool:
        """Whether it writes Mono logs again, and not the tables of other recorders."""
        return any(recording.format == "mono" for recording in self._profile.recordings)

    def write(
        self,
        out: IO[bytes],
        *,
        version: int | None = None,
        kinds: Iterable[str] | None = None,
        any_run: bool = False,
        event: str | None = None,
    ) -> WriteSummary:
        """Writes one log: of Mono logs, as `perfuse.mono.convert` does; else of the allocations, calls and samples of
        other recorders, in data version 17.

        Args:
            out: A binary file object.
            version: Data version, 1 to 17; that of the first log by default.
            kinds: Only events of these names or patterns, and those that name something.
            any_run: Write logs of several runs as one.
            event: Of other recorders, the event whose samples are written: Mono's samples do not state one.

        Raises:
            ExportError: The profile contains nothing that a log represents, or its logs are not of one run.
            UsageError: The data version or a kind of event does not exist.
        """
        logs = [r for r in self._profile.recordings if r.format == "mono"]
        if not self.is_of_mono_logs:
            if version not in (None, 17) or kinds is not None:
                raise ExportError(
                    "events of recorders other than Mono are written in data version 17, all of them",
                    hint="write the log, and convert that",
                )
            return write_tables(self._profile, out, event)
        selection = self._profile.selection
        require_version(version)
        options: _core._MonoOptions = {
            "version": version,
            "between_ns": selection.time_ns,
            "is_relative": False,
            "threads": self._threads(),
            "kinds": None if kinds is None else match_kinds(kinds),
            "any_run": any_run,
        }
        try:
            return WriteSummary._from_core(_core.convert_mono([log._core for log in logs], out, options))
        except (ValueError, OverflowError) as error:
            raise UsageError(str(error), field="version") from error

    def _threads(self) -> list[str | int] | None:
        """Names or ids of the selected threads, as logs have them; None where all are selected."""
        selection = self._profile.selection
        if selection.thread_ids is None and not isinstance(selection.thread, ThreadKey):
            return None if selection.thread is None else [selection.thread]
        rows = self._profile.sql(f"SELECT native_id FROM threads WHERE thread_id IN ({selection.threads})").fetchall()
        return [native_id for (native_id,) in rows if native_id is not None]


_METADATA = "METADATA_END_LOAD"
_CLASS, _IMAGE, _THREAD, _VTABLE = 1, 2, 5, 7
_METHOD_BASE, _TYPE_BASE, _VTABLE_BASE, _IMAGE_ADDRESS, _DOMAIN_ADDRESS = (
    0x1_0000_0000,
    0x2_0000_0000,
    0x3_0000_0000,
    0x10,
    0x20,
)
"""Addresses for rows that have none in the tables: 16 bytes per key."""
_UNKNOWN_KEY = 0xFFF_FFFF
"""The key of the method of frames without a function."""
_THREAD_ID = "coalesce((t.tid::BIGINT & 4294967295)::UBIGINT, 4294967296 + 16 * t.thread_id::UBIGINT)"
"""Of a thread; some recorders write an address as its number."""
_KINDS = "CASE kind::VARCHAR WHEN 'enter' THEN 1 WHEN 'exception_exit' THEN 3 ELSE 2 END"


def write_tables(profile: LoggedProfile, out: IO[bytes], event: str | None) -> WriteSummary:
    """Writes a log of the newest data version from a profile's tables `allocations`, `call_events` and `samples`.

    Methods and types get addresses derived from their keys; methods that samples are in have one byte of code there, by
    which mprof-report counts them. A log does not represent weights of samples, or offsets of frames in functions.

    Args:
        profile: The profile.
        out: The file.
        event: Event of the samples that are written; None for no samples.

    Raises:
        ExportError: The profile has none of these tables.
    """
    queries = _event_queries(profile, event)
    if not queries:
        raise ExportError(
            "the profile has no single allocations, calls or samples",
            hint="give a recording that contains some; firefox, speedscope, pprof and collapsed have sums by stack",
        )
    start = max(profile.span_ns[0], 0) if profile.span_ns else 0
    startup_ms, startup_ns = _startup(profile, start)
    ((pid,),) = profile.sql("SELECT coalesce(min(pid), 0) FROM processes").fetchall()
    with Writer(out, pid=max(pid, 0), startup_ms=startup_ms, startup_ns=startup_ns, args="log") as writer:
        _write_names(profile, writer, start)
        writer.flush()
        # DuckDB keeps one result open at a time.
        stacks = profile.sql(f"""
            SELECT stack_id, parent_stack_id,
                ({_METHOD_BASE} + 16 * coalesce(function_id, {_UNKNOWN_KEY})::UBIGINT)::UBIGINT AS method
            FROM stacks JOIN frames USING (frame_id)
        """)
        writer._core.stacks(stacks)
        events = profile.sql(f"""
            SELECT ts_ns, {_THREAD_ID}::UBIGINT AS thread, kind::UTINYINT AS kind, a::UBIGINT AS a, b::UBIGINT AS b,
                c::UBIGINT AS c, stack_id::UINTEGER AS stack_id
            FROM ({" UNION ALL ".join(queries)}) e JOIN threads t USING (thread_id)
            ORDER BY ts_ns, source_id, record_offset
        """)
        num_events = writer.num_events + writer._core.rows(events, out)
    return WriteSummary(0, num_events, {}, {})


def _startup(profile: LoggedProfile, start: int) -> tuple[int, int]:
    """A time as milliseconds since 1970, 0 where no recording has the time of day, and the same on the profile's clock:
    that of the first event, or the whole millisecond before it, or after it where the clock begins later.
    """
    ((offset,),) = profile.sql(REALTIME_OFFSET).fetchall()
    if offset is None:
        return 0, start
    startup_ms = (start + offset) // 1_000_000
    startup_ms += startup_ms * 1_000_000 < offset
    return startup_ms, startup_ms * 1_000_000 - offset


def _event_queries(profile: LoggedProfile, event: str | None) -> list[str]:
    """A query for the rows of each table that is not empty."""
    origin = "source_id, record_offset"
    selected = profile.selection.condition
    where = f"WHERE {selected}" if selected else ""
    queries = {
        "allocations": f"""
            SELECT ts_ns, thread_id, 0 AS kind, {_VTABLE_BASE} + 16 * coalesce(type_id, {_UNKNOWN_KEY})::UBIGINT AS a,
                coalesce(object_address, 0) AS b, coalesce(size_bytes, 0) AS c, stack_id, {origin}
            FROM allocations {where}""",
        "call_events": f"""
            SELECT ts_ns, thread_id, {_KINDS} AS kind, {_METHOD_BASE} + 16 * function_id::UBIGINT AS a, 0 AS b,
                0 AS c, NULL AS stack_id, {origin}
            FROM call_events {where}{" AND" if where else " WHERE"} kind <> 'argument'""",
    }
    if event is not None and event not in SUM_EVENTS:
        name = event.replace("'", "''")
        queries["samples"] = f"""
            SELECT ts_ns, thread_id, 4 AS kind, 0 AS a, 0 AS b, 0 AS c, stack_id, {origin} FROM samples
            WHERE event = '{name}'"""
    return [query for query in queries.values() if profile.sql(f"{query} LIMIT 1").fetchall()]


def _write_names(profile: LoggedProfile, writer: Writer, start: int) -> None:
    """Writes the events that describe types, methods and threads."""
    thread = 0
    writer.event(_METADATA, thread, start, mtype=_IMAGE, pointer=_IMAGE_ADDRESS, name="tables", mvid="")
    types = profile.sql("SELECT type_id, name::VARCHAR FROM types").fetchall()
    for key, name in [*types, (_UNKNOWN_KEY, "[unknown]")]:
        at = _TYPE_BASE + 16 * key
        writer.event(_METADATA, thread, start, mtype=_CLASS, pointer=at, image=_IMAGE_ADDRESS, name=name or "")
        vtable = _VTABLE_BASE + 16 * key
        writer.event(_METADATA, thread, start, mtype=_VTABLE, pointer=vtable, domain=_DOMAIN_ADDRESS, **{"class": at})
    functions = profile.sql("SELECT function_id, name::VARCHAR FROM functions").fetchall()
    sampled = _sampled_functions(profile)
    for key, name in [*functions, (_UNKNOWN_KEY, "[unknown]")]:
        method = _METHOD_BASE + 16 * key
        code, size = (method, 1) if key in sampled else (0, 0)
        writer.event("METHOD_JIT", thread, start, method=method, code=code, size=size, name=name or "")
    threads = profile.sql(f"SELECT {_THREAD_ID}::UBIGINT, name::VARCHAR FROM threads t").fetchall()
    for key, name in threads:
        if name:
            writer.event("METADATA_name", key, start, mtype=_THREAD, pointer=key, name=name)


def _sampled_functions(profile: LoggedProfile) -> set[int]:
    """Keys of the innermost functions of samples."""
    if not profile.has_samples:
        return set()
    rows = profile.sql(f"""
        SELECT DISTINCT coalesce(function_id, {_UNKNOWN_KEY})
        FROM samples JOIN stacks USING (stack_id) JOIN frames USING (frame_id)
    """).fetchall()
    return {key for (key,) in rows}
