"""Runs a plan: the program, perf beside it, and what watches for dumps while they exist."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perfuse.capture.child import HeldChild, exit_code_of, inherited_as_ignored, passing_signals
from perfuse.capture.plan import Plan
from perfuse.capture.program import NotRunnable
from perfuse.capture.watching import Watcher
from perfuse.errors import RecordingError

ATTACH_TIMEOUT_S = 60
POLL_S = 0.05
SIGTERM_CODE = 128 + signal.SIGTERM
REFUSED = (
    ("event syntax error", "`perf list` lists the events that --event takes"),
    ("unknown option", "`perf record -h` lists what --perf-option takes"),
    ("unknown switch", "`perf record -h` lists what --perf-option takes"),
)
"""What perf prints about its command line, and what to do."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended.

    Attributes:
        pid: The program's process; None where running processes were recorded.
        exit_code: Its exit code as a shell reports it; None where it is not the recorder's child.
        started_ns: Start, on the monotonic clock.
        ended_ns: End.
        started_at: Start, in seconds since 1970.
        error: Why the recording is not complete; None where it is.
        watcher: What was seen of the processes while they ran.
    """

    pid: int | None
    exit_code: int | None
    started_ns: int
    ended_ns: int
    started_at: float
    error: str | None
    watcher: Watcher


def run(plan: Plan) -> Outcome:
    """Carries out a plan. The directory exists, and so do the files that the plan has to be written first.

    Raises:
        RecordingError: The recorder did not start; the program was not run.
        NotRunnable: The program cannot be executed.
    """
    started_ns, started_at = time.monotonic_ns(), time.time()
    stopped = threading.Event()
    child: HeldChild | None = None
    ignored = inherited_as_ignored()

    def pass_on(number: int) -> None:
        if child is None:
            stopped.set()
        else:
            child.send(number)

    with passing_signals(pass_on, stopped if plan.program is None else None):
        child = _held(plan, ignored)
        try:
            perf = _started_perf(plan, child) if plan.recorder == "perf" else None
        except BaseException:
            ended = child.abandon() if child is not None else None
            if ended is not None:
                raise NotRunnable("the program was ended by a signal before it started", ended) from None
            raise
        watcher = Watcher([child.pid] if child else plan.request.pids)
        ended_by_us = False
        try:
            if child is not None:
                child.release()
            watcher.start()
            ended_by_us = _wait(plan, child, perf, stopped)
        except KeyboardInterrupt:
            # In a thread that is not the main one, or between two handlers: the program was interrupted as well.
            if child is not None:
                child.wait()
        finally:
            watcher.stop()
            error = _ended_perf(perf) if perf is not None else None
    exit_code = exit_code_of(child.wait()) if child is not None else None
    if ended_by_us and exit_code == SIGTERM_CODE:
        exit_code = 0  # it ended as it was asked to
    pid = child.pid if child else None
    return Outcome(pid, exit_code, started_ns, time.monotonic_ns(), started_at, error, watcher)


def _held(plan: Plan, ignored: frozenset[int]) -> HeldChild | None:
    if plan.program is None:
        return None
    return HeldChild(plan.command, plan.program.path, plan.environment, ignored)


@dataclass(slots=True)
class _RunningPerf:
    process: subprocess.Popen[bytes]
    log: Path
    control: tuple[int, ...]
    """Ends of its control pipes, which stay open: perf 6.1 fails when its control pipe is closed."""


def _started_perf(plan: Plan, child: HeldChild | None) -> _RunningPerf:
    """perf, once it samples."""
    commands, ours = os.pipe()
    answers, theirs = os.pipe()
    target = _target(plan, child)
    log = plan.runtime_directory / "perf.log"
    words = plan.perf_words([*target, "-D", "-1", f"--control=fd:{commands},{theirs}"])
    try:
        with log.open("wb") as output:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(commands, theirs),
                start_new_session=True,  # Ctrl-C is for the program
            )
        running = _RunningPerf(process, log, (ours, answers))
        os.write(ours, b"enable\n")
        _await_answer(answers, running)
    except BaseException:
        os.close(ours)
        os.close(answers)
        raise
    finally:
        os.close(commands)
        os.close(theirs)
    return running


def _target(plan: Plan, child: HeldChild | None) -> Sequence[str]:
    if plan.request.system_wide:
        return ["-a"]
    return ["-p", str(child.pid) if child else ",".join(map(str, plan.request.pids))]


def _await_answer(answers: int, perf: _RunningPerf) -> None:
    """Waits until perf has enabled its events."""
    deadline = time.monotonic() + ATTACH_TIMEOUT_S
    try:
        while time.monotonic() < deadline:
            if select.select([answers], [], [], POLL_S)[0] and os.read(answers, 64):
                return
            if perf.process.poll() is not None:
                break
    except BaseException:
        perf.process.kill()
        perf.process.wait()
        raise
    has_ended = perf.process.poll() is not None
    perf.process.kill()
    perf.process.wait()
    log = _log_text(perf.log)
    hint = None
    if has_ended:
        refused = next((advice for sign, advice in REFUSED if sign in log), None)
        hint = refused or "`perfuse doctor` shows what is denied"
    # The rest of a refusal is perf's own help.
    raise RecordingError(f"perf did not start: {log.partition(' Usage: perf record')[0]}", hint=hint)


def _wait(plan: Plan, child: HeldChild | None, perf: _RunningPerf | None, stopped: threading.Event) -> bool:
    """Waits for the end of what is recorded; returns whether it was ended because its time was over."""
    duration = plan.request.duration_s
    deadline = None if duration is None else time.monotonic() + duration
    if child is not None:
        return _wait_for_child(child, deadline, perf)
    assert perf is not None
    while perf.process.poll() is None and not stopped.is_set():
        if deadline is not None and time.monotonic() >= deadline:
            return True
        # Signals end the recording: `passing_signals` sets the event.
        stopped.wait(POLL_S if deadline is None else min(POLL_S, max(0.0, deadline - time.monotonic())))
    return False


def _wait_for_child(child: HeldChild, deadline: float | None, perf: _RunningPerf | None) -> bool:
    if deadline is None:
        child.wait()
        return False
    ended = threading.Event()

    def end() -> None:
        if not ended.wait(max(0.0, deadline - time.monotonic())):
            if perf is not None:
                _interrupt(perf)
            late.append(True)
            child.send(signal.SIGTERM)

    late: list[bool] = []
    thread = threading.Thread(target=end, daemon=True)
    thread.start()
    child.wait()
    ended.set()
    thread.join()
    return bool(late)


def _interrupt(perf: _RunningPerf) -> None:
    with contextlib.suppress(ProcessLookupError, BrokenPipeError):
        if perf.process.poll() is None:
            perf.process.send_signal(signal.SIGINT)
            # perf waits for its events without a limit; a signal that comes just before it does so does not wake it.
            os.write(perf.control[0], b"stop\n")


def _ended_perf(perf: _RunningPerf) -> str | None:
    """Ends perf, which then completes its file; returns why it is not complete."""
    _interrupt(perf)
    perf.process.wait()
    for descriptor in perf.control:
        os.close(descriptor)
    return None if perf.process.returncode in (0, -signal.SIGINT) else _failure(perf)


def _failure(perf: _RunningPerf) -> str:
    return f"perf ended with exit code {perf.process.returncode}: {_log_text(perf.log)}"


def _log_text(log: Path) -> str:
    """What perf printed, on one line."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    return " ".join(line.strip() for line in text.splitlines() if line.strip()) or "it printed nothing"
