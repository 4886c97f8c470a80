"""Signals that end a command: Ctrl-C, SIGTERM, and that of a terminal that is closed."""

import contextlib
import os
import signal
import sys
import threading
from types import FrameType
from typing import NoReturn

GRACE_S = 0.12
"""Time for a command to end by itself after a signal. A write to a full pipe, for example, may never end."""

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """A signal asked the process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number

    @property
    def text(self) -> str:
        """What happened, for people."""
        return "interrupted" if self.number == signal.SIGINT else f"stopped by {self}"

    @property
    def exit_code(self) -> int:
        """The code that a shell reports for a process that the signal ended: 130 for SIGINT, 143 for SIGTERM."""
        return 128 + self.number


def handle_signals() -> None:
    """Lets these signals end the command with its own exit code, without leaving temporary files.

    A signal that the process was started to ignore (`nohup`, jobs in the background) stays ignored.
    """
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _stop)


_received: list[int] = []
_reporting = threading.Lock()
"""Taken by the thread that reports the end: the one that runs the command, or the one that waits for it to end."""
_reported = threading.Event()
_REPORTING_S = 1.0
"""Time for the thread that reports to do so: on a busy machine the other one could end the process in between."""


def report_end(text: str) -> None:
    """Writes why the command ends, once. Standard output is not flushed first: that may never end."""
    if not _reporting.acquire(blocking=False):
        _reported.wait(_REPORTING_S)
        return
    try:
        with contextlib.suppress(OSError, ValueError):
            os.write(sys.stderr.fileno(), f"perfuse: {text}\n".encode())
    finally:
        _reported.set()


def received() -> Stopped | None:
    """The signal that asked this process to end. A library that was called meanwhile may have raised its own error."""
    return Stopped(_received[0]) if _received else None


def _stop(number: int, _frame: FrameType | None) -> NoReturn:
    _received.append(number)
    for ending in ENDING:
        # Another one while files are removed is of no use.
        signal.signal(ending, signal.SIG_IGN)
    threading.Thread(target=_end_process, args=(number,), daemon=True).start()
    raise Stopped(number)


def _end_process(number: int) -> None:
    """Ends the process where it does not end by itself."""
    threading.Event().wait(GRACE_S)
    report_end(Stopped(number).text)
    if "perfuse.output.temporary" in sys.modules:
        sys.modules["perfuse.output.temporary"].remove_all()
    os._exit(128 + number)
