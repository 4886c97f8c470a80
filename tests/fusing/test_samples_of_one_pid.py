"""Recordings of processes with one pid, as of two containers: each is recorded in a pid namespace of its own.

Both run one program, which the kernel maps at another address each time. What perf reports of each recording alone is
what is expected of both together.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import perfuse as pf
from needs import need

SOURCE = """
#include <time.h>
volatile unsigned long sum;
__attribute__((noinline)) void first(long n) { for (long i = 0; i < n; i++) sum += i; }
__attribute__((noinline)) void second(long n) { for (long i = 0; i < n; i++) sum += i ^ 3; }
int main(int argc, char **argv) {
    while (clock() < 2 * CLOCKS_PER_SEC)
        if (argc > 1) second(10000000); else first(10000000);
    return 0;
}
"""
BOTH = {"first", "second"}


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two recordings of process 2, taken at the same time: perf is the first process of each namespace."""
    directory = tmp_path_factory.mktemp("containers")
    need("perf", "unshare", "gcc")
    (directory / "app.c").write_text(SOURCE)
    app = directory / "app"
    subprocess.run(["gcc", "-O1", "-o", app, directory / "app.c"], check=True)
    paths = directory / "1.data", directory / "2.data"
    record = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "500", "-m", "16", "-o"]
    started = []
    for path, arguments in zip(paths, ([], ["x"]), strict=True):
        command = ["unshare", "--pid", "--fork", "--mount-proc", *record, path, "--", app, *arguments]
        started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    for one in started:
        one.wait()
    if not all(path.is_file() and path.stat().st_size for path in paths):
        pytest.skip("no right to record in pid namespaces")
    return paths


def counted_by_perf(path: Path) -> Counter[str]:
    """Samples of each function, as perf names them."""
    command = ["perf", "script", "-i", path, "-F", "pid,ip,sym"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    samples = [line.split() for line in lines if line.strip()]
    return Counter(words[-1] for words in samples if words[0] == "2" and words[-1] in BOTH)


def counted(profile: pf.Profile) -> dict[int, Counter[str]]:
    """Samples of each function, by the key of the process."""
    rows = profile.sql(
        "SELECT process_id, f.name, count(*) FROM samples JOIN threads USING (thread_id) "
        "JOIN stacks USING (stack_id) JOIN frames USING (frame_id) JOIN functions f USING (function_id) GROUP BY ALL"
    ).fetchall()
    found: dict[int, Counter[str]] = {}
    for process, name, num in rows:
        if name in BOTH:
            found.setdefault(process, Counter())[name] = num
    return found


def test_each_recording_has_its_own_process(recordings: tuple[Path, Path]) -> None:
    expected = [counted_by_perf(path) for path in recordings]
    assert [set(one) for one in expected] == [{"first"}, {"second"}], "each program runs one function"
    profile = pf.fuse(*recordings)
    assert counted(profile) == dict(enumerate(expected))
    assert profile.sql("SELECT pid, name FROM processes WHERE pid > 0").fetchall() == [(2, "app"), (2, "app")]


def test_a_recording_and_its_copy_are_of_one_process(recordings: tuple[Path, Path], tmp_path: Path) -> None:
    copy = tmp_path / "copy.data"
    copy.write_bytes(recordings[0].read_bytes() + b"\0")
    (own,) = counted(pf.fuse(recordings[0])).values()
    assert counted(pf.fuse(recordings[0], copy)) == {0: own + own}


def test_a_saved_profile_has_the_same_processes(recordings: tuple[Path, Path], tmp_path: Path) -> None:
    profile = pf.fuse(*recordings)
    profile.save(tmp_path / "both.perfuse")
    assert counted(pf.fuse(tmp_path / "both.perfuse")) == counted(profile)


def test_processes_of_one_name_and_pid_are_two_groups_and_two_tracks(
    recordings: tuple[Path, Path], tmp_path: Path
) -> None:
    profile = pf.fuse(*recordings)
    command = [sys.executable, "-m", "perfuse", "report", "--by", "process", "--json", *map(str, recordings)]
    report = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert {one["name"] for one in report["groups"]} == {"app 2", "app 2 (2)"}
    profile.export(tmp_path / "both.firefox.json")
    threads = json.loads((tmp_path / "both.firefox.json").read_text())["threads"]
    assert {(one["pid"], one["processName"]) for one in threads} == {("2", "app"), ("3", "app 2")}


@pytest.fixture(scope="module")
def with_dumps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Recordings of two containers with Node.js, each beside the dump that it announces, which have one name."""
    need("perf", "unshare", "node")
    directory = tmp_path_factory.mktemp("dumps")
    started = []
    for name in "ab":
        (directory / name).mkdir()
        loop = "let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) % 1000003; return s"
        (directory / name / "app.js").write_text(
            f"function hot_{name}(n) {{ {loop} }}\n"
            f"let r = 0; while (process.cpuUsage().user < 1e6) r += hot_{name}(200000)\n"
        )
        record = "perf record -q -k mono -e cpu-clock -F 500 -m 16 -o perf.data node --perf-prof app.js; true"
        command = ["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", record]
        started.append(
            subprocess.Popen(command, cwd=directory / name, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        )
    for one in started:
        one.wait()
    found = {name: directory / name / "perf.data" for name in "ab"}
    dumps = {dump.name for name in "ab" for dump in (directory / name).glob("jit-*.dump")}
    if len(dumps) != 1 or not all(path.is_file() for path in found.values()):
        pytest.skip("no right to record in pid namespaces")
    return found


@pytest.mark.parametrize("order", ["", "ab", "ba"])
def test_dumps_of_one_name_are_of_their_processes(order: str, with_dumps: dict[str, Path]) -> None:
    """Whether they are named, in any order, or found by what the processes announced."""
    dumps = [dump for name in order for dump in with_dumps[name].parent.glob("jit-*.dump")]
    profile = pf.fuse(*with_dumps.values(), *dumps)
    rows = profile.sql(
        "SELECT DISTINCT path::VARCHAR, process_id FROM code_objects JOIN sources USING (source_id)"
    ).fetchall()
    process_of = {Path(path).parent.name: process for path, process in rows}
    assert len(rows) == 2
    assert process_of.keys() == {"a", "b"}
    sampled = profile.sql(
        "SELECT process_id, f.name::VARCHAR FROM samples JOIN threads USING (thread_id) JOIN stacks USING (stack_id) "
        "JOIN frames USING (frame_id) JOIN functions f USING (function_id) WHERE starts_with(f.name::VARCHAR, 'hot_')"
    ).fetchall()
    assert set(sampled) == {(process_of["a"], "hot_a"), (process_of["b"], "hot_b")}
