"""Calls and instants of the tables, which exports are compared with."""

import json
from collections import Counter
from typing import Any, NamedTuple


class Call(NamedTuple):
    """A call; `arguments` as JSON."""

    tid: int
    name: str
    start_ns: int
    duration_ns: int
    start_reason: str
    end_reason: str
    arguments: str


class Instant(NamedTuple):
    """An instant; bytes that are not text are in hexadecimal."""

    tid: int
    ts_ns: int
    kind: str
    payload: str


NAMES = ["small-v5", "quoted-names-v5", "threads4-v5", "threads4-rotate-v5", "sqmt-small-v5", "lua-small-v5"]
"""Logs with arguments, tail calls, exceptions, longjmp, lost starts, migrations, custom events, unusual names."""


def calls(profile: Any) -> Counter[Call]:
    """Every call of a profile."""
    rows = profile.sql("""
        SELECT tid, f.name::VARCHAR, slices.start_ns, duration_ns,
            start_reason::VARCHAR, end_reason::VARCHAR, args::VARCHAR
        FROM slices JOIN functions f USING (function_id) JOIN threads USING (thread_id)
    """).fetchall()
    return Counter(Call(*row, in_json(json.loads(args or "[]"))) for *row, args in rows)


def instants(profile: Any) -> Counter[Instant]:
    """Every instant of a profile."""
    rows = profile.sql("SELECT tid, ts_ns, kind::VARCHAR, payload FROM instants JOIN threads USING (thread_id)")
    return Counter(Instant(*row, payload_text(payload)) for *row, payload in rows.fetchall())


def payload_text(payload: bytes | None) -> str:
    """Bytes as exports show them."""
    try:
        return "" if payload is None else payload.decode()
    except UnicodeDecodeError:
        return payload.hex()


def in_json(arguments: list[Any]) -> str:
    """Arguments; those that a double cannot represent are text."""
    numbers = [int(argument, 16) if isinstance(argument, str) else argument for argument in arguments]
    return json.dumps(numbers)
