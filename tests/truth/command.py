"""The command line, as another process."""

import json
import os
import subprocess
import sys
from typing import Any

CLEAN_OR_FINDINGS = (0, 1)


def command_line(*words: object, codes: tuple[int, ...] = CLEAN_OR_FINDINGS) -> str:
    """What `perfuse WORDS` prints; its exit code is one of `codes`."""
    done = run(*words)
    assert done.returncode in codes, done.stderr
    return done.stdout


def run(*words: object) -> "subprocess.CompletedProcess[str]":
    """Runs `perfuse WORDS`."""
    command = [sys.executable, "-m", "perfuse", *map(str, words)]
    environment = os.environ | {"NO_COLOR": "1", "COLUMNS": "140"}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=environment)


def json_of(*words: object) -> Any:
    """The JSON that `perfuse WORDS --json` prints."""
    return json.loads(command_line(*words, "--json"))
