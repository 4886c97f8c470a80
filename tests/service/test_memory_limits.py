"""The limit of memory holds in the core, and over it there is one clear error."""

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import perfuse as pf
from perfuse.memory import limit_memory

MB = 10**6

on_linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")

LAUNCHER = """
import os, sys
child = os.fork()
if child == 0:
    os.execv(sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(child, 0)
print("\\n" + str(usage.ru_maxrss), file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""Runs a command and adds its peak memory in KiB to its messages. A small process: its own memory counts up to exec."""


def run(*words: str | Path, addresses: int | None = None) -> tuple[int, str, str, int]:
    """Exit code, output, messages and peak memory of a command, with its address space limited."""

    def limit() -> None:
        if addresses is not None:
            resource.setrlimit(resource.RLIMIT_AS, (addresses, addresses))

    command = [sys.executable, "-S", "-c", LAUNCHER, sys.executable, "-m", "perfuse", *map(str, words)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, preexec_fn=limit, env=os.environ
    )
    *messages, peak = done.stderr.rstrip().splitlines()
    return done.returncode, done.stdout, "\n".join(messages).strip(), int(peak) * 1024


@pytest.fixture(scope="module")
def many_stacks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300,000 different stacks: much more as tables and in Python than the 7 MB of the file."""
    path = tmp_path_factory.mktemp("memory") / "many.collapsed"
    with path.open("w") as out:
        for n in range(300_000):
            out.write(f"main;f{n % 997};g{n % 89};h{n} 1\n")
    return path


@on_linux
@pytest.mark.parametrize("verb", ["report", "flame"])
def test_over_the_limit_there_is_one_error(many_stacks: Path, verb: str, tmp_path: Path) -> None:
    output = ["-o", tmp_path / "flame.html"] if verb == "flame" else []
    code, out, messages, peak = run(verb, many_stacks, *output, "--memory", "120MB")
    assert (code, out) == (2, ""), messages
    assert messages.startswith("perfuse: not enough memory: ")
    assert "the limit is 120 MB" in messages
    assert "--memory 8GB" in messages
    assert peak < 300 * MB
    assert list(tmp_path.iterdir()) == []


@on_linux
def test_a_process_continues_after_the_error(many_stacks: Path) -> None:
    code = """
import sys
import perfuse as pf
try:
    pf.fuse(sys.argv[1], memory="90MB").tables["stacks"].to_arrow()
except pf.OutOfMemory as error:
    print(error.limit_bytes, error.used_bytes > error.limit_bytes)
print(pf.fuse(b"main;work 12\\n").sql("SELECT count(*) FROM samples", memory="2GB").fetchall())
print(pf.fuse(sys.argv[1], memory="3GB").tables["samples"].num_rows)
"""
    done = subprocess.run([sys.executable, "-c", code, many_stacks], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["90000000 True", "[(1,)]", "300000"], done.stderr


@pytest.mark.parametrize("wrong", ["much", "0", "-1GB", ""])
def test_a_limit_is_a_size(wrong: str) -> None:
    with pytest.raises(pf.UsageError, match=r"is not a (size|limit) of memory"):
        limit_memory(wrong)
    code, _, messages, _ = run("report", "x", "--memory", wrong)
    assert (code, "of memory" in messages) == (2, True)


@on_linux
@pytest.mark.parametrize("addresses", [600 * MB, 1100 * MB, 1200 * MB, 1300 * MB])
@pytest.mark.parametrize(
    "words", [["report"], ["query", "FROM samples JOIN stacks USING (stack_id)"], ["flame"]], ids=" ".join
)
def test_limited_address_space_is_never_an_abort(
    many_stacks: Path, words: list[str], addresses: int, tmp_path: Path
) -> None:
    """`ulimit -v`: the command does its work, or ends with an error."""
    verb, *more = words
    output = ["-o", tmp_path / "out.html"] if verb == "flame" else []
    code, _, messages, _ = run(verb, many_stacks, *more, *output, addresses=addresses)
    assert code in {0, 2, 3}, (code, messages)
    assert "Traceback" not in messages
    assert code == 0 or "memory" in messages, messages


ABORTING = """
import atexit, mmap, os, sys
from perfuse.cli import main

@atexit.register
def abort():
    blocks = []
    while os.environ["SPACE"] == "full":
        try:
            blocks.append(mmap.mmap(-1, 16 << 20))
        except OSError:
            break
    os.abort()

sys.argv = ["perfuse", "--version"]
main()
"""
"""A command that aborts at its end, with address space used up or not."""


@on_linux
@pytest.mark.parametrize("space", ["full", "free"])
def test_where_a_library_aborts_without_memory_there_is_an_error(space: str) -> None:
    """As glibc does where a thread gets no memory; what aborts for another reason ends by the signal."""
    limit = 2 << 30
    done = subprocess.run(
        [sys.executable, "-c", ABORTING],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SPACE": space},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    if space == "full":
        assert (done.returncode, "perfuse: not enough memory" in done.stderr) == (2, True), done.stderr
    else:
        assert done.returncode == -signal.SIGABRT, done.stderr


@on_linux
def test_a_sparse_log_of_gigabytes_takes_as_little_memory_as_its_records(xray_corpus: Path, tmp_path: Path) -> None:
    """What was never written is a finding for each gap; the same buffers after a gap are copies, not further calls."""
    original = xray_corpus / "fdr" / "threads4-v5.xray"
    sparse = tmp_path / "sparse.xray"
    with sparse.open("wb") as out:
        out.write(original.read_bytes())
        out.truncate(3 << 30)
        out.seek(0, os.SEEK_END)
        out.write(original.read_bytes()[32:])
        out.truncate(6 << 30)
    code, text, messages, peak = run("report", sparse, "--memory", "500MB")
    assert code == 1, messages
    assert "XR010" in text
    assert peak < 300 * MB
    count = "SELECT count(*) FROM call_events"
    assert pf.fuse(sparse).sql(count).fetchall() == pf.fuse(original).sql(count).fetchall()
