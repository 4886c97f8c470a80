"""The calls of a profile as an XRay log."""

from dataclasses import replace
from typing import TYPE_CHECKING

from perfuse import _core
from perfuse.errors import ExportError, UsageError
from perfuse.formats.xray_log import Endian, Mode, Written

if TYPE_CHECKING:
    from perfuse.profile import Profile


class CallLog:
    """Writes what a profile's traces tell of calls; `Profile.call_log` is one."""

    def __init__(self, profile: "Profile") -> None:
        self._profile = profile

    def write(
        self,
        descriptor: int,
        *,
        mode: Mode | None = None,
        version: int | None = None,
        endian: Endian | None = None,
        hz: int | None = None,
        yaml: bool = False,
    ) -> Written:
        """Writes a log to an open file, given as its descriptor: what the profile selects of it.

        XRay logs are written with the ticks they have, as `perfuse.formats.xray_log.convert` does. Calls that others
        told are written with a tick for each nanosecond, and where XRay has no room for the ids of their functions,
        those are numbered from 1 on.

        Args:
            descriptor: The file.
            mode: `fdr` or `basic`; that of the first XRay log, else `fdr`, where not given.
            version: 1 to 5 of FDR mode, 1 to 3 of Basic mode.
            endian: `little` or `big`.
            hz: Rate of the counter to state for XRay logs, whose headers may then differ.
            yaml: Write XRay logs as the YAML that llvm-xray reads.

        Raises:
            ExportError: The profile has no calls, or its logs are not of one run.
            UsageError: There is no such version.
        """
        tracing = [r for r in self._profile.recordings if r.role in ("call_trace", "runtime_log")]
        if not tracing:
            raise ExportError("the profile tells of no calls", hint="give an XRay log")
        selection = self._profile.selection
        between_ns = None
        if selection.start_ns is not None or selection.end_ns is not None:
            end = _LATEST if selection.end_ns is None else selection.end_ns
            between_ns = (selection.start_ns or 0, end)
        wanted: _core._Wanted = {
            "mode": mode,
            "version": version,
            "endian": endian,
            "hz": hz,
            "between_ns": between_ns,
            "is_relative": False,
            "tids": self._tids(),
            "functions": None,
        }
        try:
            if all(r.format == "xray" for r in tracing):
                return Written.of(_core.convert_xray([r._core for r in tracing], descriptor, wanted, yaml))
            if yaml:
                raise ExportError("only XRay logs are written as YAML", hint="write a log, and convert that")
            facts, functions, threads = _core.write_xray(
                self._profile._fusion, descriptor, wanted, self._is_monotonic()
            )
        except (ValueError, OverflowError) as error:
            raise UsageError(str(error), field="version") from error
        written = Written.of(facts)
        new = {"new_function_ids": functions, "new_tids": threads}
        return replace(written, misfits={**written.misfits, **{name: count for name, count in new.items() if count}})

    def _tids(self) -> list[int] | None:
        thread = self._profile.selection.thread
        if thread is None or isinstance(thread, int):
            return None if thread is None else [thread]
        name = thread.replace("'", "''")
        # As the core numbers threads that have no tid.
        tid = "coalesce(tid, 2147483647 - thread_id)"
        rows = self._profile.sql(f"SELECT {tid} FROM threads WHERE name = '{name}'").fetchall()
        return [tid for (tid,) in rows]

    def _is_monotonic(self) -> bool:
        kinds = self._profile.sql("SELECT DISTINCT kind FROM clocks").fetchall()
        return kinds == [("monotonic",)]


_LATEST = 2**63 - 1
