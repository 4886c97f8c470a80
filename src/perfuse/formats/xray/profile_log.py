"""The calls of a profile as an XRay log."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from perfuse import _core
from perfuse.errors import ExportError, UsageError, require_in_range, require_version
from perfuse.filters.selection import Selection
from perfuse.formats.xray.log import Endian, Mode, WriteSummary
from perfuse.recording import Recording
from perfuse.table import HAS_ONLY_NUMBER

_MAX_NS = 2**63 - 1


class TracedProfile(Protocol):
    """A profile whose calls can be written as a log; `perfuse.Profile` is one."""

    @property
    def _fusion(self) -> _core.Profile:
        """All recordings, joined."""
        ...

    @property
    def recordings(self) -> Sequence[Recording]:
        """The open files."""
        ...

    @property
    def selection(self) -> Selection:
        """The selected threads and time."""
        ...

    def sql(self, query: str, /) -> Any:
        """Runs SQL over the common tables."""
        ...


class CallLog:
    """Writes the selected calls of a profile's traces; `Profile.call_log` is one."""

    def __init__(self, profile: TracedProfile) -> None:
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
    ) -> WriteSummary:
        """Writes a log to an open file, given as its descriptor.

        XRay logs keep their ticks, as with `perfuse.xray.convert`. Calls of other recorders are written with a tick
        for each nanosecond; where XRay cannot represent their function ids, functions are numbered from 1 on.

        Args:
            descriptor: The file.
            mode: `fdr` or `basic`; by default that of the first XRay log, else `fdr`.
            version: 1 to 5 of FDR mode, 1 to 3 of Basic mode.
            endian: `little` or `big`.
            hz: Rate of the counter to state for XRay logs, whose headers may then differ.
            yaml: Write XRay logs as the YAML that llvm-xray reads, with the names of functions.

        Raises:
            ExportError: The profile has no calls, or its logs are not of one run.
            UsageError: The version does not exist.
        """
        traces = [r for r in self._profile.recordings if r.role in ("call_trace", "runtime_log")]
        if not traces:
            raise ExportError("the profile has no calls", hint="give an XRay log")
        selection = self._profile.selection
        between_ns = None
        if selection.start_ns is not None or selection.end_ns is not None:
            end = _MAX_NS if selection.end_ns is None else selection.end_ns
            between_ns = (selection.start_ns or 0, end)
        require_version(version)
        require_in_range(hz, 1, 2**64 - 1, "hz")
        options: _core._XRayOptions = {
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
            if all(r.format == "xray" for r in traces):
                names = self._names() if yaml else None
                facts = _core.convert_xray([r._core for r in traces], descriptor, options, names)
                return WriteSummary._from_core(facts)
            if yaml:
                raise ExportError("only XRay logs are written as YAML", hint="write a log, and convert that")
            facts, functions, threads = _core.write_xray(
                self._profile._fusion, descriptor, options, self._is_monotonic()
            )
        except (ValueError, OverflowError) as error:
            raise UsageError(str(error), field="version") from error
        summary = WriteSummary._from_core(facts)
        new = {"new_function_ids": functions, "new_tids": threads}
        items = {**summary.unsupported, **{name: count for name, count in new.items() if count}}
        return replace(summary, unsupported=items)

    def _names(self) -> dict[int, str]:
        """Names of functions by the number in the log, which is negative in Basic mode from object 128 on."""
        named = f"SELECT native_id, name FROM functions WHERE native_id IS NOT NULL AND NOT {HAS_ONLY_NUMBER}"
        return {number & 0xFFFFFFFF: name for number, name in self._profile.sql(named).fetchall()}

    def _tids(self) -> list[int] | None:
        """Thread ids of the selected threads; None where all are selected."""
        keys = self._profile.selection.threads
        if keys is None:
            return None
        # The core numbers threads without a tid in this way.
        tid = "coalesce(tid, 2147483647 - thread_id)"
        rows = self._profile.sql(f"SELECT {tid} FROM threads WHERE thread_id IN ({keys})").fetchall()
        return [tid for (tid,) in rows]

    def _is_monotonic(self) -> bool:
        kinds = self._profile.sql("SELECT DISTINCT kind FROM clocks").fetchall()
        return bool(kinds == [("monotonic",)])
