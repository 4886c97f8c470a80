"""A profile, a recording and a table are used from many threads at a time, with the answers that one alone gets."""

import io
import json
import random
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import perfuse as pf
from perfuse.reports.registry import choose_kind

NUM_THREADS = 16
NUM_ROUNDS = 2
"""The first one makes the tables, the second one finds them made."""

FILES = [
    "jitdump/produced/node20.perf.data",
    "mono/v17/heapshot.mlpd",
    "mono/v17/calls-depth5.mlpd",
]


@pytest.fixture(scope="module")
def corpus(jitdump_corpus: Path) -> Path:
    return jitdump_corpus.parent


def sums(profile: pf.Profile) -> Any:
    return profile.sql("SELECT count(*), sum(weight)::BIGINT, count(DISTINCT stack_id) FROM samples").fetchall()


def parameters(profile: pf.Profile) -> Any:
    return profile.sql("SELECT count(*) FROM functions WHERE function_id < $most", {"most": 7}).fetchall()


def frames(profile: pf.Profile) -> Any:
    mine = profile.tables["threads"].to_arrow()
    return profile.sql("SELECT count(*) FROM mine JOIN threads USING (thread_id)", frames={"mine": mine}).fetchall()


def first_records(profile: pf.Profile) -> Any:
    rows = profile.recordings[0].records(indexes=(0, 40))
    return [(record.name, record.offset, record.size) for record in rows]


def collapsed(profile: pf.Profile) -> Any:
    out = io.BytesIO()
    profile.export(out, to="collapsed")
    return out.getvalue()


QUESTIONS: dict[str, Callable[[pf.Profile], Any]] = {
    "sums": sums,
    "parameters": parameters,
    "frames": frames,
    "records": first_records,
    "check": lambda profile: [(d.code, d.offset) for d in profile.recordings[0].check()],
    "tables": lambda profile: {name: profile.tables[name].num_rows for name in ("functions", "threads", "samples")},
    "collapsed": collapsed,
    "summary": lambda profile: dict(profile.recordings[0].summary.records),
    "diagnostics": lambda profile: [(d.code, d.count) for d in profile.diagnostics],
}


def answer(question: Callable[[pf.Profile], Any], profile: pf.Profile) -> Any:
    try:
        return question(profile)
    except pf.PerfuseError as error:
        return str(error)


@pytest.mark.parametrize("name", FILES)
def test_sixteen_threads_ask_one_profile(corpus: Path, name: str) -> None:
    alone = {key: answer(question, pf.fuse(corpus / name)) for key, question in QUESTIONS.items()}
    shared = pf.fuse(corpus / name)
    barrier = threading.Barrier(NUM_THREADS)

    def work(seed: int) -> None:
        order = list(QUESTIONS)
        random.Random(seed).shuffle(order)
        barrier.wait()
        for _ in range(NUM_ROUNDS):
            for key in order:
                assert answer(QUESTIONS[key], shared) == alone[key], key

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(NUM_THREADS) as threads:
            for done in [threads.submit(work, seed) for seed in range(NUM_THREADS)]:
                done.result()
    finally:
        sys.setswitchinterval(interval)


def test_threads_that_ask_while_another_closes(corpus: Path) -> None:
    """A thread gets its whole answer, or the error that the profile is closed."""
    path = corpus / FILES[0]
    expected = sums(pf.fuse(path))
    for _ in range(5):
        profile = pf.fuse(path)
        barrier = threading.Barrier(NUM_THREADS)

        def ask(profile: pf.Profile, barrier: threading.Barrier) -> Any:
            barrier.wait()
            try:
                return sums(profile)
            except pf.UsageError as error:
                return str(error)

        with ThreadPoolExecutor(NUM_THREADS) as threads:
            answers = [threads.submit(ask, profile, barrier) for _ in range(NUM_THREADS - 1)]
            barrier.wait()
            profile.close()
            found = [one.result() for one in answers]
            assert all(one == expected or "is closed" in str(one) for one in found)


def report(profile: pf.Profile) -> str:
    return json.dumps(choose_kind(profile, []).build(profile, {"--limit": 10}).as_json())


def test_reports_in_threads(corpus: Path) -> None:
    alone = [report(pf.fuse(corpus / name)) for name in FILES[1:]]
    shared = [pf.fuse(corpus / name) for name in FILES[1:]]

    def work(number: int) -> str:
        return report(shared[number % 2])

    with ThreadPoolExecutor(NUM_THREADS) as threads:
        assert list(threads.map(work, range(NUM_THREADS))) == alone * (NUM_THREADS // 2)
