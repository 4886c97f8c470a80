"""`--process` selects the samples that records of the file are of, in every verb and export."""

from __future__ import annotations

import json
import random
import shutil
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from command_line import Perfuse

import perf_crafting as crafting
import perfuse as pf
from perfuse.errors import ExportWarning, UsageError
from perfuse.exporters import TARGETS
from perfuse.viewer.routes import Routes
from perfuse.viewer.session import Session
from truth.mono_walk import header, walk

COUNT = "SELECT count(*) FROM samples"


@pytest.fixture(scope="module")
def files(jitdump_corpus: Path) -> tuple[str, str]:
    """A recording of six processes, and the dump of one of them."""
    produced = jitdump_corpus / "produced"
    return str(produced / "erlang27.perf.data"), str(produced / "erlang27.dump")


@pytest.fixture(scope="module")
def recorded(files: tuple[str, str]) -> Counter[tuple[int, int]]:
    """The number of samples of each pid and thread, by the records."""
    file = crafting.PerfFile.read(Path(files[0]))
    kind = file.attributes[0].sample_type
    split = (crafting.split_sample(one.body, kind) for one in file.records if one.type == crafting.SAMPLE)
    tasks = (fields[crafting.TID] for fields, *_ in split)
    return Counter((task & 0xFFFFFFFF, task >> 32) for task in tasks)


@pytest.fixture(scope="module")
def of_pid(recorded: Counter[tuple[int, int]]) -> Counter[int]:
    counts: Counter[int] = Counter()
    for (pid, _), number in recorded.items():
        counts[pid] += number
    return counts


@pytest.mark.truth(recording="perf_data", path=["query", "report", "api:Profile.process"], source="walk over records")
def test_samples_of_a_process_are_those_of_its_records(
    files: tuple[str, str], of_pid: Counter[int], perfuse: Perfuse, tmp_path: Path
) -> None:
    assert len(of_pid) == 6
    saved = str(tmp_path / "saved.perfuse")
    with pf.fuse(*files) as profile:
        profile.save(saved)
        names = dict(profile.sql("SELECT pid, name FROM processes").fetchall())
    for pid, expected in of_pid.items():
        for given in (files, (saved,)):
            done = perfuse("query", *given, COUNT, "--process", str(pid), "--format", "csv")
            assert (done.code, int(done.out.split()[1])) == (0, expected)
        collapsed = perfuse("convert", *files, "--process", str(pid), "--to", "collapsed", "-o", "-")
        assert sum(int(line.rsplit(" ", 1)[1]) for line in collapsed.out.splitlines()) == expected
    for name in set(names.values()):
        report: Any = json.loads(perfuse("report", *files, "--process", name, "--json").out)
        assert report["events"][0]["samples"] == sum(of_pid[pid] for pid in of_pid if names[pid] == name), name
        assert report["recorded"]["count"] == of_pid.total()
        assert report["selection"] == f"--process {name}"


def test_exports_of_a_process(files: tuple[str, str], of_pid: Counter[int], tmp_path: Path) -> None:
    """Also those that have starts and ends of processes, which are of no thread."""
    with pf.fuse(*files) as profile:
        ((key, pid),) = profile.sql("SELECT process_id, pid FROM processes WHERE name = 'beam.smp'").fetchall()
        part = profile.process(f"p{key}")
        for target in ("pprof", "otlp", "firefox", "speedscope", "perf-script"):
            part.export(tmp_path / target, to=target)
        text = (tmp_path / "perf-script").read_text(encoding="utf-8")
        assert sum("cpu-clock:" in line for line in text.splitlines()) == of_pid[pid]


def test_a_process_and_a_thread_are_selected_by_both(
    files: tuple[str, str], recorded: Counter[tuple[int, int]], perfuse: Perfuse
) -> None:
    (pid, tid), expected = recorded.most_common(1)[0]
    both = perfuse("query", *files, COUNT, "--process", str(pid), "--thread", str(tid), "--format", "csv")
    assert int(both.out.split()[1]) == expected
    other = next(one for one, _ in recorded if one != pid)
    with pf.fuse(*files) as profile:
        assert profile.thread(tid).process(pid).selection == profile.process(pid).thread(tid).selection
        with pytest.raises(UsageError, match=f"no thread {tid} of process {other}"):
            profile.process(other).thread(tid)
        with pytest.raises(UsageError, match="has no selected thread") as error:
            profile.thread(tid).process(other)
        assert error.value.hint == "leave out --thread"


@pytest.mark.parametrize(
    ("process", "hint"), [("beam", "did you mean beam.smp?"), ("99", "known: "), ("p77", "known: ")]
)
@pytest.mark.parametrize("verb", ["query", "report", "flame", "convert", "annotate"])
def test_a_process_that_does_not_exist_is_an_error(
    files: tuple[str, str], perfuse: Perfuse, verb: str, process: str, hint: str
) -> None:
    words = {"query": [COUNT], "flame": ["-o", "out.html"], "convert": ["-o", "out.folded"], "annotate": ["main"]}
    done = perfuse(verb, *files, *words.get(verb, []), "--process", process)
    assert (done.code, done.out) == (2, "")
    assert "no process" in done.err
    assert hint in done.err


def test_the_page_has_the_command_for_the_threads_of_a_process(files: tuple[str, str]) -> None:
    session = Session(lambda _progress: pf.fuse(*files), list(files))
    session.open_now()
    routes = Routes(session)
    rows = {row["process"]: row["thread"] for row in session.thread_rows()}
    for selected, words in (
        ("processes=0", "--process p0"),
        ("processes=3", "--thread "),
        (f"threads={rows[0]},{rows[3]}", None),
    ):
        answer = json.loads(routes.answer("GET", "/api/functions", selected, b"").body)
        assert (words in answer["command"]) if words else answer["command"] is None, selected


