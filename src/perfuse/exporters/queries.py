"""SQL that several exporters share: all exports of a profile name a frame in the same way."""

import re
import warnings
from collections.abc import Iterable

from perfuse.errors import ExportWarning
from perfuse.exporters.source import EventSource, Source
from perfuse.exporters.span import selected
from perfuse.table import SUM_EVENTS, sql_text

FRAMES = """
    SELECT
        f.frame_id, f.function_id, f.code_object_id, f.mapping_id,
        f.address, f.relative_address, f.path::VARCHAR AS path, f.line, f.column, f.inline_depth,
        f.kind::VARCHAR AS kind, f.unwound_by::VARCHAR AS unwound_by,
        (f.unwound_by::VARCHAR NOT IN ('sampled', 'trace') AND coalesce(f.address, 1) > 0
            AND coalesce(f.relative_address, 1) > 0)::UBIGINT AS is_after_call,
        n.name::VARCHAR AS label, n.has_own_path, n.code_origin::VARCHAR AS code_origin,
        fn.native_id, fn.linkage_name::VARCHAR AS linkage_name,
        fn.path::VARCHAR AS function_path, fn.line AS function_line, fn.column AS function_column,
        m.name::VARCHAR AS module, m.build_id::VARCHAR AS module_build_id,
        mp.path::VARCHAR AS mapping, mp.build_id::VARCHAR AS mapping_build_id,
        c.process_id AS code_process_id, c.kind::VARCHAR AS code_kind, c.tier::VARCHAR AS tier, c.size_bytes,
        s.producer::VARCHAR AS producer
    FROM frames f
    JOIN names_of_frames n USING (frame_id)
    LEFT JOIN functions_of_stacks fn USING (function_id)
    LEFT JOIN modules m USING (module_id)
    LEFT JOIN mappings mp ON mp.mapping_id = f.mapping_id
    LEFT JOIN code_objects_of_stacks c ON c.code_object_id = f.code_object_id
    LEFT JOIN sources s ON s.source_id = c.source_id
"""
"""Each frame with its function, its module and its code.

`is_after_call` is 1 where its addresses are those to which a call returns, else 0: less it they are inside the call."""

_FIRST_FILES = """
    SELECT function_id, first(path ORDER BY code_object_id) AS path FROM (
        SELECT code_object_id, arg_min(path::VARCHAR, code_offset) AS path FROM line_rows GROUP BY 1
    ) JOIN code_objects USING (code_object_id) GROUP BY 1
"""
"""The file of a function of JIT code that declares none: its code starts there, before that of inlined functions."""

_NO_FILES = "SELECT NULL::UINTEGER AS function_id, NULL::VARCHAR AS path"

_NUM_UNDECLARED = """
    SELECT count(*) FROM frames f JOIN functions_of_stacks fn USING (function_id)
    WHERE fn.path IS NULL AND f.path IS NOT NULL AND f.code_object_id IS NOT NULL
"""


def with_function_files(
    profile: Source, frames: str, function: str = "function_id", *, reads_lines: bool = False
) -> str:
    """SQL for rows such as those of `FRAMES` with `func_path`, the one source file of each function, and `func_place`:
    that file, or the program or library that has the function.

    Lines of code in another file, which are those of functions that were inlined without a name, are null.

    Args:
        profile: The profile.
        frames: SQL for the rows.
        function: A column that numbers their functions.
        reads_lines: Whether all lines of code are read, which saved profiles have in their copies of dumps; else the
            file is that of a sample.
    """
    num_undeclared = 0
    if reads_lines:
        ((num_undeclared,),) = profile.sql(_NUM_UNDECLARED).fetchall()
    return f"""
        WITH numbered AS ({frames}),
        first_files AS ({_FIRST_FILES if num_undeclared else _NO_FILES}),
        with_files AS (
            SELECT numbered.*, coalesce(
                function_path, first_files.path, CASE WHEN {function} IS NULL THEN numbered.path END,
                arg_min(numbered.path, frame_id) FILTER (has_own_path) OVER (PARTITION BY {function})
            ) AS func_path
            FROM numbered LEFT JOIN first_files USING (function_id)
        )
        SELECT coalesce(func_path, CASE
                WHEN coalesce(mapping, module) LIKE '[kernel.%' THEN '[kernel]'
                WHEN kind IN ('native', 'kernel', 'traced') THEN coalesce(mapping, module)
            END)
            AS func_place, * REPLACE (
            CASE WHEN function_path IS NOT NULL OR path = func_path THEN line END AS line,
            CASE WHEN function_path IS NOT NULL OR path = func_path THEN "column" END AS "column"
        )
        FROM with_files
    """


