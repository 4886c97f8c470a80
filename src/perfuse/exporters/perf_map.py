"""`perf-PID.map`: the names of a process's JIT code, for perf, bpftrace and bcc.

A line is `START SIZE name`, the numbers in hexadecimal; control characters in names are escaped. The format has no
time: a map is valid for one point in time.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from math import isfinite
from pathlib import Path
from typing import IO

from perfuse.errors import ExportError, UsageError
from perfuse.exporters.contents import contents
from perfuse.exporters.source import Source, no_code_error
from perfuse.reports.text import printable

CONTENTS = contents(code="addresses, sizes and names")


def write(profile: Source, out: IO[bytes], *, at: float | None = None, pid: int | None = None) -> None:
    """Writes the map of one process.

    Args:
        profile: The profile.
        out: A binary file object.
        at: Seconds after the first sample; only code that existed then is written. By default all code is written, and
            where code of different times overlaps, the last.
        pid: Process; required where several have JIT code.

    Raises:
        ExportError: No process has JIT code, or several have and none is named.
        UsageError: `at` is not a number.
    """
    maps = _maps(profile, at)
    pids = [of for of, _ in maps]
    if pid is not None and pid not in pids:
        hint = f"processes with JIT code: {', '.join(map(str, pids))}"
        raise ExportError(f"process {pid} has no JIT code", field="pid", hint=hint)
    selected = [lines for of, lines in maps if pid in (None, of)]
    if pid is not None and len(selected) > 1:
        raise ExportError(f"{len(selected)} processes have pid {pid}", hint="give a directory for a file each")
    if len(selected) > 1:
        raise ExportError(
            f"a perf map is of one process, and {len(maps)} have JIT code: {', '.join(map(str, pids))}",
            field="pid",
            hint="name one with pid=, or give a directory for a file each",
        )
    out.write(selected[0].encode())


def write_directory(profile: Source, path: Path, *, at: float | None = None) -> None:
    """Writes `perf-PID.map` for every process that has JIT code; options as in `write`.

    A further process with a pid gets `perf-PID-2.map`.
    """
    num_of: Counter[int] = Counter()
    for pid, lines in _maps(profile, at):
        num_of[pid] += 1
        number = f"-{num_of[pid]}" if num_of[pid] > 1 else ""
        (path / f"perf-{pid}{number}.map").write_text(lines, encoding="utf-8")


def _maps(profile: Source, at: float | None) -> list[tuple[int, str]]:
    """Each process's pid and lines, by pid: several processes may have one.

    Raises:
        ExportError: No process has JIT code, or had some at that time.
    """
    if at is not None and not isfinite(at):
        raise UsageError(f"at is a number of seconds, not {at}", field="at")
    if at is None:
        moment, alive = "NULL::BIGINT", "true"
    else:
        start = "coalesce((SELECT min(ts_ns) FROM samples), (SELECT min(create_ns) FROM code_objects))"
        moment = f"{start} + {round(at * 1e9)}"
        alive = "create_ns <= moment AND (retire_ns IS NULL OR retire_ns > moment)"
    rows = profile.sql(f"""
        WITH time AS (SELECT {moment} AS moment),
        moved AS (
            SELECT code_object_id, max_by(new_address, ts_ns) AS address
            FROM code_moves CROSS JOIN time WHERE moment IS NULL OR ts_ns <= moment GROUP BY 1
        )
        SELECT process_id, pid, coalesce(address, start_address), size_bytes,
            coalesce(nullif(f.linkage_name::VARCHAR, ''), f.name::VARCHAR)
        FROM code_objects c CROSS JOIN time
        JOIN processes p USING (process_id)
        JOIN functions f USING (function_id)
        LEFT JOIN moved USING (code_object_id)
        WHERE size_bytes > 0 AND {alive}
        ORDER BY pid, process_id, create_ns DESC, code_object_id DESC
    """).fetchall()
    if not rows and at is not None and profile.sql("SELECT 1 FROM code_objects LIMIT 1").fetchall():
        raise ExportError(f"no JIT code existed {at:g} s after the first sample", field="at")
    if not rows:
        raise no_code_error()
    return [
        (pid, _lines(row[1:] for row in group)) for (_, pid), group in groupby(rows, key=lambda row: (row[0], row[1]))
    ]


def _lines(newest_first: Iterable[tuple[int, int, int, str]]) -> str:
    """Lines by address. Code that newer code overlaps, even in part, is left out."""
    symbols: list[tuple[int, int, str]] = []
    for _, start, size, name in newest_first:
        at = bisect_left(symbols, (start + size,))
        if at == 0 or symbols[at - 1][0] + symbols[at - 1][1] <= start:
            insort(symbols, (start, size, name))
    return "".join(f"{start:x} {size:x} {printable(' '.join(name.splitlines()))}\n" for start, size, name in symbols)
