"""Which files of this machine are opened because of what a recording states: `--follow`, and `--map`."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Literal, get_args

from perfuse.errors import UsageError, require_known
from perfuse.input.directories import require_directories

Follow = Literal["all", "named", "none"]
"""`all`: files at the paths that a recording states. `named`: those in directories that the caller names, and by build
id in this machine's directories for debug files. `none`: no file but the inputs."""

Maps = Mapping[int, str | PathLike[str]] | Sequence[str | PathLike[str]]
"""Files by object number: the program is object 0, its libraries follow in the order of their constructors. Or the
program and its libraries in any order, to number them in that order."""

FOLLOW: tuple[Follow, ...] = get_args(Follow)


def require_follow(follow: str, symbol_dirs: Sequence[str | PathLike[str]]) -> None:
    """Raises `UsageError` for an unknown policy, one that excludes the directories, and for what is not a directory."""
    require_known(follow, FOLLOW, "policy")
    require_symbol_dirs(symbol_dirs)
    if follow == "none" and symbol_dirs:
        raise UsageError(
            "directories with binaries were given, and no file of them may be opened",
            hint="--follow named opens files in the directories of --symbols, and none at recorded paths",
        )


def require_symbol_dirs(symbol_dirs: Sequence[str | PathLike[str]]) -> None:
    """Raises `UsageError` for a directory with binaries that does not exist, or is a file."""
    require_directories(symbol_dirs, "binaries and debug files", option="--symbols", parameter="symbol_dirs")
