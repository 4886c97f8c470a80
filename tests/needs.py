"""What a test needs of the machine: without it the test is skipped, which CI does not allow (`conftest.py`)."""

import importlib
import shutil
from typing import Any

import pytest


def need(*commands: str) -> None:
    """Skips the test where a program is not installed."""
    missing = [command for command in commands if shutil.which(command) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


def program_at(command: str) -> str:
    """The path of a program; skips the test where it is not installed."""
    need(command)
    return str(shutil.which(command))


def need_module(name: str) -> Any:
    """Imports a third-party module; skips the test where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        pytest.skip(f"not installed: {name}")
