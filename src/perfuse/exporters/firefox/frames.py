"""Frames of a processed profile: their indexes in the shared tables, and their categories."""

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager

from perfuse.exporters.queries import FRAMES, TRACK_PROCESSES, with_function_files
from perfuse.exporters.source import Source
from perfuse.table import sql_text

CATEGORIES = {
    # The front end uses the first grey category as its default.
    "Other": "grey",
    "Native": "yellow",
    "Kernel": "orange",
    "Hypervisor": "lightred",
    "Interpreter": "red",
    "Baseline JIT": "blue",
    "Mid-tier JIT": "lightblue",
    "Optimizing JIT": "green",
    "JIT": "purple",
    "JIT stub": "brown",
    "Ahead of time": "magenta",
}
"""The colour of each category, by its name."""

_OF_ORIGINS = {
    "interpreter": "Interpreter",
    "baseline": "Baseline JIT",
    "mid_tier": "Mid-tier JIT",
    "optimised": "Optimizing JIT",
    "ahead_of_time": "Ahead of time",
    "stub": "JIT stub",
}
"""Categories of the origins of JIT code, as flame graphs have them; code of another origin is `JIT`."""

CATEGORY = f"""
    CASE
        WHEN kind = 'kernel' THEN 'Kernel'
        WHEN kind = 'hypervisor' THEN 'Hypervisor'
        WHEN kind = 'native' THEN 'Native'
        WHEN kind <> 'jit' THEN 'Other'
        {" ".join(f"WHEN code_origin = '{origin}' THEN '{name}'" for origin, name in _OF_ORIGINS.items())}
        ELSE 'JIT'
    END
"""
"""Category name of a row of `exporters.queries.FRAMES`."""

CATEGORY_INDEX = (
    "CASE category " + " ".join(f"WHEN {sql_text(name)} THEN {i}" for i, name in enumerate(CATEGORIES)) + " END"
)

SUBCATEGORY_INDEX = """
    CASE WHEN tier IS NULL THEN 0
         ELSE dense_rank() OVER (PARTITION BY category, tier IS NULL ORDER BY tier) END
"""
"""A tier is a subcategory, after the `Other` that every category starts with."""


def categories_json(profile: Source, frames: str) -> str:
    """`meta.categories`: all of them, each with the tiers that occur in the table `frames`."""
    tiers: dict[str, list[str]] = {name: ["Other"] for name in CATEGORIES}
    query = f"SELECT DISTINCT category, subcategory, tier FROM {frames} WHERE tier IS NOT NULL ORDER BY ALL"
    for category, _, tier in profile.sql(query).fetchall():
        tiers[category].append(tier)
    rows = [(name, color, tiers[name]) for name, color in CATEGORIES.items()]
    return json.dumps([{"name": name, "color": color, "subcategories": tiers} for name, color, tiers in rows])


# JavaScript code. A perf map states no runtime, but its names have the prefixes of JavaScript engines.
_JAVASCRIPT = r"""
    kind = 'jit' AND coalesce(code_kind, 'jit') = 'jit' AND (
        coalesce(producer, '') IN ('V8', 'JavaScriptCore', 'SpiderMonkey')
        OR regexp_matches(coalesce(linkage_name, ''), '^(JS:|JSC-(Baseline|DFG|FTL): |(Ion|Baseline): )')
    )
"""

# The front end identifies code by library and offset. JIT code of a process is placed in an artificial library, in the
# order of its creation: its real addresses are reused over time.
JIT_CODE = f"""
    SELECT code_object_id, '[jit] ' || coalesce(p.name::VARCHAR || ' ', '') || p.pid AS jit,
        -- A HUGEINT, which sizes stated in a file cannot overflow.
        sum(size_bytes) OVER (PARTITION BY process_id ORDER BY code_object_id) - size_bytes AS jit_offset
    FROM code_objects_of_stacks JOIN {TRACK_PROCESSES} p USING (process_id)
    WHERE code_object_id IN (SELECT code_object_id FROM frames)
"""
"""JIT code that has frames: the artificial library of its process, and its offset in that."""

FRAME_ROWS = f"""
    WITH named AS ({FRAMES}),
    jit_code AS ({JIT_CODE}
    ),
    placed AS (
        SELECT named.*, jit_offset,
            coalesce(jit, mapping, module) AS lib_path,
            CASE WHEN jit IS NULL THEN coalesce(mapping_build_id, module_build_id) END AS lib_build_id,
            -- The format wants an address inside the call, not the one it returns to.
            relative_address - is_after_call + coalesce(jit_offset, 0) AS lib_address,
            {CATEGORY} AS category,
            {_JAVASCRIPT} AS javascript,
            first_value(function_id) OVER same_address AS outer_function_id,
            first_value(label) OVER same_address AS outer_label,
            first_value(native_id) OVER same_address AS outer_native_id
        FROM named LEFT JOIN jit_code USING (code_object_id)
        WINDOW same_address AS (
            PARTITION BY code_object_id, mapping_id, named.kind, address, unwound_by
            ORDER BY inline_depth, frame_id
        )
    ),
    keyed AS (
        SELECT *,
            -- Addresses of the front end are signed 32-bit numbers.
            CASE WHEN lib_path IS NOT NULL AND lib_address < 2147483648
                 THEN lib_address::BIGINT END AS address_in_lib,
            CASE WHEN lib_path IS NULL THEN NULL
                 WHEN code_object_id IS NOT NULL THEN 'jit ' || code_object_id
                 ELSE 'native ' || outer_function_id END AS symbol_key
        FROM placed
    )
    SELECT *,
        row_number() OVER (ORDER BY frame_id) - 1 AS i,
        CASE WHEN lib_path IS NULL THEN -1
             ELSE dense_rank() OVER (ORDER BY lib_path NULLS LAST, lib_build_id NULLS FIRST) - 1 END AS lib,
        dense_rank() OVER (
            ORDER BY function_id NULLS LAST,
                     CASE WHEN function_id IS NULL THEN label END,
                     CASE WHEN function_id IS NULL THEN lib_path END
        ) - 1 AS func,
        CASE WHEN symbol_key IS NOT NULL
             THEN dense_rank() OVER (ORDER BY symbol_key NULLS LAST, lib_path, lib_build_id) - 1
        END AS symbol,
        {CATEGORY_INDEX} AS category_index,
        {SUBCATEGORY_INDEX} AS subcategory
    FROM keyed
"""


_NUMBERS = itertools.count()
"""Numbers of the tables of this process."""


@contextmanager
def frame_table(profile: Source) -> Iterator[str]:
    """A temporary table, by its name: `FRAME_ROWS` with `func_path`, the file of the function.

    A frame of the format has no file of its own: where its line is in another one, it has no line.
    Several queries read it: of most profiles, its rows take less time than its plan.
    """
    table = f"firefox_frames_{next(_NUMBERS)}"
    profile.sql(f"CREATE TEMP TABLE {table} AS {with_function_files(profile, FRAME_ROWS, 'func', reads_lines=True)}")
    try:
        yield table
    finally:
        profile.sql(f"DROP TABLE {table}")
