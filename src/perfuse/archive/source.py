"""What saving requires of a profile; `perfuse.Profile` has all of it."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from perfuse import _core
from perfuse.archive.contents import NativeCode
from perfuse.diagnostics import Diagnostic
from perfuse.filters.selection import Selection
from perfuse.joins import Join, Unwinding
from perfuse.recording import Recording


class WholeProfile(Protocol):
    """A profile that can be saved."""

    selection: Selection
    stack_filter: Any
    title: str
    recordings: tuple[Recording, ...]
    joins: tuple[Join, ...]

    @property
    def _fusion(self) -> _core.Profile:
        """All recordings, joined."""
        ...

    @property
    def saved_path(self) -> str | None:
        """The file that it was opened from, where it is a saved profile."""
        ...

    @property
    def tables(self) -> Mapping[str, Any]:
        """The common tables by name, each an Arrow stream."""
        ...

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Findings of reading and joining the recordings."""
        ...

    @property
    def unwinding(self) -> Unwinding | None:
        """How copies of stacks were unwound; None where there were none."""
        ...

    @property
    def span_ns(self) -> tuple[int, int] | None:
        """Time of the first and the last sample, event or call; None where nothing has a time."""
        ...

    @property
    def has_samples(self) -> bool:
        """Whether a recording has samples, other than sums of its calls."""
        ...

    def has(self, table: str) -> bool:
        """Whether a recording has rows for a table, as far as that is known without building it."""
        ...

    def sql(self, query: str, /) -> Any:
        """Runs SQL over the common tables."""
        ...

    def native_module(self, path: str, build_id: str | None, /) -> NativeCode:
        """Code of a program or library that was mapped."""
        ...

    def saved_sources(self) -> Mapping[str, tuple[str, str]]:
        """Source texts that were saved, with the file that each is from, by path."""
        ...

    def code_targets(
        self, process_id: int, at_ns: int, addresses: Sequence[int], /
    ) -> list[tuple[int | None, str | None, int, str | None] | None]:
        """What addresses of a process referred to at a time."""
        ...
