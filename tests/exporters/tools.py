"""Other programs that exports are compared with."""

import subprocess
from pathlib import Path


def output_of(*command: str | Path, directory: Path | None = None, given: bytes | None = None) -> str:
    """The output of a program with `given` as standard input; it must succeed without a message."""
    done = subprocess.run(command, cwd=directory, input=given, capture_output=True, check=False)
    messages = done.stderr.decode(errors="replace")
    assert (done.returncode, messages) == (0, ""), f"{command[0]}: {messages}"
    return done.stdout.decode(errors="replace")
