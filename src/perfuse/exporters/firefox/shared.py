"""`profile.shared` and `profile.libs`: what all threads' stacks are made of."""

import json
from collections.abc import Mapping, Sequence
from hashlib import md5
from typing import Any

from perfuse.exporters.queries import columns_as_json
from perfuse.exporters.source import Source
from perfuse.reports.names import module_text

_FUNC_COLUMNS = ("name", "isJS", "relevantForJS", "resource", "source", "lineNumber", "columnNumber")
# ResourceType of the front end.
_LIBRARY, _URL = 1, 5

_EMBEDDED_TEXTS = "SELECT path::VARCHAR, any_value(try(decode(text))) FROM embedded_files GROUP BY 1"

STACK_ROWS = """
    SELECT stack_id, parent_stack_id, frame_id, row_number() OVER (ORDER BY stack_id) - 1 AS i FROM stacks
"""
"""Stacks with their index. The format wants parents before children, and so our keys are."""

_NO_STACK = "[no stack]"
"""Name of the only frame of the stack of samples without addresses: the front end leaves out samples of no stack."""


def no_stack(profile: Source) -> int | None:
    """Index of the stack of samples without addresses, after all others; None where each sample has a stack."""
    ((num_without, num_stacks),) = profile.sql("""
        SELECT (SELECT count(*) FROM samples WHERE stack_id IS NULL), (SELECT count(*) FROM stacks)
    """).fetchall()
    return num_stacks if num_without else None


class Strings:
    """`shared.stringArray`: every string once."""

    def __init__(self) -> None:
        self._index: dict[str, int] = {}

    def index(self, value: str) -> int:
        """The string's index; new ones are added."""
        return self._index.setdefault(value, len(self._index))

    @property
    def all(self) -> list[str]:
        """The strings, by index."""
        return list(self._index)


def json_object(members: dict[str, str]) -> str:
    """An object whose members are JSON already; their names need no escapes."""
    return "{" + ",".join(f'"{name}":{value}' for name, value in members.items()) + "}"


def libs_json(profile: Source, frames: str) -> str:
    """`profile.libs`; `frames` is the table of `frame_table`."""
    rows = profile.sql(
        "SELECT lib, any_value(lib_path), any_value(lib_build_id),"
        " (SELECT any_value(arch)::VARCHAR FROM sources)"
        f" FROM {frames} WHERE lib >= 0 GROUP BY lib ORDER BY lib"
    ).fetchall()
    return json.dumps([_lib(path, build_id, arch) for _, path, build_id, arch in rows])


def _lib(path: str, build_id: str | None, arch: str | None) -> dict[str, str | None]:
    name = module_text(path)
    return {
        "arch": arch or "",
        "name": name,
        "path": path,
        "debugName": name,
        "debugPath": path,
        "breakpadId": breakpad_id(path, build_id),
        "codeId": build_id,
    }


def breakpad_id(path: str, build_id: str | None) -> str:
    """A build id as symbol servers spell it: 16 bytes as a GUID, three fields swapped, and age 0.

    Clients ask for a library by its name without directories and by this id: where no build id was recorded, it is made
    from the path.
    """
    if not build_id:
        build_id = md5(path.encode(), usedforsecurity=False).hexdigest() if path.startswith("/") else ""
    guid = build_id[:32].ljust(32, "0").upper()
    pairs = [guid[i : i + 2] for i in range(0, 32, 2)]
    return "".join([*pairs[3::-1], *pairs[5:3:-1], *pairs[7:5:-1], *pairs[8:]]) + "0"


def shared_json(profile: Source, table: str, strings: Strings, *, has_no_stack: bool) -> str:
    """`profile.shared`; `strings` has those that threads name.

    `table` is that of `frame_table`; `has_no_stack` adds the stack of `no_stack`.
    """
    stacks, frames = _stacks(profile), _frames(profile, table)
    (funcs, resources, sources), num_funcs = _funcs(profile, table, strings, has_no_stack=has_no_stack)
    if has_no_stack:
        stacks = _extended(stacks, {"frame": int(frames["length"]), "prefixOffset": 0})
        frames = _extended(frames, {**_NO_FRAME, "func": num_funcs - 1})
    parts = {
        "stackTable": json_object(stacks),
        "frameTable": json_object(frames),
        "funcTable": funcs,
        "resourceTable": resources,
        "nativeSymbols": _native_symbols(profile, table, strings),
        "sources": sources,
        "sourceLocationTable": json_object({"source": "[]", "line": "[]", "column": "[]", "length": "0"}),
    }
    return json_object({**parts, "stringArray": json.dumps(strings.all, ensure_ascii=False)})


_NO_FRAME = {
    "address": -1,
    "lib": -1,
    "inlineDepth": 0,
    "category": 0,
    "subcategory": 0,
    "nativeSymbol": None,
    "innerWindowID": 0,
    "line": None,
    "column": None,
    "originalLocation": None,
}


