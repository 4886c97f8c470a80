"""Paths that a client names: files and directories in one directory, also by links."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from perfuse.errors import UnreadableInput, UsageError, nearest_hint

MAX_ENTRIES = 20_000
"""Entries of a directory, and of those in it, that are looked at."""


class Confinement:
    """The directory that a client may read."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory).resolve(strict=True)
        if not self.directory.is_dir():
            raise UnreadableInput(
                f"{directory} is not a directory", hint="name the directory that contains the recordings"
            )

    def path(self, text: str, *, is_listed: bool = False) -> str:
        """The path of a regular file or directory, relative to this directory and without links.

        Args:
            text: The path as the client has it: absolute, or relative to the directory.
            is_listed: Whether a directory is only listed, so that links in it do not matter.

        Raises:
            UsageError: It is not in the directory, or contains a link that leads out of it.
        """
        if not text or "\0" in text or text == "-":
            raise UsageError(f"{text!r} is not the path of a file")
        try:
            found = (self.directory / text).resolve()
        except (OSError, RuntimeError) as error:
            raise UsageError(f"{text}: not a path that leads to a file") from error
        if not found.is_relative_to(self.directory):
            raise UsageError(
                f"{text}: not in the directory of this server", hint="`open` without files lists its files"
            )
        try:
            mode = found.stat().st_mode
        except (OSError, ValueError) as error:
            raise UsageError(f"{text}: no such file", hint=self._near(found)) from error
        if stat.S_ISDIR(mode):
            if not is_listed:
                self._require_inner_links(found, text)
        elif not stat.S_ISREG(mode):
            raise UsageError(f"{text}: neither a regular file nor a directory")
        relative = str(found.relative_to(self.directory))
        return f"./{relative}" if relative.startswith("-") else relative

    def files(self, directory: str, limit: int) -> tuple[list[str], int]:
        """The regular files in a directory and those in it, hidden ones apart, and how many more there are."""
        found: list[str] = []
        for folder, folders, names in os.walk(self.directory / directory):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                path = Path(folder, name)
                if not name.startswith(".") and path.is_file() and path.resolve().is_relative_to(self.directory):
                    found.append(self.path(str(path)))
            if len(found) > MAX_ENTRIES:
                break
        return found[:limit], max(len(found) - limit, 0)

    def _require_inner_links(self, directory: Path, text: str) -> None:
        num_entries = 0
        for folder, folders, names in os.walk(directory):
            num_entries += len(folders) + len(names)
            if num_entries > MAX_ENTRIES:
                raise UsageError(f"{text}: more than {MAX_ENTRIES:,} files", hint="name the files of one recording")
            for name in (*folders, *names):
                path = Path(folder, name)
                if path.is_symlink() and not path.resolve().is_relative_to(self.directory):
                    place = path.relative_to(self.directory)
                    raise UsageError(
                        f"{text}: {place} is a link that leads out of the directory of this server",
                        hint="name the files of the recording instead of the directory",
                    )

    def _near(self, missing: Path) -> str:
        folder = missing.parent
        while not folder.is_dir() and folder != self.directory:
            folder = folder.parent
        names = [one.name for one in folder.iterdir()]
        shown = folder.relative_to(self.directory)
        return nearest_hint(
            missing.name, names, "`open` without files lists the files", shown=lambda name: str(shown / name)
        )
