"""Statistics of calls as comma-separated values, in nanoseconds, or as `llvm-xray account -format=csv` has them."""

import csv
import io
from collections.abc import Iterator
from dataclasses import astuple
from typing import IO, Any

from perfuse.analysis.functions import Function
from perfuse.analysis.latency import LATENCY_COLUMNS, CallAccount, FunctionLatency
from perfuse.analysis.orders import Grouping, Order
from perfuse.analysis.profiles import CallProfile
from perfuse.errors import ExportError, UsageError
from perfuse.table import Columns

_FUNCTION = ("function", "native_id", "module", "path", "line")
_GROUPED: dict[str, tuple[str, ...]] = {"function": (), "thread": ("pid", "tid", "thread"), "cpu": ("cpu",)}
_LLVM = ("funcid", "count", "min", "median", "90%ile", "99%ile", "max", "sum", "debug", "function")
_LLVM_TIMES = ("min_ns", "median_ns", "p90_ns", "p99_ns", "max_ns", "sum_ns")


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
) -> None:
    """Writes a line a function, in UTF-8, quoted as RFC 4180 has it; what is not known is empty.

    Args:
        profile: The profile.
        out: A binary file object.
        by: Whether a function's calls are taken together, by thread, or by the processor they began on.
        order: What lines are sorted by, greatest first; by self time, or where `llvm` by the recording's own number.
        function: Only functions of such names: a part of them, a glob, or a regular expression between slashes.
        limit: At most so many lines; 0 for all.
        recursive_only: Only durations of calls made while their function was on the stack already.
        llvm: Columns, percentiles and seconds as llvm-xray has them: fuse with `tsc_hz=1_000_000_000`, so that times
            are ticks, which are then divided by the rate the log states, as there.

    Raises:
        UsageError: An option has an invalid value.
        ExportError: There are no calls.
    """
    if not profile.has_traces:
        raise ExportError("there are no calls", hint="statistics of calls are made of call traces")
    if llvm and by != "function":
        raise UsageError("llvm-xray accounts by function only", field="by")
    if llvm:
        lines = _llvm_lines(profile, order, function, limit or None, recursive_only)
    else:
        account = CallAccount(profile, by=by, recursive_only=recursive_only)
        lines = _lines(account.functions(limit or None, order=order or "self", pattern=function), by)
    for line in lines:
        out.write(line.encode("utf-8", "surrogateescape"))


def _lines(rows: list[FunctionLatency], by: Grouping) -> Iterator[str]:
    yield _line([*_FUNCTION, *_GROUPED[by], *LATENCY_COLUMNS])
    for one in rows:
        known = one.function
        values: list[Any] = [known.name, known.native_id, known.module, known.path, known.line]
        if one.thread is not None:
            values += [one.thread.pid, one.thread.tid, one.thread.name]
        elif by == "cpu":
            values.append(one.cpu)
        yield _line([*values, *astuple(one.latency)])


def _line(values: list[Any]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(values)
    return line.getvalue()


def _llvm_lines(
    profile: CallProfile, order: Order | None, pattern: str | None, limit: int | None, recursive_only: bool
) -> Iterator[str]:
    account = CallAccount(profile, rank="llvm", recursive_only=recursive_only)
    ns_a_second = _stated_second(profile)
    rows = account.functions(None if order is None else limit, order=order or "name", pattern=pattern)
    if order is None:
        rows = sorted(rows, key=lambda one: _signed(one.function))[:limit]
    yield ",".join(_LLVM) + "\n"
    for one in rows:
        times = [(getattr(one.latency, name) or 0) / ns_a_second for name in _LLVM_TIMES]
        numbers = [str(_signed(one.function)), str(one.latency.num_timed), *(f"{time:e}" for time in times)]
        texts = [_debug(one.function), one.function.name]
        # Calls of which none was seen whole are not in its account.
        if one.latency.num_timed:
            yield ",".join([*numbers, *('"' + text.replace('"', '""') + '"' for text in texts)]) + "\n"


def _stated_second(profile: CallProfile) -> float:
    """Nanoseconds in what llvm-xray takes for a second: it believes the header's rate, and tells ticks without one."""
    clocks = Columns(profile.tables["clocks"])
    rates = {*zip(clocks["hz"], clocks["stated_hz"], strict=True)} - {(hz, None) for hz in clocks["hz"]}
    if len(rates) > 1:
        raise ExportError("clocks of different rates", hint="llvm-xray accounts for one log at a time")
    for hz, stated_hz in rates:
        return (stated_hz or 1) * 1e9 / (hz or 1e9)
    return 1e9


def _signed(function: Function) -> int:
    """The recording's own number, in 32 bits with a sign."""
    number = function.native_id or 0
    return number - 2**32 if number >= 2**31 else number


def _debug(function: Function) -> str:
    if not function.path:
        return "<invalid>:0:0"
    return f"{function.path.rsplit('/', 1)[-1]}:{function.line or 0}:{function.column or 0}"
