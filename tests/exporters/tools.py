"""Other people's programs that exports are held against."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def need(*commands: str) -> None:
    """Skips the test where a program is not installed; fails it under CI, which has to install it."""
    missing = [command for command in commands if shutil.which(command) is None]
    if missing:
        assert not os.environ.get("CI"), f"not installed: {', '.join(missing)}"
        pytest.skip(f"not installed: {', '.join(missing)}")


def output_of(*command: str | Path, directory: Path | None = None, given: bytes | None = None) -> str:
    """What a program prints, `given` its standard input; it has to end well and complain of nothing."""
    done = subprocess.run(command, cwd=directory, input=given, capture_output=True, check=False)
    told = done.stderr.decode(errors="replace")
    assert (done.returncode, told) == (0, ""), f"{command[0]}: {told}"
    return done.stdout.decode(errors="replace")
