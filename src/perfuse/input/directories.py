"""Directories on this machine that options name."""

from collections.abc import Sequence
from os import PathLike

from perfuse.errors import UsageError, nearest_hint


def require_directories(
    directories: Sequence[str | PathLike[str]], contents: str, *, option: str, parameter: str
) -> None:
    """Raises `UsageError` for a directory that does not exist, or is a file.

    Args:
        directories: The directories.
        contents: What is searched in them.
        option: The option of the command line that names them.
        parameter: The parameter of the API.
    """
    if isinstance(directories, str):
        raise UsageError(f"{parameter} is a list of directories, not the text {directories!r}")
    if not directories:
        return
    from pathlib import Path

    for directory in map(Path, directories):
        if directory.is_dir():
            continue
        parent = directory.parent
        if directory.exists():
            raise UsageError(
                f"{directory} is not a directory: {contents} are searched in directories",
                hint=f"give the one that it is in: {option} {parent} ({parameter}=)",
            )
        near = [path.name for path in parent.iterdir() if path.is_dir()] if parent.is_dir() else []
        raise UsageError(
            f"there is no directory {directory}, in which {contents} were to be searched",
            hint=nearest_hint(directory.name, near, f"{parent} has no directory of a similar name"),
        )
