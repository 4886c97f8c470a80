"""Opening a saved profile."""

from collections.abc import Sequence

from perfuse import _core
from perfuse.archive.manifest import MANIFEST, Manifest, read_manifest
from perfuse.archive.saved_contents import SavedContents
from perfuse.errors import UsageError
from perfuse.profile import Profile
from perfuse.recording import Recording


def open_alone(recordings: Sequence[Recording], inputs: Sequence[object], *, resolves: bool) -> Profile:
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
            hint="give --symbols, --map, --tsc-hz and --no-debug-info to `perfuse pack`; "
            "`perfuse report --llvm-compat` needs the log itself",
        )
    return open_saved(saved[0], owned=not any(saved[0] is given for given in inputs))


def manifest_of(file: Recording) -> Manifest:
    """The manifest of a saved profile.

    Raises:
        UnreadableInput: It is missing, damaged, or of a later major version.
    """
    return read_manifest(file.path, _core.saved_member(file._core, MANIFEST))


def open_saved(file: Recording, *, owned: bool) -> Profile:
    """The profile that was saved in an open file.

    Args:
        file: The open file.
        owned: Whether closing the profile closes the file.

    Raises:
        UnreadableInput: The file is damaged, contradicts itself, or is of a later major version.
    """
    manifest = manifest_of(file)
    contents = SavedContents(file, manifest)
    return Profile(
        contents,
        joins=manifest.joins,
        found=manifest.diagnostics,
        title=manifest.title,
        owned=[*contents.recordings, *([file] if owned else [])],
    )
