"""Ctrl-C and SIGTERM end a command at once, with 130 and 143, and leave no temporary file."""

import os
import signal
import struct
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import perfuse as pf

GB = 10**9
PATIENCE_S = 60
"""After which a command counts as hanging; it ends within 0.2 s on a quiet machine."""

LAUNCH = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "signal.signal(signal.SIGTERM, signal.SIG_DFL); signal.signal(signal.SIGHUP, signal.SIG_DFL);"
    "from perfuse.cli import main; main()"
)
"""Runs a command with the signals of a shell, also where they were ignored by the parent of the tests."""


def xray_header() -> bytes:
    return struct.pack("<HHIQ16x", 5, 1, 3, GB)


def mono_header() -> bytes:
    return struct.pack("<iBBBBIIQQII", 0x4D505A01, 3, 0, 17, 8, 0, 0, 0, 0, 1, 0).ljust(64, b"\0")


def perf_header(size: int) -> bytes:
    """A perf.data whose records are zeros."""
    attr = struct.pack("<IIQQQ", 1, 128, 0, 1, 1 << 2).ljust(128, b"\0") + struct.pack("<QQ", 0, 0)
    header = struct.pack("<8sQQQQQQQQ", b"PERFILE2", 104, 144, 104, 144, 248, size - 248, 0, 0).ljust(104, b"\0")
    return header + attr


def jitdump_header() -> bytes:
    return struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 77, 1, 0)


HEADERS: dict[str, Callable[[int], bytes]] = {
    "xray": lambda _size: xray_header(),
    "mono": lambda _size: mono_header(),
    "perf_data": perf_header,
    "jitdump": lambda _size: jitdump_header(),
    "collapsed": lambda _size: b"main;work 12\nmain;rest 3\nmain;work;deep 2\n",
}


@pytest.fixture(params=list(HEADERS))
def sparse(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file of 40 GB of a format, almost all of it zeros that take no space on the disk."""
    path = tmp_path / f"sparse.{request.param}"
    size = 40 * GB
    with path.open("wb") as out:
        out.write(HEADERS[request.param](size))
        out.truncate(size)
    return path


def endless(directory: Path) -> Path:
    """A log that takes much longer to read than a test lasts: its zeros are searched for the start of a buffer."""
    log = directory / "endless.mlpd"
    with log.open("wb") as out:
        out.write(mono_header())
        out.truncate(40 * GB)
    return log


def stopped(command: list[str], number: int, **how: object) -> tuple[int, str, float]:
    """Exit code and messages of a command that gets a signal while it reads its file, and the time until its end."""
    file = next(word for word in command if Path(word).is_file())
    with subprocess.Popen(
        [sys.executable, "-c", LAUNCH, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        **how,  # type: ignore[call-overload]
    ) as process:
        maps = Path(f"/proc/{process.pid}/maps")
        deadline = time.monotonic() + PATIENCE_S
        while process.poll() is None and file not in maps.read_text() and time.monotonic() < deadline:
            time.sleep(0.01)
        try:
            process.wait(0.3)
        except subprocess.TimeoutExpired:
            process.send_signal(number)
        sent = time.monotonic()
        _, messages = process.communicate(timeout=PATIENCE_S)
        return process.returncode, messages, time.monotonic() - sent


@pytest.mark.parametrize("verb", ["info", "check", "report", "records", "tables"])
def test_a_command_on_a_huge_file_ends(sparse: Path, verb: str) -> None:
    options = {"tables": ["records", "--limit", "0"], "records": ["--kind", "none"]}.get(verb, [])
    code, messages, _ = stopped([verb, str(sparse), *options], signal.SIGINT)
    if code in {0, 1, 2, 3}:
        return  # it was done before the signal
    assert code == 130, messages
    assert messages == "perfuse: interrupted\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_each_signal_has_its_exit_code_and_no_output_is_left(tmp_path: Path, number: int, code: int) -> None:
    log = endless(tmp_path)
    (tmp_path / "out").mkdir()
    command = ["convert", str(log), "-o", str(tmp_path / "out" / "trace.json"), "--to", "chrome"]
    ended, messages, _ = stopped(command, number, env={**os.environ, "TMPDIR": str(tmp_path / "out")})
    assert ended == code, messages
    assert list((tmp_path / "out").iterdir()) == []
    assert "Traceback" not in messages


def test_ignored_signals_stay_ignored(tmp_path: Path) -> None:
    """As with `nohup`, and for jobs that a shell starts in the background."""
    code = (
        "import signal, os; signal.signal(signal.SIGINT, signal.SIG_IGN);"
        "from perfuse.cli.signals import handle_signals; handle_signals();"
        "os.kill(os.getpid(), signal.SIGINT); print('continues')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "continues\n"), done.stderr


def in_process(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The result of a program that may be sent signals."""
    prelude = """
        import os, signal, sys, threading, time
        import perfuse as pf
        signal.signal(signal.SIGINT, signal.default_int_handler)
        def interrupt(after_s):
            send = lambda: (time.sleep(after_s), os.kill(os.getpid(), signal.SIGINT))
            threading.Thread(target=send, daemon=True).start()
    """
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(prelude) + textwrap.dedent(code), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        stdin=subprocess.DEVNULL,
    )