def _extended(columns: dict[str, str], row: Mapping[str, int | None]) -> dict[str, str]:
    """Columns as JSON arrays with another row, and their new length."""

    def extended(array: str, value: int | None) -> str:
        return f"{array[:-1]}{',' if array != '[]' else ''}{json.dumps(value)}]"

    extended_columns = {name: extended(columns[name], value) for name, value in row.items()}
    return {**columns, **extended_columns, "length": f"{int(columns['length']) + 1}"}


def _stacks(profile: Source) -> dict[str, str]:
    query = f"""
        WITH numbered AS ({STACK_ROWS}),
        frame_numbers AS (SELECT frame_id, row_number() OVER (ORDER BY frame_id) - 1 AS frame FROM frames)
        SELECT s.i, f.frame, coalesce(s.i - p.i, 0) AS prefix_offset
        FROM numbered s
        JOIN frame_numbers f USING (frame_id)
        LEFT JOIN numbered p ON p.stack_id = s.parent_stack_id
    """
    return columns_as_json(profile, {"frame": "frame", "prefixOffset": "prefix_offset"}, query)


def _frames(profile: Source, table: str) -> dict[str, str]:
    columns = {
        "address": "coalesce(address_in_lib, -1)",
        "lib": "CASE WHEN address_in_lib IS NULL THEN -1 ELSE lib END",
        "inlineDepth": "least(inline_depth, 255)",
        "category": "category_index",
        "subcategory": "subcategory",
        "func": "func",
        "nativeSymbol": "symbol",
        "innerWindowID": "0",
        "line": "line",
        "column": '"column"',
        "originalLocation": "NULL::INTEGER",
    }
    return columns_as_json(profile, columns, table)


def _funcs(profile: Source, frames: str, strings: Strings, *, has_no_stack: bool) -> tuple[tuple[str, str, str], int]:
    """`funcTable`, the `resourceTable` and `sources` it points into, and the number of functions."""
    rows = profile.sql(f"""
        SELECT func, any_value(label), bool_or(javascript), any_value(func_path),
            any_value(function_line), any_value(function_column), min(coalesce(lib_path, module))
        FROM {frames} GROUP BY func ORDER BY func
    """).fetchall()
    if has_no_stack:
        rows.append((len(rows), _NO_STACK, False, None, None, None, None))
    texts = dict(profile.sql(_EMBEDDED_TEXTS).fetchall())
    resources: dict[tuple[str, int], int] = {}
    sources: dict[str, int] = {}
    columns: dict[str, list[Any]] = {name: [] for name in _FUNC_COLUMNS}
    for _, label, javascript, path, line, column, lib_path in rows:
        of = (path, _URL) if javascript and path else (lib_path, _LIBRARY) if lib_path else None
        row = (
            strings.index(label),
            javascript,
            False,
            resources.setdefault(of, len(resources)) if of else -1,
            sources.setdefault(path, len(sources)) if path else None,
            line,
            column,
        )
        for values, value in zip(columns.values(), row, strict=True):
            values.append(value)
    columns["originalLocation"] = [None] * len(rows)
    resource_table: dict[str, list[Any]] = {
        "name": [strings.index(module_text(name) if kind == _LIBRARY else name) for name, kind in resources],
        "host": [None] * len(resources),
        "type": [kind for _, kind in resources],
    }
    source_table: dict[str, list[Any]] = {
        "id": [None] * len(sources),
        "filename": [strings.index(path) for path in sources],
        "startLine": [1] * len(sources),
        "startColumn": [1] * len(sources),
        "sourceMapURL": [None] * len(sources),
        "content": [texts.get(path) for path in sources],
    }
    return (_table(columns), _table(resource_table), _table(source_table)), len(rows)


def _native_symbols(profile: Source, frames: str, strings: Strings) -> str:
    """`nativeSymbols`: the code each address is in; an inlined frame's is what it was inlined into."""
    rows = profile.sql(f"""
        SELECT symbol, any_value(lib), any_value(outer_label),
            -- A function's own number is its address where it lies before all of its samples.
            coalesce(
                any_value(jit_offset) FILTER (address_in_lib IS NOT NULL),
                CASE WHEN max(outer_native_id) <= min(address_in_lib) THEN max(outer_native_id) END
            ),
            any_value(size_bytes) FILTER (address_in_lib IS NOT NULL)
        FROM {frames} WHERE symbol IS NOT NULL GROUP BY symbol ORDER BY symbol
    """).fetchall()
    return _table(
        {
            "libIndex": [lib for _, lib, _, _, _ in rows],
            "address": [address for _, _, _, address, _ in rows],
            "name": [strings.index(label) for _, _, label, _, _ in rows],
            "functionSize": [size for _, _, _, _, size in rows],
        }
    )


def _table(columns: Mapping[str, Sequence[Any]]) -> str:
    length = len(next(iter(columns.values())))
    return json.dumps({**columns, "length": length}, ensure_ascii=False, separators=(",", ":"))
