"""Other programs that exports are compared with."""

import importlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, NoReturn

import pytest


def need(*commands: str) -> None:
    """Skips the test where a program is not installed; fails it under CI, which has to install it."""
    missing = [command for command in commands if shutil.which(command) is None]
    if missing:
        skip(f"not installed: {', '.join(missing)}")


def skip(why: str) -> NoReturn:
    """Skips the test; fails it under CI."""
    assert not os.environ.get("CI"), why
    pytest.skip(why)


def output_of(*command: str | Path, directory: Path | None = None, given: bytes | None = None) -> str:
    """The output of a program with `given` as standard input; it must succeed without a message."""
    done = subprocess.run(command, cwd=directory, input=given, capture_output=True, check=False)
    messages = done.stderr.decode(errors="replace")
    assert (done.returncode, messages) == (0, ""), f"{command[0]}: {messages}"
    return done.stdout.decode(errors="replace")


def need_module(name: str) -> Any:
    """Imports a third-party module; skips the test where it is not installed, and fails it in CI."""
    try:
        return importlib.import_module(name)
    except ImportError:
        skip(f"not installed: {name}")