def test_a_page_of_a_process_has_its_threads_alone(files: tuple[str, str], of_pid: Counter[int]) -> None:
    pid = of_pid.most_common(1)[0][0]
    session = Session(lambda _progress: pf.fuse(*files).process(pid), list(files))
    session.open_now()
    routes = Routes(session)
    keys = [row["thread"] for row in session.thread_rows()]
    for selected in ("", f"threads={','.join(map(str, keys))}"):
        answer = json.loads(routes.answer("GET", "/api/functions", selected, b"").body)
        assert answer["samples"] == of_pid[pid]
    command = json.loads(routes.answer("GET", "/api/functions", "", b"").body)["command"]
    assert f"--process {pid}" in command


def test_a_function_of_other_processes_is_stated(files: tuple[str, str], perfuse: Perfuse) -> None:
    with pf.fuse(*files) as profile:
        query = """SELECT name FROM functions JOIN frames USING (function_id) WHERE function_id IN
            (SELECT function_id FROM code_objects) ORDER BY 1 LIMIT 1"""
        ((name,),) = profile.sql(query).fetchall()
    done = perfuse("report", *files, "--process", "dirname", "--callers", name)
    assert done.code == 2
    assert "no selected sample has a function on its stack that matches" in done.err


@pytest.mark.parametrize("target", [one.name for one in TARGETS if one.name != "perf-data"])
def test_the_only_process_is_the_whole(
    jitdump_corpus: Path, target: str, tmp_path: Path, choice: random.Random
) -> None:
    """Also of what belongs to no thread, such as counters."""
    log = jitdump_corpus.parent / choice.choice(("mono/v17/everything.mlpd", "xray/fdr/threads4-v5.xray"))
    with pf.fuse(log) as whole, warnings.catch_warnings():
        warnings.simplefilter("ignore", ExportWarning)
        ((pid,),) = whole.sql("SELECT pid FROM processes").fetchall()
        written = [_written(part, target, tmp_path) for part in (whole, whole.process(pid))]
    assert written[1] == written[0]


def test_reports_have_counters_snapshots_and_code_of_the_process_alone(mono_corpus: Path, perfuse: Perfuse) -> None:
    logs = [str(mono_corpus / "v17" / f"{name}.mlpd") for name in ("counters", "m612-heapshot")]
    sections = ("--section", "counters", "--section", "heap", "--section", "jit", "--json")
    both = json.loads(perfuse("report", *logs, "--section", "counters", "--json").out)["counters"]
    for log in map(Path, logs):
        pid, recorded = header(log)["pid"], walk(log)
        with pf.fuse(*logs) as profile:
            query = f"SELECT min(thread_id) FROM threads JOIN processes USING (process_id) WHERE pid = {pid}"
            ((thread,),) = profile.sql(query).fetchall()
        for selection in (("--process", str(pid)), ("--thread", f"t{thread}")):
            found = json.loads(perfuse("report", *logs, *selection, *sections).out)
            counted = {one["name"]: len(one["values"]) for one in found["counters"]}
            assert counted == {name: len(rows) for (_, name), rows in recorded.counters().items()}
            assert {one["pid"] for one in found["counters"]} == {pid}
            assert found["jit"]["num_helpers"] == len(recorded.helpers())
            assert len(found["heap"]["snapshots"] if "heap" in found else ()) == len(recorded.snapshots())
        assert sum(one["pid"] == pid for one in both) == len(recorded.counters())


def test_a_counter_of_two_processes_has_not_one_value(mono_corpus: Path, perfuse: Perfuse) -> None:
    logs = [str(mono_corpus / "v17" / f"{name}.mlpd") for name in ("counters", "m612-heapshot")]
    pids = [str(header(Path(log))["pid"]) for log in logs]
    assertion = ("--assert", "counters['User Time'].last > 0")
    done = perfuse("report", *logs, *assertion)
    assert done.code == 2
    assert "2 processes have counters" in done.err
    assert all(pid in done.err for pid in pids)
    assert perfuse("report", *logs, "--process", pids[0], *assertion).code == 0
    text = perfuse("report", *logs, "--section", "counters").out
    assert all(f"of process {pid}" in text for pid in pids)


def test_snapshots_of_another_process_are_stated(mono_corpus: Path, perfuse: Perfuse) -> None:
    logs = [str(mono_corpus / "v17" / f"{name}.mlpd") for name in ("heapshot", "m612-heapshot")]
    num = [len(walk(Path(log)).snapshots()) for log in logs]
    found = json.loads(perfuse("report", *logs, "--section", "heap", "--json").out)["heap"]
    assert sorted([len(found["snapshots"]), found["num_of_others"]]) == sorted(num)
    text = perfuse("report", *logs, "--section", "heap").out
    assert f"{found['num_of_others']} snapshots of other recordings" in text
    for log in logs:
        pid = str(header(Path(log))["pid"])
        of_one = json.loads(perfuse("report", *logs, "--process", pid, "--section", "heap", "--json").out)["heap"]
        assert (len(of_one["snapshots"]), of_one["num_of_others"]) == (len(walk(Path(log)).snapshots()), 0)


def _written(profile: pf.Profile, target: str, folder: Path) -> dict[str, bytes] | str:
    """The files of an export by name, or its error."""
    out = folder / "out"
    try:
        profile.export(out, to=target)
    except pf.PerfuseError as error:
        return str(error)
    files = out.rglob("*") if out.is_dir() else [out]
    found = {str(file.relative_to(folder)): file.read_bytes() for file in files}
    shutil.rmtree(out) if out.is_dir() else out.unlink()
    return found
