"""The commands of docs/guides/fleet.md, run in order, print what the page shows."""

import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guides" / "fleet.md"
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A shell in a directory with the recordings of the example; what it starts ends with it."""
    pytest.importorskip("distributed")
    for side in ("before", "after"):
        shutil.copytree(ROOT / "examples" / "slower" / side, tmp_path / side)
    started = subprocess.Popen(
        ["bash"],
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "120"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    yield started
    os.killpg(started.pid, signal.SIGKILL)
    started.wait()


def run(shell: subprocess.Popen[str], script: str) -> list[str]:
    """The lines that a script prints."""
    assert shell.stdin is not None
    assert shell.stdout is not None
    shell.stdin.write(f"{script}\necho; echo END OF BLOCK\n")
    shell.stdin.flush()
    lines = []
    for line in shell.stdout:
        if line == "END OF BLOCK\n":
            return [one.rstrip() for one in lines[:-1]]
        lines.append(line)
    raise AssertionError(f"the shell ended:\n{''.join(lines)}")


def test_the_guide(shell: subprocess.Popen[str]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    printed: list[str] = []
    number = 0
    for kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if kind == "sh":
            # What runs on has no part in what the page shows.
            script = re.sub(r" &$", " >/dev/null 2>&1 &", text.rstrip().replace("8786", port), flags=re.MULTILINE)
            printed = run(shell, script)
            number += 1
            continue
        rest = iter(printed)
        for line in text.splitlines():
            pattern = re.compile(".*".join(re.escape(part.rstrip()) for part in line.split("…")))
            if line.startswith("  …") and "more" in line:
                pattern = re.compile(re.escape(line))
            if line == "…":
                continue
            assert any(pattern.fullmatch(one) for one in rest), f"{line!r} is not in\n" + "\n".join(printed)
    assert number > 8
