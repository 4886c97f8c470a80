"""A profile works in forked processes, which can also make profiles: servers that fork workers, `multiprocessing`."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import perfuse as pf

PATIENCE_S = 120
"""After which a child counts as hanging; it needs less than a second on a quiet machine."""

QUESTIONS = {
    "jitdump/produced/node20.perf.data": "SELECT count(*) FROM samples",
    "jitdump/produced/cpython315-dwarf.perf.data": "SELECT count(*) FROM stacks",
    "mono/v17/heapshot.mlpd": "SELECT sum(size_bytes) FROM heap_objects",
    "mono/v17/calls.mlpd": "SELECT count(*) FROM slices",
}
"""Queries whose tables are built in parallel."""


def answers(corpus: str) -> list[object]:
    """The answers of profiles that are made here."""
    return [pf.fuse(Path(corpus) / name).sql(query).fetchall()[0][0] for name, query in QUESTIONS.items()]


def in_fork(work: Callable[[], object]) -> str:
    """What the work returns in a forked process, as text; fails where that process hangs or dies."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.write(writing, repr(work()).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    status = ended(child)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read().decode()
    assert status == 0, f"the forked process ended with status {status:#x}: {answer}"
    return answer


def ended(child: int) -> int:
    """The status with which a process ended."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        waited, status = os.waitpid(child, os.WNOHANG)
        if waited == child:
            return status
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail("the forked process hangs")
        time.sleep(0.01)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_profile_works_in_a_forked_process_whether_it_was_used_before_or_not(jitdump_corpus: Path, name: str) -> None:
    path = jitdump_corpus.parent / name
    used, unused = pf.fuse(path), pf.fuse(path)
    expected = used.sql(QUESTIONS[name]).fetchall()
    for profile in (used, unused):
        assert in_fork(lambda profile=profile: profile.sql(QUESTIONS[name]).fetchall()) == repr(expected)
    assert in_fork(lambda: pf.fuse(path).sql(QUESTIONS[name]).fetchall()) == repr(expected)
    assert used.sql(QUESTIONS[name]).fetchall() == expected


def test_a_forked_process_forks_again(jitdump_corpus: Path) -> None:
    corpus = str(jitdump_corpus.parent)
    expected = repr(answers(corpus))
    assert in_fork(lambda: in_fork(lambda: answers(corpus))) == repr(expected)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing_with_every_start_method(jitdump_corpus: Path, method: str) -> None:
    corpus = str(jitdump_corpus.parent)
    expected = answers(corpus)
    with multiprocessing.get_context(method).Pool(2) as pool:
        results = pool.map_async(answers, [corpus] * 4)
        assert results.get(PATIENCE_S) == [expected] * 4


def test_a_server_that_forks_its_workers_ends_with_them(jitdump_corpus: Path) -> None:
    """Workers end as Python programs do, with all destructors, and not by `os._exit`."""
    server = f"""
import io, os, sys
import perfuse as pf
profile = pf.fuse({str(jitdump_corpus / "produced/node20.perf.data")!r})
question = {QUESTIONS["jitdump/produced/node20.perf.data"]!r}
expected = profile.sql(question).fetchall()
workers = []
for _ in range(4):
    worker = os.fork()
    if worker == 0:
        assert profile.sql(question).fetchall() == expected
        profile.export(io.BytesIO(), to='collapsed')
        sys.exit(0)
    workers.append(worker)
sys.exit(any(os.waitpid(worker, 0)[1] for worker in workers))
"""
    ended = subprocess.run(
        [sys.executable, "-c", server], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_stream_is_continued_in_a_fork(xray_corpus: Path) -> None:
    """Batches that threads of the parent were decoding are decoded again."""
    with pf.open(xray_corpus / "big" / "lua-161mb.xray.zst") as recording:
        stream = iter(recording.tables["call_events"].stream())
        first = next(stream).num_rows

        def rest() -> int:
            return sum(batch.num_rows for batch in stream)

        of_child = int(in_fork(rest))
        # The number of function records in the corpus' manifest.
        assert first + of_child == first + rest() == 20_128_646
