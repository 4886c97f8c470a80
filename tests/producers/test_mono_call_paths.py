"""Stacks of events in logs that have calls and no backtraces.

Compared with a program that has known numbers for each path (Paths.cs), and with mprof-report.
"""

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import perfuse as pf
from mono_programs import compiled, recorded
from needs import need
from truth.command import output

SOURCE = Path(__file__).parent / "mono" / "Paths.cs"
RUNTIME = re.compile(r"\(wrapper alloc\)|\(wrapper managed-to-native\) (object:__icall_wrapper_|string:)")
"""Calls of the runtime that compiled code makes by itself: where they are innermost, the caller creates the object."""

Path_ = tuple[str, ...]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, compiled."""
    return compiled(SOURCE, tmp_path_factory.mktemp("paths"), "-nowarn:169,414")


def record(program: Path, name: str, options: str) -> Path:
    return recorded(program, program.with_name(name), f"nodefaults,alloc,exception,gchandle,monitor,{options}")


@pytest.fixture(scope="module")
def log(program: Path) -> Path:
    """A log of calls."""
    return record(program, "calls.mlpd", "calls")


def perfuse(*args: Any) -> str:
    """What the command line prints."""
    return output(*args)


def path(*methods: str) -> Path_:
    return tuple(f"Paths:{method}" for method in methods)


ALLOCATED = {
    ("Small", path("Main ()", "ByTwo ()", "ByOne ()", "Make ()")): 100,
    ("Small", path("Main ()", "ByTwo ()", "Make ()")): 100,
    ("Small", path("Main ()", "ByOne ()", "Make ()")): 30,
    ("Deep", path("Main ()", *["Recurse (int)"] * 5)): 20,
    ("Known", path("Main ()", "Catch ()", "Through ()", "Throw ()")): 7,
    ("InFinally", path("Main ()", "Catch ()", "Through ()")): 7,
    ("InCatch", path("Main ()", "Catch ()")): 7,
    ("AfterCatch", path("Main ()", "Catch ()")): 7,
    ("OfWorker", path("RunMany ()", "Work (int)")): 500,
    ("OfWorker", path("RunMany ()", "RunFew ()", "Work (int)")): 11,
    ("OfWorker", path("RunFew ()", "Work (int)")): 11,
}
"""How many objects of which type the program creates on which path."""
TYPES = {name for name, _ in ALLOCATED}


def collapsed(log: Path, *options: str) -> dict[tuple[str, Path_], int]:
    """Objects of the program's types by type and path, as an exporter writes them."""
    found: Counter[tuple[str, Path_]] = Counter()
    text = perfuse("convert", log, "--to", "collapsed", "-O", "event=allocations", "-o", "-", *options)
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        *frames, type_name = stack.split(";")
        if type_name in TYPES:
            own = tuple(frame for frame in frames if frame.startswith("Paths:"))
            found[type_name, own] += int(count)
    return dict(found)


SITES = """
    WITH RECURSIVE up AS (
        SELECT stack_id AS leaf, stack_id, 0 AS step FROM stacks
        UNION ALL SELECT leaf, parent_stack_id, step + 1 FROM up JOIN stacks USING (stack_id)
        WHERE parent_stack_id IS NOT NULL
    ), paths AS (
        SELECT leaf AS stack_id, list(f.name::VARCHAR ORDER BY step DESC) AS path
        FROM up JOIN stacks USING (stack_id) JOIN frames USING (frame_id) JOIN functions f USING (function_id)
        WHERE f.name LIKE 'Paths:%' GROUP BY leaf
    )
"""


def rows(log: Path, query: str) -> list[tuple[Any, ...]]:
    return pf.fuse(log).sql(SITES + query).fetchall()


@pytest.mark.truth(
    recording="mono_calls",
    path=["convert:collapsed", "query"],
    source="a program that allocates known numbers of objects on known paths",
)
def test_allocations_have_the_calls_that_are_open(log: Path) -> None:
    assert collapsed(log) == ALLOCATED
    found = rows(
        log,
        "SELECT name::VARCHAR, path, count(*) FROM allocations JOIN types USING (type_id)"
        " JOIN paths USING (stack_id) GROUP BY ALL",
    )
    assert {(name, tuple(frames)): count for name, frames, count in found if name in TYPES} == ALLOCATED


def test_they_are_the_backtraces_of_the_same_program(program: Path, log: Path) -> None:
    backtraces = record(program, "backtraces.mlpd", "maxframes=32")
    assert collapsed(backtraces) == collapsed(log)


@pytest.mark.truth(
    recording="mono_calls",
    path=["report:allocations", "api:Profile.allocations"],
    source="a program that allocates known numbers of objects on known paths",
)
def test_the_report_has_the_sites_and_states_what_stacks_are(log: Path) -> None:
    sites = pf.fuse(log).allocations().by_site()
    alone = {
        (one.type_name, one.backtrace): one.count for one in sites if one.num_types == 1 and one.type_name in TYPES
    }
    for (type_name, frames), count in alone.items():
        assert ALLOCATED[type_name, frames] == count
    assert alone.keys() >= {key for key in ALLOCATED if key[0] in ("Small", "Deep", "OfWorker")}
    text = perfuse("report", log, "--section", "allocations", "--limit", "0")
    assert "; stacks are open calls" in text
    assert "ML052" in perfuse("check", log)


def test_a_recording_with_backtraces_states_nothing_of_calls(program: Path) -> None:
    backtraces = record(program, "stated.mlpd", "maxframes=32")
    assert "open calls" not in perfuse("report", backtraces, "--section", "allocations")
    assert "ML052" not in perfuse("check", backtraces)


