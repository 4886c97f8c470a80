"""Opening a saved profile: its recordings from their copies, and everything that was resolved when it was saved."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from perfuse import _core
from perfuse.archive.manifest import MANIFEST, Manifest, read_manifest, unreadable_manifest
from perfuse.diagnostics import Diagnostic
from perfuse.errors import UsageError
from perfuse.joins import Unwinding
from perfuse.profile import Profile
from perfuse.recording import Recording
from perfuse.table import Tables

if TYPE_CHECKING:
    from perfuse.archive.contents import NativeCode
    from perfuse.archive.resolved_code import ResolvedCode
    from perfuse.exporters.code_images import CodeImages


class SavedProfile(Profile):
    """A profile that was saved: nothing is looked up on this machine.

    Attributes:
        manifest: What its file states.
        file: The open file.
    """

    def __init__(self, *args: Any, manifest: Manifest, file: Recording, **options: Any) -> None:
        super().__init__(*args, **options)
        self.manifest = manifest
        self.file = file

    @cached_property
    def tables(self) -> Tables:
        """All common tables; those that need machine code which was not saved raise `UsageError`."""
        tables = super().tables
        if any(one.code is not None for one in self.manifest.inputs):
            tables.refuse("instructions", self._require_all_code)
            tables.refuse("code_objects", self._require_all_code, whole_only=True)
        return tables

    @property
    def images(self) -> "CodeImages":
        """A writer of the JIT code as ELF files, and of a perf.data that maps them."""
        self._require_all_code()
        return super().images

    def _require_all_code(self) -> None:
        if any(one.code is not None for one in self.manifest.inputs):
            raise UsageError(
                f"{self.file.path} does not contain all machine code",
                path=self.file.path,
                hint="`perfuse pack --code all` saves it",
            )

    @property
    def saved_path(self) -> str | None:
        """The file that it was opened from."""
        return self.file.path

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Findings of reading and joining the recordings, when the profile was saved."""
        return self.manifest.diagnostics

    @cached_property
    def unwinding(self) -> Unwinding | None:
        """How copies of stacks were unwound; None where there were none."""
        return self.manifest.unwinding

    def native_module(self, path: str, build_id: str | None) -> "NativeCode":
        """Code of a program or library that was mapped, as it was when the profile was saved."""
        return self._resolved.module(path, build_id)

    def code_targets(
        self, process_id: int, at_ns: int, addresses: Sequence[int]
    ) -> list[tuple[int | None, str | None, int, str | None] | None]:
        """What addresses of a process referred to at a time."""
        of_code = super().code_targets(process_id, at_ns, addresses)
        return self._resolved.targets(process_id, at_ns, addresses, of_code)

    def saved_sources(self) -> Mapping[str, tuple[str, str]]:
        """Source texts that were saved, with the file that each is from, by path."""
        return self._resolved.sources

    @cached_property
    def _resolved(self) -> "ResolvedCode":
        from perfuse.archive.resolved_code import BYTES, FACTS, ResolvedCode

        present = {name for name, _ in _core.saved_members(self.file._core)}
        members = {name: _core.saved_member(self.file._core, name) for name in (FACTS, BYTES) if name in present}
        return ResolvedCode(self.file.path, members)

    @property
    def _options(self) -> dict[str, Any]:
        return super()._options | {"manifest": self.manifest, "file": self.file}


def open_alone(recordings: Sequence[Recording], inputs: Sequence[object], *, resolves: bool) -> "SavedProfile":
    """The profile of the only recording, which is a saved profile.

    Args:
        recordings: All recordings that were given.
        inputs: What the caller gave, which it closes itself.
        resolves: Whether options were given that are about how recordings are read.

    Raises:
        UsageError: Other recordings, or such options, were given.
    """
    saved = [one for one in recordings if one.role == "saved_profile"]
    if len(recordings) > 1:
        raise UsageError(
            f"{saved[0].path} is a saved profile, and nothing is joined with it",
            path=saved[0].path,
            hint="`perfuse diff` compares two; `perfuse pack` takes all recordings at once",
        )
    if resolves:
        raise UsageError(
            f"{saved[0].path} is a saved profile: names, lines and clocks were resolved when it was saved",
            path=saved[0].path,
            hint="give --symbols, --map, --tsc-hz and --no-debug-info to `perfuse pack`",
        )
    return open_saved(saved[0], owned=not any(saved[0] is given for given in inputs))


def manifest_of(file: Recording) -> Manifest:
    """The manifest of a saved profile.

    Raises:
        UnreadableInput: It is missing, damaged, or of a later major version.
    """
    return read_manifest(file.path, _core.saved_member(file._core, MANIFEST))


def open_saved(file: Recording, *, owned: bool) -> SavedProfile:
    """The profile that was saved in an open file.

    Args:
        file: The open file.
        owned: Whether closing the profile closes the file.

    Raises:
        UnreadableInput: The file is damaged, contradicts itself, or is of a later major version.
    """
    manifest = manifest_of(file)
    recordings, placed = [], []
    try:
        for one in manifest.inputs:
            core = _core.saved_recording(file._core, one.member, one.path, one.size_bytes, one.code)
            recordings.append(Recording(core, one.path))
            placed.append(_core.Placed(core, one.clock, one.pid))
        joined: Any = None if manifest.joined_rows is None else list(manifest.joined_rows)
        fusion = _core.saved_profile(file._core, placed, (joined, list(manifest.named_rows)))
    except (ValueError, TypeError, OverflowError) as error:
        raise unreadable_manifest(file.path, error) from error
    return SavedProfile(
        recordings,
        fusion,
        joins=manifest.joins,
        found=manifest.diagnostics,
        title=manifest.title,
        owned=[*recordings, *([file] if owned else [])],
        manifest=manifest,
        file=file,
    )
