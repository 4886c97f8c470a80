"""A disk that is full while a dataset is written: one error, whatever the threads of deltalake print."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perfuse.fleet.panics import panics_as_notes

PANIC = """
thread 'tokio-rt-worker' (3908) panicked at /home/runner/object_store-0.13.2/src/buffered.rs:369:41:
Already shut down
stack backtrace:
note: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.
"""


@pytest.mark.parametrize("num_kib", [60, 120, 200])
@pytest.mark.parametrize("workers", [(), ("--workers", "2")])
def test_a_full_disk_is_one_error(num_kib: int, workers: tuple[str, ...], jitdump_corpus: Path, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={num_kib}k", "none", str(small)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.xfail("no right to mount a file system")
    try:
        produced = [str(jitdump_corpus / "produced" / f"{name}.perf.data") for name in ("node20", "node24")]
        command = [sys.executable, "-m", "perfuse", "fleet", "add", *workers, str(small / "dataset"), *produced]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        subprocess.run(["umount", str(small)], check=True)
    assert done.returncode == 3
    error, hint = done.stderr.splitlines()
    assert error.startswith("perfuse: cannot write the dataset")
    assert "panicked" not in error
    assert hint == "   hint: what was committed is complete; the same command continues"


def test_panics_are_notes_and_other_texts_are_printed(capfd: pytest.CaptureFixture[str]) -> None:
    @panics_as_notes()
    def write() -> None:
        os.write(2, f"before\n{PANIC}after\n".encode())
        raise OSError("full")

    with pytest.raises(OSError, match="full") as caught:
        write()
    assert caught.value.__notes__ == [PANIC.strip()]
    assert capfd.readouterr().err == "before\nafter\n"
    with panics_as_notes(), panics_as_notes():
        os.write(2, f"{PANIC}warning: slow\n".encode())
    assert capfd.readouterr().err == "warning: slow\n"
    os.write(2, b"later\n")
    assert capfd.readouterr().err == "later\n"


def test_other_texts_are_printed_at_once(capfd: pytest.CaptureFixture[str]) -> None:
    with panics_as_notes():
        for text in ("half of ", f"a line\n{PANIC}", "thread ", "pools are small\n"):
            os.write(2, text.encode())
        printed, until = "", time.monotonic() + 60
        while not printed.endswith("small\n") and time.monotonic() < until:
            time.sleep(0.01)
            printed += capfd.readouterr().err
    assert printed == "half of a line\nthread pools are small\n"
