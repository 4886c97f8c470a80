"""Statistics of calls as comma-separated values: in nanoseconds or ticks, or as in `llvm-xray account -format=csv`."""

import csv
import io
from collections.abc import Iterator
from dataclasses import astuple
from typing import IO, Any, Literal

from perfuse.analysis.functions import Function
from perfuse.analysis.latency import LATENCY_COLUMNS, CallAccount, FunctionLatency
from perfuse.analysis.orders import Grouping, Order
from perfuse.analysis.profiles import CallProfile
from perfuse.errors import ExportError, UsageError, require_in_range
from perfuse.exporters.contents import contents
from perfuse.reports.text import printable
from perfuse.table import Columns

_FUNCTION = ("function", "native_id", "module", "path", "line")
_GROUPED: dict[str, tuple[str, ...]] = {"function": (), "thread": ("pid", "tid", "thread"), "cpu": ("cpu",)}
_LLVM = ("funcid", "count", "min", "median", "90%ile", "99%ile", "max", "sum", "debug", "function")
_LLVM_TIMES = ("min_ns", "median_ns", "p90_ns", "p99_ns", "max_ns", "sum_ns")


FORMULA_STARTS = ("=", "+", "-", "@")
"""Starts of texts that spreadsheets compute."""

CONTENTS = contents(calls="statistics of functions", call_sums="statistics of functions")


def write(
    profile: CallProfile,
    out: IO[bytes],
    *,
    by: Grouping = "function",
    order: Order | None = None,
    function: str | None = None,
    limit: int = 0,
    recursive_only: bool = False,
    llvm: bool = False,
    formulas: Literal["keep", "text"] = "keep",
) -> None:
    """Writes a line per function, in UTF-8, quoted as in RFC 4180; unknown values are empty, control characters are
    escaped. Names of columns have the unit: `self_ns`, or `self_ticks` where the rate of the counter is unknown.

    Args:
        profile: The profile.
        out: A binary file object.
        by: Grouping of a function's calls: all together, by thread, or by the processor of their start.
        order: Statistic to sort by, largest first; by default self time, with `llvm` the recording's own number.
        function: Only functions of matching names: a part of them, a glob, or a regular expression between slashes.
        limit: Largest number of lines; 0 for all.
        recursive_only: Only durations of calls made while their function was on the stack already.
        llvm: Columns, percentiles and seconds of llvm-xray: fuse with `tsc_hz=1_000_000_000`, so that times are ticks,
            which are then divided by the rate that the log states, as in llvm-xray.
        formulas: How names are written that a spreadsheet would compute, which begin with `=`, `+`, `-` or `@`: as they
            are (`keep`), or after an apostrophe (`text`).

    Raises:
        UsageError: An option has an invalid value.
        ExportError: There are no calls.
    """
    if not profile.has_traces:
        raise ExportError(
            "no call was recorded: this target writes the statistics of a call trace",
            hint='tables are written by a query: perfuse query FILE "FROM samples" -o samples.csv',
        )
    if formulas not in {"keep", "text"}:
        raise UsageError(f"formulas is keep or text, not {formulas!r}", field="formulas")
    require_in_range(limit, 0, 2**63 - 1, "limit")
    if llvm and by != "function":
        raise UsageError("llvm-xray accounts by function only", field="by")
    if llvm:
        lines = _llvm_lines(profile, order, function, limit or None, recursive_only)
    else:
        account = CallAccount(profile, by=by, recursive_only=recursive_only)
        rows = account.functions(limit or None, order=order or "self", pattern=function)
        lines = _lines(rows, by, account.unit, formulas)
    for line in lines:
        out.write(line.encode("utf-8", "surrogateescape"))


def _text(value: Any, formulas: str) -> Any:
    """A value of a cell: text without control characters, and without formulas where they are not kept."""
    if not isinstance(value, str):
        return value
    shown = printable(value)
    return "'" + shown if formulas == "text" and shown.startswith(FORMULA_STARTS) else shown


def _lines(rows: list[FunctionLatency], by: Grouping, unit: str, formulas: str) -> Iterator[str]:
    columns = [name if unit == "ns" else name.replace("_ns", f"_{unit}") for name in LATENCY_COLUMNS]
    yield _line([*_FUNCTION, *_GROUPED[by], *columns])
    for one in rows:
        function = one.function
        values: list[Any] = [function.name, function.native_id, function.module, function.path, function.line]
        if one.thread is not None:
            values += [one.thread.pid, one.thread.tid, one.thread.name]
        elif by == "cpu":
            values.append(one.cpu)
        yield _line([*(_text(value, formulas) for value in values), *astuple(one.latency)])


def _line(values: list[Any]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(values)
    return line.getvalue()


def _llvm_lines(
    profile: CallProfile, order: Order | None, pattern: str | None, limit: int | None, recursive_only: bool
) -> Iterator[str]:
    account = CallAccount(profile, rank="llvm", recursive_only=recursive_only)
    ns_per_second = _ns_per_llvm_second(profile)
    rows = account.functions(None if order is None else limit, order=order or "name", pattern=pattern)
    if order is None:
        rows = sorted(rows, key=lambda one: _signed(one.function))[:limit]
    yield ",".join(_LLVM) + "\n"
    for one in rows:
        times = [(getattr(one.latency, name) or 0) / ns_per_second for name in _LLVM_TIMES]
        numbers = [str(_signed(one.function)), str(one.latency.num_timed), *(f"{time:e}" for time in times)]
        texts = [printable(_debug(one.function)), printable(one.function.name)]
        # llvm-xray leaves out functions without a complete call.
        if one.latency.num_timed:
            yield ",".join([*numbers, *('"' + text.replace('"', '""') + '"' for text in texts)]) + "\n"


def _ns_per_llvm_second(profile: CallProfile) -> float:
    """Nanoseconds per second of llvm-xray: it uses the header's rate, or prints ticks where there is none."""
    clocks = Columns(profile.tables["clocks"])
    rates = {*zip(clocks["hz"], clocks["stated_hz"], strict=True)} - {(hz, None) for hz in clocks["hz"]}
    if len(rates) > 1:
        raise ExportError("clocks of different rates", hint="llvm-xray accounts for one log at a time")
    for hz, stated_hz in rates:
        return (stated_hz or 1) * 1e9 / (hz or 1e9)
    return 1e9


def _signed(function: Function) -> int:
    """The recording's own number, as a signed 32-bit number."""
    number = function.native_id or 0
    return number - 2**32 if number >= 2**31 else number


def _debug(function: Function) -> str:
    if not function.path:
        return "<invalid>:0:0"
    return f"{function.path.rsplit('/', 1)[-1]}:{function.line or 0}:{function.column or 0}"
