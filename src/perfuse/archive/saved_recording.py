"""A recording of a saved profile: its facts are read, and its copy is unpacked only when something else is needed."""

from functools import cached_property
from typing import TYPE_CHECKING, Protocol, cast

from perfuse import _core
from perfuse.diagnostics import Diagnostic
from perfuse.recording import Recording
from perfuse.table import ClosedObject

if TYPE_CHECKING:
    from perfuse.archive.facts import RecordingFacts
    from perfuse.archive.manifest import Manifest
    from perfuse.clock import Clock
    from perfuse.summary import Summary

CoreRecording = _core.Recording


class Contents(Protocol):
    """The saved profile that has the recording."""

    manifest: "Manifest"

    def unpacked(self, number: int) -> _core.Recording:
        """A recording, unpacked."""
        ...

    def facts(self, number: int) -> "RecordingFacts | None":
        """What is known of a recording without its copy; None where the file does not state it."""
        ...


class SavedRecording(Recording):
    """A recording of a saved profile, unpacked on first use.

    Args:
        contents: The saved profile.
        number: Its place in it.
    """

    def __init__(self, contents: Contents, number: int) -> None:
        self._contents, self._number = contents, number
        self._closed: ClosedObject | None = None
        self.path = contents.manifest.inputs[number].path
        self._file_size = None

    @property
    def _core(self) -> CoreRecording:
        if self._closed is not None:
            return cast(CoreRecording, self._closed)
        return self._contents.unpacked(self._number)

    @_core.setter
    def _core(self, closed: CoreRecording) -> None:
        self._closed = cast(ClosedObject, closed)

    @property
    def _is_closed(self) -> bool:
        return self._closed is not None

    def _diagnostics(self, rows: list[tuple[str, str, int, int | None, str, str, int]]) -> list[Diagnostic]:
        # The copy is of what could be unpacked, so only the manifest states that the file was damaged.
        stated = self._contents.manifest.diagnostics
        cut = [one for one in stated if one.code == "IO001" and one.path == self.path]
        return [*super()._diagnostics(rows), *cut]

    @property
    def format(self) -> str:
        """Name of its format."""
        return self._contents.manifest.inputs[self._number].format

    @property
    def size_bytes(self) -> int:
        """Size in bytes, after decompression."""
        return self._contents.manifest.inputs[self._number].size_bytes

    @property
    def fills(self) -> tuple[str, ...]:
        """The common tables that files of its format fill."""
        return self.entry.tables

    def has(self, table: str) -> bool:
        """Whether a table has rows of it, as far as that is known without decoding the table."""
        if table not in self.fills and not self._is_closed:
            return False
        facts = None if self._is_closed else self._contents.facts(self._number)
        return super().has(table) if facts is None else table in facts.tables

    @cached_property
    def clock(self) -> "Clock":
        """The clock of its time stamps."""
        facts = None if self._is_closed else self._contents.facts(self._number)
        return super().clock if facts is None else facts.clock

    @property
    def machine(self) -> tuple[str, str] | None:
        """Host name and kernel release of the machine that samples were taken on; None where not recorded."""
        facts = None if self._is_closed else self._contents.facts(self._number)
        return super().machine if facts is None else facts.machine

    @cached_property
    def summary(self) -> "Summary":
        """Header facts and counts."""
        facts = None if self._is_closed else self._contents.facts(self._number)
        return super().summary if facts is None else facts.summary
