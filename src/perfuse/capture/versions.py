"""Versions and settings that a runtime states about itself, without effects on anything else."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

TIMEOUT_S = 10


def output_of(command: tuple[str, ...]) -> str:
    """What a command prints; empty where it fails."""
    return output_or_none(command) or ""


@lru_cache(maxsize=64)
def output_or_none(command: tuple[str, ...]) -> str | None:
    """What a command prints; None where it does not run or fails."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=True,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout + done.stderr


def version_in(text: str) -> tuple[int, ...]:
    """The first version number in a text; empty where there is none."""
    found = re.search(r"\d+(\.\d+)+", text) or re.search(r"\d+", text)
    return tuple(map(int, found[0].split("."))) if found else ()


def version_of(executable: Path, arguments: Sequence[str] = ("--version",)) -> tuple[int, ...]:
    """The version that a program prints; empty where it does not run."""
    return version_in(output_of((str(executable), *arguments)))


def text_of(version: Sequence[int]) -> str:
    """A version as text."""
    return ".".join(map(str, version)) or "of unknown version"
