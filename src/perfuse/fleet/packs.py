"""Saved profiles of recordings beside the tables of a dataset: what a number comes from opens when its files are gone.

A saved profile is written before the row of `recordings` that names it, under a name of its own for each attempt.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from perfuse.errors import UnreadableInput
from perfuse.output.temporary import temporary_directory

if TYPE_CHECKING:
    from perfuse.archive.manifest import Input
    from perfuse.fleet.store import Store
    from perfuse.profile import Profile

FOLDER = "packs"
"""Folder of a dataset with its saved profiles."""
_SUFFIX = ".perfuse"


class NotKept(Exception):  # noqa: N818 - it ends a batch as a dataset that cannot be written
    """A saved profile could not be written into the dataset."""


def pack_name(recording: str, attempt: str) -> str:
    """The path of a saved profile below the dataset."""
    return f"{FOLDER}/{recording[:2]}/{recording}.{attempt}{_SUFFIX}"


def keep_pack(store: Store, profile: Profile, recording: str, attempt: str) -> str:
    """Saves a profile in a dataset. Returns its path below it.

    Raises:
        NotKept: It cannot be written there.
    """
    from perfuse.output.file import OutputError

    name = pack_name(recording, attempt)
    try:
        if store.is_remote:
            from perfuse.fleet.remote import upload

            with temporary_directory() as directory:
                local = directory / f"profile{_SUFFIX}"
                _write(profile, local)
                upload(local, f"{store.uri}/{name}", store.options)
        else:
            target = store.folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            _write(profile, target)
    except (OSError, OutputError) as error:
        raise NotKept(str(error)) from error
    return name


def _write(profile: Profile, target: Path) -> None:
    if profile.saved_path is None:
        profile.save(target)
        return
    # It is a saved profile already: the same file, whole or absent.
    from perfuse.output.file import output_file

    with Path(profile.saved_path).open("rb") as file, output_file(target) as out:
        shutil.copyfileobj(file, out)


def saved_files(path: str) -> tuple[Input, ...]:
    """The files whose profile was saved in a file; none where it is not a saved profile."""
    from perfuse import recording
    from perfuse.archive.opening import manifest_of
    from perfuse.errors import PerfuseError
    from perfuse.fusing.discovery import certain_roles

    if "saved_profile" in certain_roles(Path(path)):
        with suppress(PerfuseError), recording.open(path) as file:
            return manifest_of(file).inputs
    return ()


def pack_path(store: Store, name: str, directory: Path) -> Path:
    """A saved profile as a file of this machine; one in an object store is copied into `directory`.

    Raises:
        UnreadableInput: It is not there.
    """
    if not store.is_remote:
        path = store.folder / name
        if not path.is_file():
            raise UnreadableInput(f"{path} is missing", path=str(path))
        return path
    from perfuse.fleet.remote import download

    target = directory / name.rpartition("/")[2]
    download(f"{store.uri}/{name}", target, store.options)
    return target


def delete_packs(store: Store, keep: set[str], limit: datetime) -> int:
    """Deletes saved profiles but those to keep, and but those that were begun after a time. Returns their number."""
    names = (f"{FOLDER}/{name}" for name in store.names_below(FOLDER))
    found = [name for name in names if name not in keep and _began_before(name, limit)]
    if store.is_remote:
        from perfuse.fleet.remote import delete

        delete([f"{store.uri}/{name}" for name in found], store.options)
    else:
        for name in found:
            (store.folder / name).unlink(missing_ok=True)
            with suppress(OSError):
                (store.folder / name).parent.rmdir()
    return len(found)


def _began_before(name: str, limit: datetime) -> bool:
    """Whether the attempt in a name began before a time; false for files that no command wrote."""
    attempt = name.removesuffix(_SUFFIX).rpartition(".")[2]
    try:
        began = datetime.strptime(attempt.partition("-")[0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        return False
    return began <= limit