@pytest.mark.truth(
    recording="mono_calls",
    path="query",
    source="a program with known numbers of exceptions, handles and waits on known paths",
)
def test_exceptions_handles_and_waits_have_them_too(log: Path) -> None:
    thrown = rows(
        log, "SELECT path, count(*) FROM exceptions JOIN paths USING (stack_id) WHERE kind = 'throw' GROUP BY ALL"
    )
    assert thrown == [(list(path("Main ()", "Catch ()", "Through ()", "Throw ()")), 7)]
    taken, freed = (
        rows(
            log,
            f"SELECT count(*) FROM gc_handles JOIN paths ON paths.stack_id = {column}"
            " WHERE list_contains(path, 'Paths:Pin (object)') AND path[2] = 'Paths:Handles (int)'",
        )
        for column in ("created_stack_id", "destroyed_stack_id")
    )
    assert taken == freed == [(9,)]
    waits = rows(
        log,
        "SELECT kind::VARCHAR, path, count(*) FROM lock_events JOIN paths USING (stack_id) GROUP BY ALL ORDER BY ALL",
    )
    assert waits == [("acquired", ["Paths:Wait ()"], 3), ("contention", ["Paths:Wait ()"], 3)]
    profile = pf.fuse(log)
    (site,) = profile.contention().by_site
    assert (site.backtrace, site.waits.count) == (("Paths:Wait ()",), 3)
    (thrown_site,) = profile.exceptions().by_site
    assert thrown_site.backtrace[-1] == "Paths:Throw ()"


def test_selections_have_the_stacks_of_what_they_select(log: Path) -> None:
    """A range begins inside of calls: their enters are before it. mprof-report --time leaves those out."""
    order = rows(
        log,
        "SELECT ts_ns, path FROM allocations JOIN types USING (type_id) JOIN paths USING (stack_id)"
        " WHERE name = 'Small' ORDER BY ts_ns",
    )
    # ByTwo allocates through ByOne, then itself.
    by_one, by_two, alone = (list(key[1]) for key in ALLOCATED if key[0] == "Small")
    assert [frames for _, frames in order] == [by_one, by_two] * 100 + [alone] * 30
    start = pf.fuse(log).span_ns[0]
    since, until = ((order[at][0] - start) / 1e9 for at in (51, 201))
    selected = collapsed(log, "--between", f"{since:.9f}..{until:.9f}")
    assert selected == {("Small", tuple(by_one)): 74, ("Small", tuple(by_two)): 75, ("Small", tuple(alone)): 1}

    ids = rows(
        log,
        "SELECT DISTINCT threads.native_id, threads.start_ns FROM allocations JOIN types USING (type_id)"
        " JOIN threads USING (thread_id) JOIN paths USING (stack_id)"
        " WHERE types.name = 'OfWorker' AND path[1] = 'Paths:RunMany ()'",
    )
    # Other threads had this id before, which allocate nothing of this type.
    ((worker, _),) = ids
    of_worker = {key: count for key, count in ALLOCATED.items() if "RunMany" in key[1][0]}
    assert collapsed(log, "--thread", f"{worker:#x}") == of_worker
    only = {key: count for key, count in ALLOCATED.items() if "Paths:ByTwo ()" in key[1]}
    assert collapsed(log, "--only", "Paths:ByTwo") == only
    callers = perfuse("report", log, "--callers", "Small", "--event", "allocations")
    assert re.search(r"\b130 +│? *├ Paths:ByOne \(\)", callers), callers


def test_calls_beyond_the_recorded_depth_are_not_on_stacks(program: Path) -> None:
    """The profiler leaves out calls deeper than `calldepth`: a stack ends with the last recorded one."""
    shallow = record(program, "shallow.mlpd", "calls,calldepth=3")
    found = collapsed(shallow)
    # The wrapper that calls Main is the first.
    assert max(len(frames) for _, frames in found) == 3
    assert found["Deep", path("Main ()", "Recurse (int)", "Recurse (int)")] == 20
    assert found["Known", path("Main ()", "Catch ()", "Through ()")] == 7
    assert sum(count for (name, _), count in found.items() if name == "Small") == 230


def peer_traces(log: Path) -> Iterator[tuple[Path_, int]]:
    """Stacks of allocations and bytes, as mprof-report states them, without calls of the runtime at the end."""
    need("mprof-report")
    command = ["mprof-report", "--traces", "--maxframes=1000", "--reports=alloc", log]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "unresolved method" not in text
    for trace in re.finditer(r"^\t(\d+) bytes from:\n((?:\t\t.+\n)+)", text, re.MULTILINE):
        frames = [line.strip() for line in trace[2].splitlines()]
        while frames and RUNTIME.match(frames[-1]):
            frames.pop()
        if frames:
            yield tuple(frames), int(trace[1])


def test_stacks_of_allocations_are_those_of_mprof_report(log: Path) -> None:
    """All of them: each stack and its bytes.

    mprof-report has no types for many, as names follow their first use. No call of this program is without its leave:
    from such a call on, stacks of mprof-report are wrong.
    """
    theirs: Counter[Path_] = Counter()
    for frames, size in peer_traces(log):
        theirs[frames] += size
    every = SITES.replace("WHERE f.name LIKE 'Paths:%' ", "")
    found = pf.fuse(log).sql(
        every + "SELECT path, sum(size_bytes)::BIGINT FROM allocations JOIN paths USING (stack_id) GROUP BY ALL"
    )
    ours = {tuple(frames): size for frames, size in found.fetchall()}
    assert len(ours) > 25
    assert ours == theirs
