"""SQL over the common tables, with a limit of rows and of time."""

import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from perfuse.reports.json_text import address_value, is_address, jsonable
from perfuse.viewer.answers.parameters import Parameters, RequestError

if TYPE_CHECKING:
    from perfuse.viewer.session import Session

MOST_ROWS = 10_000
MOST_SECONDS = 30.0
EXACT = 2**53
"""Numbers from here on have no exact form in JavaScript: they are sent as text."""


def tables(session: "Session", _parameters: Parameters) -> dict[str, Any]:
    """The tables that queries name."""
    from perfuse.table import names, specification

    def entry(name: str) -> dict[str, Any]:
        spec = specification(name)
        columns = [
            {"name": column, "type": kind, "nullable": nullable, "doc": doc}
            for column, kind, nullable, doc in spec["columns"]
        ]
        return {"name": name, "doc": spec["doc"], "columns": columns, "filled": session.profile.has(name)}

    return {"tables": [entry(name) for name in names()], "command": session.command("tables")}


_INTERRUPT_EVERY_S = 0.1


class Runner:
    """A thread that runs queries, one at a time: a connection belongs to a thread."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.one_at_a_time = threading.Lock()
        self.interrupt: Callable[[], None] | None = None
        self.was_cancelled = False
        threading.Thread(target=self._run, name="perfuse-sql", daemon=True).start()

    def _run(self) -> None:
        while True:
            self._waiting.get()()

    def result(self, work: Callable[[], Any], seconds: float) -> tuple[bool, Any]:
        """Runs work in the thread, and interrupts it after some seconds: whether it was, and the result or error."""
        done = threading.Event()
        found: list[Any] = []

        def job() -> None:
            try:
                found.append(work())
            except Exception as error:
                found.append(error)
            done.set()

        self._waiting.put(job)
        is_late, deadline = False, time.monotonic() + seconds
        while not done.wait(_INTERRUPT_EVERY_S):
            is_late = is_late or time.monotonic() >= deadline
            # Repeated: an interrupt that arrives before the database has begun is lost.
            if (is_late or self.was_cancelled) and self.interrupt is not None:
                self.interrupt()
        if isinstance(found[0], Exception) and not is_late and not self.was_cancelled:
            raise found[0]
        return is_late, found[0]


def query(session: "Session", request: Mapping[str, Any]) -> dict[str, Any]:
    """The rows of a query.

    Raises:
        RequestError: It takes too long, or was cancelled.
    """
    text, limit = request.get("query"), request.get("limit", 1000)
    if not isinstance(text, str) or not text.strip():
        raise RequestError(400, "bad_parameter", "query is the text of a query")
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 < limit <= MOST_ROWS:
        raise RequestError(400, "bad_parameter", f"limit is a number from 1 to {MOST_ROWS:,}")
    profile = session.profile
    runner = session.cached("sql-runner", Runner)
    if not runner.one_at_a_time.acquire(blocking=False):
        raise RequestError(409, "busy", "another query is running", "cancel it, or wait for it")
    try:
        runner.was_cancelled = False
        started = time.perf_counter()

        def work() -> tuple[list[str], list[str], list[tuple[Any, ...]]]:
            runner.interrupt = profile._database.interrupter()
            relation = profile.sql(text)
            if relation is None:
                return [], [], []
            columns, types = list(relation.columns), [str(kind) for kind in relation.types]
            return columns, types, relation.limit(limit + 1).fetchall()

        is_late, found = runner.result(work, MOST_SECONDS)
        if runner.was_cancelled:
            raise RequestError(409, "cancelled", "the query was cancelled")
        if is_late:
            raise RequestError(408, "timeout", f"the query did not end within {MOST_SECONDS:.0f} s")
        columns, types, rows = found
    finally:
        runner.interrupt = None
        runner.one_at_a_time.release()
    return {
        "columns": [{"name": name, "type": kind} for name, kind in zip(columns, types, strict=True)],
        "rows": [[_value(name, value) for name, value in zip(columns, row, strict=True)] for row in rows[:limit]],
        "truncated": len(rows) > limit,
        "elapsed_ms": round((time.perf_counter() - started) * 1000, 1),
        "command": session.command("query", text, "--limit", str(limit)),
    }


def cancel(session: "Session", _request: Mapping[str, Any]) -> dict[str, Any]:
    """Stops the query that runs."""
    runner = session.cached("sql-runner", Runner)
    interrupt = runner.interrupt
    if interrupt is not None:
        runner.was_cancelled = True
        interrupt()
    return {"cancelled": interrupt is not None}


def _value(column: str, value: Any) -> Any:
    if is_address(column):
        return address_value(value)
    shown = jsonable(value)
    if isinstance(shown, int) and not isinstance(shown, bool) and abs(shown) >= EXACT:
        return str(shown)
    return shown
