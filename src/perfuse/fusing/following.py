"""Which files of this machine are opened because of what a recording states: `--follow`, and `--map`."""

import os
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Literal, get_args

from perfuse.errors import UsageError, nearest_hint, require_known

Follow = Literal["all", "named", "none"]
"""`all`: files at the paths that a recording states. `named`: those in directories that the caller names, and by build
id in this machine's directories for debug files. `none`: no file but the inputs."""

Maps = Mapping[int, str | PathLike[str]] | Sequence[str | PathLike[str]]
"""Files by object number: the program is object 0, its libraries follow in the order of their constructors. Or the
program and its libraries in any order, to number them in that order."""

FOLLOW: tuple[Follow, ...] = get_args(Follow)


def require_follow(follow: str, symbol_dirs: Sequence[str | PathLike[str]]) -> None:
    """Raises `UsageError` for an unknown policy, one that excludes directories that were given, and what is not one."""
    require_known(follow, FOLLOW, "policy")
    require_symbol_dirs(symbol_dirs)
    if follow == "none" and symbol_dirs:
        raise UsageError(
            "directories with binaries were given, and no file of them may be opened",
            hint="--follow named opens files in the directories of --symbols, and none at recorded paths",
        )


def require_symbol_dirs(symbol_dirs: Sequence[str | PathLike[str]]) -> None:
    """Raises `UsageError` for a directory with binaries that does not exist, or is a file."""
    if isinstance(symbol_dirs, str):
        raise UsageError(f"symbol_dirs is a list of directories, not the text {symbol_dirs!r}")
    for one in symbol_dirs:
        directory = os.fspath(one)
        if os.path.isdir(directory):
            continue
        parent = os.path.dirname(directory) or "."
        if os.path.exists(directory):
            raise UsageError(
                f"{directory} is not a directory: binaries and debug files are searched in directories",
                hint=f"give the one that it is in: --symbols {parent} (symbol_dirs=)",
            )
        near = [entry.name for entry in os.scandir(parent) if entry.is_dir()] if os.path.isdir(parent) else []
        raise UsageError(
            f"there is no directory {directory}, in which binaries and debug files were to be searched",
            hint=nearest_hint(os.path.basename(directory), near, f"{parent} has no directory of a similar name"),
        )
