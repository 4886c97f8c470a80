"""How a profile is saved, and what a saved one answers from its file instead of from this machine."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from perfuse import _core
from perfuse.archive.contents import CodeChoice, LineChoice, NativeCode, SourceChoice
from perfuse.table import ClosedObject

if TYPE_CHECKING:
    from perfuse._core import ArrowStream
    from perfuse.archive.facts import EventSums
    from perfuse.archive.writing import SavedFile


WITHOUT_EVENTS = frozenset({"samples", "code_dump", "unwind_tables"})
"""Roles of recordings without calls and allocations."""


class SavableProfile:
    """Part of `perfuse.Profile`."""

    _fusion: _core.Profile

    def save(
        self,
        path: str | PathLike[str],
        *,
        code: CodeChoice = "none",
        sources: SourceChoice = "none",
        lines: LineChoice = "sampled",
        inputs: bool = False,
        progress: Callable[[str, float], None] | None = None,
    ) -> "SavedFile":
        """Saves the profile with everything that was resolved; `perfuse.fuse` and every verb open the file.

        Args:
            path: File to write; `-` is standard output.
            code: Machine code to save, which `annotate` and images of code need.
            sources: Source texts to save.
            lines: Code whose rows of tables `line_rows`, `inline_calls` and, with dumps, `functions` and
                `code_objects` are saved as Parquet.
            inputs: Whether the recordings are saved as they are, with all code and all copies of stacks.
            progress: Called with the name of each step and the part of the work that is done, from 0 to 1.

        Raises:
            UsageError: The profile is a selection, or was opened from a saved profile.
            OSError: The file cannot be written.
        """
        from perfuse.archive.writing import Options, save

        whole: Any = self
        return save(whole, path, Options(code, sources, lines, inputs), progress)

    @property
    def _is_closed(self) -> bool:
        return isinstance(self._fusion, ClosedObject)

    @property
    def _has_only_samples(self) -> bool:
        """Whether no rows of `samples` are made of calls or allocations."""
        whole: Any = self
        return not (whole.has_traces or whole.has("allocations"))

    @property
    def _has_no_events(self) -> bool:
        """Whether its recordings are none of calls or of a runtime."""
        whole: Any = self
        return all(one.role in WITHOUT_EVENTS for one in whole.recordings)

    @property
    def _events(self) -> _core.Profile:
        """What has the calls and events of the selected time; others may be missing."""
        return self._fusion

    def _rows_by(self, *, time: str | None = "ts_ns", **_which: Any) -> _core.Profile:  # noqa: ARG002 - saved profiles
        """What has the rows that are selected by a column of times; all rows where it is None."""
        return self._events

    def _origins_of(self, addresses: Sequence[int], times_ns: Sequence[int]) -> "ArrowStream":
        """Allocations of the objects at addresses at times: of the events of the selected time, else of all."""
        known = _core.object_origins(self._events, addresses, times_ns)
        return _core.object_origins(self._fusion, addresses, times_ns) if known is None else known  # type: ignore[return-value]

    @property
    def _timeline_tables(self) -> _core.Profile:
        """What has the tables that the page's timeline is made of."""
        return self._fusion

    @property
    def _code(self) -> _core.Profile:
        """What has the tables of code and the machine code of its recordings."""
        return self._fusion

    @property
    def saved_path(self) -> str | None:
        """The file that it was opened from, where it is a saved profile."""
        return None

    @property
    def stated_events(self) -> "list[EventSums] | None":
        """The events of all samples with their sums, where they are known without reading them."""
        return None

    def omits_code_of(self, source_id: int) -> bool:  # noqa: ARG002 - only a saved profile may
        """Whether machine code that a recording has was not saved with it."""
        return False

    def require_stack_copies(self) -> None:
        """Raises `UsageError` where copies of stacks that were recorded were not saved."""

    def native_module(self, path: str, build_id: str | None) -> NativeCode:
        """Code of a program or library that was mapped."""
        return _core.NativeModule(self._fusion, path, build_id)

    def saved_sources(self) -> Mapping[str, tuple[str, str]]:
        """Source texts that were saved, with the file that each is from, by path; only a saved profile has some."""
        return {}

    def code_targets(
        self, process_id: int, at_ns: int, addresses: Sequence[int]
    ) -> list[tuple[int | None, str | None, int, str | None] | None]:
        """What addresses of a process referred to at a time."""
        return _core.code_targets(self._code, process_id, at_ns, addresses)
