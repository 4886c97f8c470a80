"""The readelf of each version of binutils that is installed or in the folder `PERFUSE_BINUTILS`."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path


@cache
def readelf(version: str) -> str:
    """The readelf of a version: the installed one, or one of `PERFUSE_BINUTILS`; empty without one."""
    added = os.environ.get("PERFUSE_BINUTILS", "")
    for found in (shutil.which(f"readelf-{version}", path=added), shutil.which("readelf")):
        if found is None:
            continue
        printed = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
        if f" {version}" in printed.splitlines()[0]:
            return found
    return ""


def sframe_text(version: str, path: Path) -> tuple[str, str]:
    """What the readelf of a version prints of the SFrame section of a file, and its errors."""
    done = subprocess.run([readelf(version), "--sframe", path], capture_output=True, text=True, check=False)
    return without_padding(done.stdout), done.stderr


def without_padding(text: str) -> str:
    """A text without spaces at the ends of lines, and without empty lines around it."""
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
