"""The command line, in this process: tests of processes are in `tests/cli` and `tests/service`."""

import io
import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from typing import Any
from unittest import mock

from perfuse import cli

CLEAN_OR_FINDINGS = (0, 1)


def command_line(*words: object, codes: tuple[int, ...] = CLEAN_OR_FINDINGS) -> str:
    """What `perfuse WORDS` prints; its exit code is one of `codes`."""
    done = run(*words)
    assert done.returncode in codes, done.stderr
    return done.stdout


def output(*words: object, status: int = 0) -> str:
    """What `perfuse WORDS` prints; without findings, unless its exit code is another one."""
    return command_line(*words, codes=(status,))


def run(*words: object) -> "subprocess.CompletedProcess[str]":
    """Runs `perfuse WORDS`."""
    command = list(map(str, words))
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(2)]
        out, errors = (io.TextIOWrapper(file, encoding="utf-8", write_through=True) for file in files)
        # As of a process: the terminal's properties, and streams that have a descriptor.
        stack.enter_context(mock.patch.dict(os.environ, {"NO_COLOR": "1", "COLUMNS": "140"}))
        stack.enter_context(mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO())))
        with redirect_stdout(out), redirect_stderr(errors):
            code = cli.run(command)
        texts = []
        for stream in (out, errors):
            stream.flush()
            stream.seek(0)
            texts.append(stream.read())
    return subprocess.CompletedProcess(command, code, *texts)


def json_of(*words: object) -> Any:
    """The JSON that `perfuse WORDS --json` prints."""
    return json.loads(command_line(*words, "--json"))
