"""The recorded program as a child process: held until sampling has started, with what it would inherit from a shell."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from perfuse.capture.program import NotRunnable

NOT_FOUND, NOT_EXECUTABLE = 127, 126
_GO = b"g"
_SET_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that Python ignores from its start on, whatever it inherited."""
_RESTORES_SIGNALS = re.compile(r"python|pypy|node|bun|deno|uv$")
"""Parents that ignore SIGPIPE themselves and restore it for their children."""
_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
"""Sent by a terminal to the child as well: perfuse waits for what the child makes of them."""


class HeldChild:
    """A forked process that executes its command when it is released.

    perf can be attached to it before it runs. Signals that were ignored when perfuse started stay ignored in it, all
    others have their default action, as from a shell.
    """

    def __init__(
        self, command: Sequence[str], path: Path, environment: Mapping[str, str], ignored: frozenset[int]
    ) -> None:
        arguments = [os.fsencode(word) for word in command]
        variables = {os.fsencode(name): os.fsencode(value) for name, value in environment.items()}
        self._name = command[0]
        gate, self._gate = os.pipe()
        self._errors, errors = os.pipe()
        with warnings.catch_warnings():
            # Until it executes the program, the child uses nothing that another thread could have locked.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if self.pid == 0:
            _run(gate, self._gate, errors, (os.fsencode(path), arguments, variables), ignored)
        os.close(gate)
        os.close(errors)
        self.status: int | None = None

    def release(self) -> None:
        """Lets the child execute its command.

        Raises:
            NotRunnable: It cannot be executed; the child has ended.
        """
        with contextlib.suppress(BrokenPipeError):  # it was stopped by a signal before
            os.write(self._gate, _GO)
        os.close(self._gate)
        # Closed by exec, or written to where that fails.
        failed = os.read(self._errors, 16)
        os.close(self._errors)
        if failed:
            self.wait()
            number = int(failed)
            raise NotRunnable(
                f"{self._name}: {os.strerror(number)}", NOT_FOUND if number == errno.ENOENT else NOT_EXECUTABLE
            )

    def abandon(self) -> int | None:
        """Ends a child that was not released; returns the exit code of one that a signal has ended before."""
        os.close(self._gate)
        os.close(self._errors)
        ended, status = os.waitpid(self.pid, os.WNOHANG)
        if ended:
            self.status = status
            return exit_code_of(status)
        os.kill(self.pid, signal.SIGKILL)
        self.wait()
        return None

    def wait(self) -> int:
        """Waits for the end of the child, and returns its wait status."""
        if self.status is None:
            _, self.status = os.waitpid(self.pid, 0)
        return self.status

    def send(self, number: int) -> None:
        """Sends a signal to the child, if it has not ended."""
        if self.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


def exit_code_of(status: int) -> int:
    """A wait status as a shell reports it: 128 + N for signal N."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


@contextlib.contextmanager
def passing_signals(send: Callable[[int], None], interrupted: threading.Event | None) -> Iterator[None]:
    """While a program runs: SIGINT and SIGQUIT are left to the program, SIGTERM and the like are sent on to it.

    Without a program, SIGINT ends the recording: it sets `interrupted`. Signals that are ignored stay so, but SIGCHLD:
    where it is ignored, nobody can wait for a child. Outside of the main thread nothing is changed, because Python
    delivers no signals there.
    """

    def forward(number: int, _frame: FrameType | None) -> None:
        send(number)

    def leave(_number: int, _frame: FrameType | None) -> None:
        if interrupted is not None:
            interrupted.set()

    before = {}
    try:
        if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
            with contextlib.suppress(ValueError):
                before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number in (*_FORWARDED, *_TERMINAL):
            if signal.getsignal(number) is not signal.SIG_IGN:
                with contextlib.suppress(ValueError):  # not in the main thread
                    before[number] = signal.signal(number, forward if number in _FORWARDED else leave)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


def _run(
    gate: int,
    parents_end: int,
    errors: int,
    program: tuple[bytes, list[bytes], dict[bytes, bytes]],
    ignored: frozenset[int],
) -> NoReturn:
    """The child: waits, and executes the program."""
    number = 0
    try:
        for one in (*_FORWARDED, *_TERMINAL, *_SET_BY_PYTHON, signal.SIGCHLD):
            signal.signal(one, signal.SIG_IGN if one in ignored else signal.SIG_DFL)
        os.close(parents_end)
        if os.read(gate, 1) == _GO:
            path, arguments, variables = program
            try:
                os.execve(path, arguments, variables)
            except OSError as error:
                if error.errno != errno.ENOEXEC:
                    raise
                # A script without `#!`: a shell runs it itself.
                os.execve(b"/bin/sh", [b"sh", path, *arguments[1:]], variables)
    except OSError as error:
        number = error.errno or errno.EIO
    finally:
        if number:
            os.write(errors, str(number).encode())
        os._exit(NOT_EXECUTABLE)


def inherited_as_ignored() -> frozenset[int]:
    """Signals that were ignored when this process started.

    Python ignores two itself, and the kernel does not keep what they were. A parent that ignores one passes that on,
    unless it is a program that restores it for its children, as Python's `subprocess` does.
    """
    own = {one for one in signal.valid_signals() if one not in _SET_BY_PYTHON and _is_ignored(one)}
    parent = Path(f"/proc/{os.getppid()}")
    try:
        lines = (parent / "status").read_text(encoding="utf-8", errors="replace").splitlines()
        executable = (parent / "exe").readlink().name
    except OSError:
        return frozenset(own)
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    if _RESTORES_SIGNALS.match(executable):
        return frozenset(own)
    mask = int(fields.get("SigIgn", "0").strip() or "0", 16)
    return frozenset(own | {number for number in _SET_BY_PYTHON if mask >> (number - 1) & 1})


def _is_ignored(number: int) -> bool:
    return signal.getsignal(number) is signal.SIG_IGN
