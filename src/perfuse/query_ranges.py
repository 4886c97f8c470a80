"""Ranges of values that a query needs of a table: what else it has cannot change the result."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from perfuse.table import Near

_SMALLEST, _GREATEST = -(2**63), 2**63 - 1
_ROUNDING = 2**11
"""How far apart 64-bit integers may be that are the same number in floating point."""

_JOINS = ("INNER", "LEFT")
_JOIN_CONDITIONS = ("REGULAR", "CROSS")
_LOWER = ("COMPARE_GREATERTHAN", "COMPARE_GREATERTHANOREQUALTO")
_UPPER = ("COMPARE_LESSTHAN", "COMPARE_LESSTHANOREQUALTO")


@dataclass(frozen=True, slots=True)
class NeededRange:
    """A range of a table that a query names once.

    Attributes:
        table: The table.
        near: The column and its range.
        start: Where the query names the table.
        is_alone: Whether the query gives it no other name there.
    """

    table: str
    near: Near
    start: int
    is_alone: bool


def needed_ranges(
    query: str, parsed: Mapping[str, Any], columns: Mapping[str, Sequence[str]], parameters: Any
) -> list[NeededRange]:
    """The ranges that conditions of a query leave of tables; none for queries that are not understood.

    Args:
        query: The query.
        parsed: What DuckDB's `json_serialize_sql` makes of it.
        columns: Columns of integers of each table that has parts.
        parameters: Values of its parameters, by name or in order.
    """
    statements = parsed.get("statements")
    if parsed.get("error") is not False or not isinstance(statements, list) or len(statements) != 1:
        return []
    if "rowid" in query.lower():
        return []  # it is the place of a row in the whole table
    nodes = [node for node in _objects(parsed) if node.get("type") in ("SELECT_NODE", "BASE_TABLE")]
    named = [str(node.get("table_name", "")).lower() for node in nodes if node["type"] == "BASE_TABLE"]
    named += [str(key).lower() for node in _objects(parsed) for key in _names_of_its_own(node)]
    found = []
    for node in nodes:
        if node["type"] != "SELECT_NODE" or node.get("sample") is not None:
            continue
        for place in _joined(node.get("from_table")):
            table = str(place["table_name"]).lower()
            if table not in columns or named.count(table) != 1:
                continue
            conditions = list(_conjuncts(node.get("where_clause")))
            needed = _needed(query, place, table, columns[table], conditions, parameters)
            found += [] if needed is None else [needed]
    return found


def _needed(
    query: str,
    place: Mapping[str, Any],
    table: str,
    columns: Sequence[str],
    conditions: Sequence[Mapping[str, Any]],
    parameters: Any,
) -> NeededRange | None:
    start = place.get("query_location")
    is_named_here = isinstance(start, int) and query[start : start + len(table)].lower() == table and query.isascii()
    is_plain = not any(place.get(key) for key in ("sample", "at_clause", "column_name_alias", "schema_name"))
    if not is_named_here or not is_plain or not isinstance(start, int):
        return None
    alias = str(place.get("alias") or table).lower()
    for column in columns:
        least, greatest = _SMALLEST, _GREATEST
        for condition in conditions:
            low, high = _limits(condition, (alias, column), parameters)
            least, greatest = max(least, low), min(greatest, high)
        if (least, greatest) != (_SMALLEST, _GREATEST):
            near = (column, min(least, _GREATEST), max(greatest, _SMALLEST))
            return NeededRange(table, near, start, not place.get("alias"))
    return None


def with_ranges(query: str, ranges: Sequence[NeededRange], name_of: Callable[[NeededRange], str]) -> str:
    """The query with other names for the tables of ranges.

    Args:
        query: The query.
        ranges: What `needed_ranges` found.
        name_of: The name of the table with only the rows of a range.
    """
    for needed in sorted(ranges, key=lambda one: one.start, reverse=True):
        end = needed.start + len(needed.table)
        alias = f" AS {needed.table}" if needed.is_alone else ""
        query = f"{query[: needed.start]}{name_of(needed)}{alias}{query[end:]}"
    return query


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """All objects in a document."""
    if isinstance(value, dict):
        yield value
        for one in value.values():
            yield from _objects(one)
    elif isinstance(value, list):
        for one in value:
            yield from _objects(one)


def _names_of_its_own(node: Mapping[str, Any]) -> list[object]:
    """The names that a clause WITH gives."""
    defined = node.get("cte_map")
    entries = defined.get("map") if isinstance(defined, dict) else None
    return [entry.get("key") for entry in entries or () if isinstance(entry, dict)]


def _joined(place: Any) -> Iterator[Mapping[str, Any]]:
    """The tables in a clause FROM of which a row that the condition excludes changes no other row of the result."""
    if not isinstance(place, dict) or place.get("sample") is not None:
        return
    if place.get("type") == "BASE_TABLE" and isinstance(place.get("table_name"), str):
        yield place
    elif (
        place.get("type") == "JOIN"
        and place.get("join_type") in _JOINS
        and place.get("ref_type") in _JOIN_CONDITIONS
        and not place.get("alias")
    ):
        yield from _joined(place.get("left"))
        yield from _joined(place.get("right"))


def _conjuncts(condition: Any) -> Iterator[Mapping[str, Any]]:
    """Conditions of which each must be true."""
    if not isinstance(condition, dict):
        return
    if condition.get("type") == "CONJUNCTION_AND":
        for one in condition.get("children", ()):
            yield from _conjuncts(one)
    else:
        yield condition


class _Limits(NamedTuple):
    least: int = _SMALLEST
    greatest: int = _GREATEST


def _limits(condition: Mapping[str, Any], column: tuple[str, str], parameters: Any) -> _Limits:
    """The values of a column that fulfil a condition; all where that is not known."""
    kind = condition.get("type")
    if kind == "COMPARE_BETWEEN" and _is_column(condition.get("input"), column):
        low, high = _bounds(condition.get("lower"), parameters), _bounds(condition.get("upper"), parameters)
        return _Limits(_SMALLEST if low is None else low[0], _GREATEST if high is None else high[1])
    left, right = condition.get("left"), condition.get("right")
    if _is_column(right, column):
        left, right = right, left
        kind = {one: other for pair in zip(_LOWER, _UPPER, strict=True) for one, other in (pair, pair[::-1])}.get(
            str(kind), kind
        )
    bounds = _bounds(right, parameters) if _is_column(left, column) else None
    if bounds is None:
        return _Limits()
    if kind == "COMPARE_EQUAL":
        return _Limits(*bounds)
    if kind in _LOWER:
        return _Limits(least=bounds[0])
    return _Limits(greatest=bounds[1]) if kind in _UPPER else _Limits()


def _is_column(value: Any, column: tuple[str, str]) -> bool:
    if not isinstance(value, dict) or value.get("type") != "COLUMN_REF":
        return False
    names = value.get("column_names")
    return isinstance(names, list) and tuple(str(name).lower() for name in names) in (column, column[1:])


def _bounds(value: Any, parameters: Any) -> tuple[int, int] | None:
    """Two integers that a number is between; None for what is not a number."""
    number = _number(value, parameters)
    if number is None:
        return None
    if isinstance(number, int):
        return number, number
    return math.floor(number) - _ROUNDING, math.ceil(number) + _ROUNDING


def _number(value: Any, parameters: Any) -> int | Fraction | None:
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "VALUE_PARAMETER":
        return _parameter(value.get("identifier"), parameters)
    return _constant(value) if kind == "VALUE_CONSTANT" else None


def _constant(value: Mapping[str, Any]) -> int | Fraction | None:
    literal, stated = value.get("literal"), value.get("value")
    if isinstance(literal, dict):  # DuckDB 2
        text = literal.get("text") if literal.get("kind") in ("INTEGER", "NUMERIC") else None
        return _exact(text)
    kind = stated.get("type") if isinstance(stated, dict) else None
    if isinstance(stated, dict) and isinstance(kind, dict) and kind.get("id") in ("INTEGER", "BIGINT", "DOUBLE"):
        return _exact(stated.get("value"))
    return None


def _exact(value: object) -> int | Fraction | None:
    try:
        number = Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        return None
    is_whole = number.denominator == 1 and str(value).lstrip("-").isdecimal()
    return int(number) if is_whole else number


def _parameter(name: object, parameters: Any) -> int | None:
    if isinstance(parameters, Mapping):
        value = parameters.get(str(name))
    elif isinstance(parameters, Sequence) and str(name).isdecimal() and 0 < int(str(name)) <= len(parameters):
        value = parameters[int(str(name)) - 1]
    else:
        return None
    return value if type(value) is int else None