def test_a_call_of_the_api_raises_and_the_recording_can_be_used_again(tmp_path: Path) -> None:
    log = endless(tmp_path)
    code = """
        for _ in range(3):
            try:
                interrupt(0.3)
                pf.open(sys.argv[1]).check()
                print("ended")
            except KeyboardInterrupt:
                print("interrupted")
        with open(sys.argv[1], "r+b") as file:
            file.truncate(64)
        print(len(pf.open(sys.argv[1]).check()))
    """
    done = in_process(code, str(log))
    assert done.stdout.splitlines()[:3] == ["interrupted"] * 3, done
    assert (done.returncode, done.stderr) == (0, "")


def test_any_handler_may_end_a_call_and_other_threads_continue(tmp_path: Path) -> None:
    """An alarm as of a web server's worker: its exception arrives, and a call in another thread is completed."""
    log = endless(tmp_path)
    code = """
        small = pf.open(b"main;work 12\\nmain;rest 3\\n")
        counts = []
        going = True
        def count():
            while going:
                counts.append(small.profile().sql("SELECT sum(weight)::INT FROM samples").fetchall()[0][0])
        thread = threading.Thread(target=count)
        thread.start()
        def alarm(number, frame):
            raise TimeoutError("too slow")
        signal.signal(signal.SIGALRM, alarm)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            pf.open(sys.argv[1]).check()
        except TimeoutError as error:
            print(error)
        before = len(counts)
        while len(counts) < before + 3:
            time.sleep(0.01)
        going = False
        thread.join()
        print(set(counts))
    """
    done = in_process(code, str(log))
    assert (done.returncode, done.stdout) == (0, "too slow\n{15}\n"), done.stderr


def test_sql_is_interrupted_while_tables_are_built(tmp_path: Path) -> None:
    log = endless(tmp_path)
    code = """
        try:
            interrupt(0.8)
            print(pf.open(sys.argv[1]).profile().sql("SELECT count(*) FROM slices").fetchall())
        except KeyboardInterrupt:
            print("interrupted")
        print(pf.open(b"main;work 12\\n").profile().sql("SELECT count(*) FROM samples").fetchall())
    """
    done = in_process(code, str(log))
    assert done.stdout.splitlines() == ["interrupted", "[(1,)]"], done


def test_a_write_to_a_full_pipe_ends(tmp_path: Path) -> None:
    """Nobody reads the output, so that the write never returns."""
    stacks = tmp_path / "many.collapsed"
    stacks.write_text("".join(f"main;f{n} 1\n" for n in range(200_000)))
    reading, writing = os.pipe()
    try:
        with subprocess.Popen(
            [sys.executable, "-c", LAUNCH, "records", str(stacks)],
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.PIPE,
        ) as process:
            os.read(reading, 1)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 130
    finally:
        os.close(reading)
        os.close(writing)


def test_progress_may_raise() -> None:
    """An exception of a progress callback ends the call."""

    def progress(_step: str, _share: float) -> None:
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        pf.fuse(b"main;work 12\nmain;rest 3\n", progress=progress)
