"""Functions that have machine code, found by name, pattern, handle or address."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from perfuse.analysis.profiles import TableProfile
from perfuse.errors import UsageError, nearest_hint
from perfuse.filters.names import function_text, matching_names, shown_names
from perfuse.reports.names import source_place, where_texts
from perfuse.table import Columns

_HANDLE = re.compile(r"([fc])(\d+)")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_SHOWN = 8
"""Number of functions that the message about several lists."""

NO_CODE = "these files contain no code"

_PERF_MAP = "[perf map]"
"""The module of functions of perf maps."""


@dataclass(slots=True)
class CodeFunction:
    """A function with machine code. Tiers of a JIT compiler are one function.

    Attributes:
        function_ids: Its keys: a runtime may write one name for each tier.
        name: Its name.
        module: File it is in.
        kind: Kind of the module: `jit`, `native`, `kernel`.
        path: Source file.
        line: Line in it, from 1.
        column: Column in it.
        code_object_ids: Its compilations; empty for native code.
    """

    function_ids: list[int]
    name: str
    module: str | None
    kind: str
    path: str | None
    line: int | None
    column: int | None
    code_object_ids: list[int] = field(default_factory=list)

    @property
    def handle(self) -> str:
        """A name for it that is the same whenever these files are opened: `f12`."""
        return f"f{self.function_ids[0]}"


@dataclass(frozen=True, slots=True)
class Search:
    """What was found: a function, and the code object that the request named.

    Attributes:
        function: The function.
        code_object_id: The compilation that a handle or an address selects; None where it selects none.
        address: The requested address.
    """

    function: CodeFunction
    code_object_id: int | None = None
    address: int | None = None


def find_function(profile: TableProfile, wanted: str) -> Search:
    """The function with machine code that a text means: a name, a part of one, a glob, `/regex/`, a handle (`f12` for
    a function, `c34` for a compilation) or an address (`0x7f…`).

    Raises:
        UsageError: None is meant, or several; the hint lists them.
    """
    if not wanted:
        raise UsageError("the name of a function is empty", field="function")
    codes = Columns(profile.tables["code_objects"])
    functions = Columns(profile.tables["functions"])
    names = functions["name"]
    if handle := _HANDLE.fullmatch(wanted):
        key, column = int(handle[2]), "function_id" if handle[1] == "f" else "code_object_id"
        known = key in (functions if handle[1] == "f" else codes)[column]
        if wanted not in names:
            return _by_handle(profile, codes, handle[1], key)
        if known:
            raise UsageError(
                f"{wanted} is the name of a function and the handle of other code",
                hint=f"'/^{wanted}$/' is the function of that name; the name of the other one, or its other handle",
                field="function",
            )
    if _ADDRESS.fullmatch(wanted):
        return _by_address(profile, codes, int(wanted, 16))
    distinct = set(names)
    meant = shown_names(wanted, distinct) or matching_names(wanted, distinct)
    rows = [row for row, name in enumerate(names) if name in meant]
    grouped = _grouped(profile, functions, rows)
    found = _with_code(profile, codes, grouped)
    if len(found) > 1:  # a clone and an instantiation are other functions where they are shown as such
        found = [one for one in found if function_text(one.name) == wanted] or found
    if len(found) == 1:
        return Search(found[0])
    if found:
        raise several_functions(wanted, found)
    if not _has_code(profile, codes):
        raise UsageError(
            NO_CODE,
            hint="samples (perf.data) and dumps of JIT compilers have some; `perfuse report --function` shows calls",
            field="function",
        )
    if rows:
        without = sorted({names[row] for row in rows})[:3]
        if all(one.module == _PERF_MAP for one in grouped):
            raise UsageError(
                f"{', '.join(without)} is from a perf map, which has no machine code",
                hint="a dump has code: `perfuse doctor` shows how each runtime writes one",
                field="function",
            )
        hint = "where it was inlined, annotate its caller"
        if into := _inlined_into(profile, {functions["function_id"][row] for row in rows}):
            known_name = dict(functions.tuples("function_id", "name"))
            more = f"; … {len(into) - _SHOWN:,} more" if len(into) > _SHOWN else ""
            listed = "; ".join(f"f{key} {function_text(known_name[key])}" for key in into[:_SHOWN])
            hint = f"it was inlined, annotate a caller: {listed}{more}"
        raise UsageError(f"{', '.join(without)} has no machine code of its own", hint=hint, field="function")
    raise UsageError(f"no function {wanted!r}", hint=nearest_hint(wanted, dict.fromkeys(names)), field="function")


def _inlined_into(profile: TableProfile, keys: set[int]) -> list[int]:
    """The functions with code of their own in which samples of others were taken, which were inlined there."""
    columns = ("function_id", "inline_depth", "code_object_id", "mapping_id", "address")
    frames = list(Columns(profile.tables["frames"]).tuples(*columns))
    places = {tuple(place) for key, depth, *place in frames if key in keys and depth}
    return sorted({key for key, depth, *place in frames if not depth and tuple(place) in places and key is not None})


def _has_code(profile: TableProfile, codes: Columns) -> bool:
    """Whether any function can have machine code, in a dump or in a file that was sampled."""
    if codes["code_object_id"]:
        return True
    return any(address is not None for address in Columns(profile.tables["frames"])["relative_address"])


class SeveralFunctions(UsageError):  # noqa: N818 - the text is at fault, not the program
    """A text means several functions.

    Attributes:
        found: The functions.
    """

    found: Sequence[CodeFunction] = ()


def several_functions(wanted: str, found: Sequence[CodeFunction]) -> SeveralFunctions:
    """The error for a text that means several functions."""
    shown = found[:_SHOWN]
    places = where_texts(shown, source_place)
    listed = "; ".join(
        f"{one.handle} {one.name}{f' ({where})' if where else ''}" for one, where in zip(shown, places, strict=True)
    )
    more = f"; … {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
    error = SeveralFunctions(
        f"{len(found):,} functions match {wanted!r}", hint=f"give one of them: {listed}{more}", field="function"
    )
    error.found = found
    return error


def _by_handle(profile: TableProfile, codes: Columns, kind: str, key: int) -> Search:
    functions = Columns(profile.tables["functions"])
    code_object_id = None
    if kind == "c":
        row = next((row for row, one in enumerate(codes["code_object_id"]) if one == key), None)
        if row is None:
            raise UsageError(f"no code has the handle c{key}", hint=_keys_hint("c", codes["code_object_id"]))
        code_object_id, key = key, codes["function_id"][row]
    row = next((row for row, one in enumerate(functions["function_id"]) if one == key), None)
    if row is None:
        raise UsageError(f"no function has the handle f{key}", hint=_keys_hint("f", functions["function_id"]))
    name = functions["name"][row]
    same = [row for row, one in enumerate(functions["name"]) if one == name]
    for one in _with_code(profile, codes, _grouped(profile, functions, same)):
        if key in one.function_ids:
            return Search(one, code_object_id)
    raise UsageError(f"{name} (f{key}) has no machine code of its own", hint="annotate the function that called it")


def _keys_hint(kind: str, keys: Sequence[int]) -> str:
    return f"handles are from {kind}{min(keys)} to {kind}{max(keys)}" if keys else NO_CODE


def _by_address(profile: TableProfile, codes: Columns, address: int) -> Search:
    """The function whose code is, or was at some time, at an address."""
    functions = Columns(profile.tables["functions"])
    if rows := _rows_at(profile, codes, address):
        keys = {codes["function_id"][row] for row in rows}
        names = {name for key, name in functions.tuples("function_id", "name") if key in keys}
        same = [row for row, name in enumerate(functions["name"]) if name in names]
        groups = _with_code(profile, codes, _grouped(profile, functions, same))
        found = [one for one in groups if keys.intersection(one.function_ids)]
        if len(rows) == 1:
            return Search(found[0], codes["code_object_id"][rows[0]], address)
        if len(found) == 1:
            return Search(found[0], None, address)
        listed = "; ".join(_at_time(codes, row, found) for row in rows[:_SHOWN])
        more = f"; … {len(rows) - _SHOWN:,} more" if len(rows) > _SHOWN else ""
        raise UsageError(
            f"{len(rows):,} pieces of code were at {address:#x}, one after the other",
            hint=f"give the handle of one: {listed}{more}",
            field="function",
        )
    columns = ("address", "function_id", "inline_depth")
    keys = {
        key for at, key, depth in Columns(profile.tables["frames"]).tuples(*columns) if at == address and depth == 0
    }
    of_frames = [row for row, key in enumerate(functions["function_id"]) if key in keys]
    found = _with_code(profile, codes, _grouped(profile, functions, of_frames))
    if len(found) == 1:
        return Search(found[0], None, address)
    raise UsageError(
        f"no code is at {address:#x}",
        hint="an address is inside JIT code of a dump, or one at which a sample was taken",
        field="function",
    )


def _rows_at(profile: TableProfile, codes: Columns, address: int) -> list[int]:
    """The rows of code objects that were at an address, from the start or after they were moved."""
    starts, sizes = codes["start_address"], codes["size_bytes"]
    rows = [row for row, start in enumerate(starts) if _is_in(address, start, sizes[row])]
    moves = Columns(profile.tables["code_moves"])
    row_of = {key: row for row, key in enumerate(codes["code_object_id"])} if len(moves) else {}
    for key, new_address in moves.tuples("code_object_id", "new_address"):
        row = row_of.get(key)
        if row is not None and _is_in(address, new_address, sizes[row]):
            rows.append(row)
    return list(dict.fromkeys(rows))


def _is_in(address: int, start: int, size: int) -> bool:
    return start <= address < start + size


def _at_time(codes: Columns, row: int, found: Sequence[CodeFunction]) -> str:
    key = codes["code_object_id"][row]
    name = next((one.name for one in found if codes["function_id"][row] in one.function_ids), "?")
    return f"c{key} {name}"


def _grouped(profile: TableProfile, functions: Columns, rows: Sequence[int]) -> list[CodeFunction]:
    """Rows of `functions` as functions: those of one name, module and place are one."""
    modules = Columns(profile.tables["modules"])
    of_module = dict(zip(modules["module_id"], zip(modules["name"], modules["kind"], strict=True), strict=True))
    columns = ("function_id", "name", "module_id", "path", "line", "column", "native_id")
    groups: dict[tuple[Any, ...], CodeFunction] = {}
    for key, name, module_id, path, line, column, native_id in functions.take(rows, columns):
        module, kind = of_module.get(module_id, (None, "unknown"))
        # Different functions of a program may have one name.
        identity = (name, module, path, line, column, None if kind == "jit" else (native_id, module_id))
        if identity not in groups:
            groups[identity] = CodeFunction([], name, module, kind, path, line, column)
        groups[identity].function_ids.append(key)
    return list(groups.values())


def _with_code(profile: TableProfile, codes: Columns, functions: list[CodeFunction]) -> list[CodeFunction]:
    """Those functions that have code: compilations in a dump, or sampled code of a file."""
    of_function = {key: one for one in functions for key in one.function_ids}
    for code, key in codes.tuples("code_object_id", "function_id"):
        if key in of_function:
            of_function[key].code_object_ids.append(code)
    found = [one for one in functions if one.code_object_ids]
    others = {key: one for key, one in of_function.items() if not one.code_object_ids}
    if others:
        frames = Columns(profile.tables["frames"])
        sampled: dict[int, CodeFunction] = {}
        for key, depth, address in frames.tuples("function_id", "inline_depth", "relative_address"):
            if key in others and depth == 0 and address is not None:
                sampled[key] = others[key]
        found += [one for one in functions if any(sampled.get(key) is one for key in one.function_ids)]
    return found
