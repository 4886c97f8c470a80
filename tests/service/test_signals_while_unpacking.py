"""Ctrl-C and SIGTERM end a command that unpacks a file, and nothing is left of what it unpacked."""

import gzip
import lzma
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

PATIENCE_S = 60
"""After which a command counts as hanging; it ends within 0.2 s on a quiet machine."""

LAUNCH = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "signal.signal(signal.SIGTERM, signal.SIG_DFL); from perfuse.cli import main; main()"
)
"""Runs a command with the signals of a shell, also where they were ignored by the parent of the tests."""

PART = bytes(16 << 20)
"""What a member of a packed file unpacks to."""
NUM_PARTS = 4000
"""Members of a packed file: 64 GB in all."""


def zstd_frame() -> bytes:
    """A frame of 16 MB of zeros as RFC 8878 describes it: blocks of one repeated byte."""
    block = struct.pack("<I", 128 << 10 << 3 | 1 << 1)[:3] + b"\0"
    last = struct.pack("<I", 128 << 10 << 3 | 1 << 1 | 1)[:3] + b"\0"
    # No size of the content, no checksum; a window of 128 KiB.
    return b"\x28\xb5\x2f\xfd\0" + bytes([7 << 3]) + block * 127 + last


PACKED: dict[str, Callable[[], bytes]] = {
    "gz": lambda: gzip.compress(PART, 1),
    "xz": lambda: lzma.compress(PART, preset=0),
    "zst": zstd_frame,
}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("kind", PACKED)
def test_unpacking_ends(tmp_path: Path, kind: str, number: int, code: int) -> None:
    packed = tmp_path / f"large.{kind}"
    packed.write_bytes(PACKED[kind]() * NUM_PARTS)
    space = tmp_path / "space"
    space.mkdir()
    command = [sys.executable, "-c", LAUNCH, "info", str(packed), "--max-unpacked", "100GB"]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(space)},
    ) as process:
        waits_until(lambda: unpacks(process.pid, space))
        process.send_signal(number)
        _, messages = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code, messages
    assert messages.startswith("perfuse: ")
    assert len(messages.splitlines()) == 1
    assert list(space.iterdir()) == []


def unpacks(process: int, space: Path) -> bool:
    """Whether a process has an open file in a directory, which has no name there."""
    try:
        files = [str(entry.readlink()) for entry in Path(f"/proc/{process}/fd").iterdir()]
    except OSError:
        return False
    return any(file.startswith(str(space)) for file in files)


def waits_until(holds: Callable[[], bool]) -> None:
    """Waits until a condition holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "the command did not start to unpack"
        time.sleep(0.005)