FRAME_ROWS = f"""
    SELECT frame_id::UINTEGER AS frame_id, label AS name, coalesce(linkage_name, label) AS system_name,
        coalesce(path, function_path) AS path, function_line::UINTEGER AS start_line, line::UINTEGER AS line,
        "column"::UINTEGER AS "column", mapping_id::UINTEGER AS mapping_id,
        coalesce(mapping, module) AS binary, coalesce(mapping_build_id, module_build_id) AS build_id,
        kind, (address - is_after_call)::UBIGINT AS address,
        (relative_address - is_after_call)::UBIGINT AS relative_address,
        inline_depth::UINTEGER AS inline_depth
    FROM ({FRAMES}) ORDER BY frame_id
"""
"""A row per frame, with the columns that the core's writers read: addresses of callers are inside the call."""

STACK_ROWS = """
    SELECT stack_id::UINTEGER AS stack_id, parent_stack_id::UINTEGER AS parent_stack_id, frame_id::UINTEGER AS frame_id
    FROM stacks ORDER BY stack_id
"""
"""A row per stack, with the columns that the core's writers read; a parent precedes its children."""


IS_SUM = f"event::VARCHAR IN ({', '.join(map(sql_text, SUM_EVENTS))})"
"""Whether a row of `samples` is a sum over calls or allocations, without a point in time."""


def note_sums(profile: Source, title: str, *written: str) -> None:
    """Warns of the events that are sums by stack, except those `written`, to which a target gives no point in time."""
    rows = profile.sql(f"SELECT DISTINCT event::VARCHAR FROM samples WHERE {IS_SUM} ORDER BY 1").fetchall()
    if left := [event for (event,) in rows if event not in written]:
        where = "firefox, speedscope, pprof and otlp have sums"
        message = f"not written to {title}: {', '.join(left)}, which are sums by stack: {where}"
        warnings.warn(message, ExportWarning, stacklevel=5)


USUAL_WEIGHTS = f"""
    SELECT event, any_value(unit) AS unit, bool_or(is_sum) AS is_sum, sum(num) AS num_samples,
        if(bool_or(is_sum), NULL, first(weight ORDER BY num DESC, weight)) AS weight
    FROM (
        SELECT event::VARCHAR AS event, weight, any_value(weight_unit::VARCHAR) AS unit,
            bool_or({IS_SUM}) AS is_sum, count(*) AS num
        FROM samples GROUP BY ALL
    )
    GROUP BY event
"""
"""Each event with unit, number of samples, and most frequent weight: the least of several, null for sums."""


def type_names(events: Iterable[str]) -> dict[str, str]:
    """Names of events as sample types: letters, digits and `_`.

    Parca and Pyroscope refuse profiles with `-` in the name of a type, and separate names by `:` in queries.
    """
    names: dict[str, str] = {}
    for event in events:
        plain = name = re.sub("[^A-Za-z0-9_]", "_", event)
        number = 1
        while name in names.values():
            number += 1
            name = f"{plain}_{number}"
        names[event] = name
    return names


TRACK_PROCESSES = """(
    SELECT process_id, start_ns, end_ns, s.pid, s.name FROM shown_processes s JOIN processes USING (process_id)
)"""
"""Processes with a pid of their own, for viewers that find threads by their ids: see `perfuse.table.MADE_BY_CORE`."""

_AS_SAMPLES = "SELECT sample_id, ts_ns, thread_id, stack_id, event::VARCHAR AS event, weight FROM samples"


def with_exceptions(profile: EventSource) -> tuple[str, bool]:
    """A query of the samples with the exceptions thrown as those of event `exceptions`, and whether there are any.

    A filter of stacks selects samples only: exceptions are then left out, with a warning.
    """
    if not profile.has("exceptions"):
        return _AS_SAMPLES, False
    thrown = f"FROM exceptions WHERE kind::VARCHAR = 'throw' AND {selected(profile, 'ts_ns')}"
    ((num,),) = profile.sql(f"SELECT count(*) {thrown}").fetchall()
    if num and profile.stack_filter:
        warnings.warn("filters of stacks select samples: exceptions are not written", ExportWarning, stacklevel=5)
    if not num or profile.stack_filter:
        return _AS_SAMPLES, False
    return f"{_AS_SAMPLES} UNION ALL SELECT record_offset, ts_ns, thread_id, stack_id, 'exceptions', 1 {thrown}", True


def columns_as_json(profile: Source, columns: dict[str, str], query: str) -> dict[str, str]:
    """Columns of a query as JSON arrays, in the order of its column `i`, and its `length`.

    `columns` maps each array's name to an expression over the query's columns.
    """
    arrays = ", ".join(f"to_json(coalesce(list({value} ORDER BY i), []))" for value in columns.values())
    ((*values,),) = profile.sql(f"SELECT {arrays}, count(*)::VARCHAR FROM ({query})").fetchall()
    return dict(zip([*columns, "length"], values, strict=True))
