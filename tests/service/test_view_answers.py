"""Answers of `perfuse view` about another recording, about context switches, and about the life of JIT code."""

import json
import shlex
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import perf_crafting as crafting
import perfuse
from perfuse.viewer.session import Session
from service.view_page import Page, served, served_session

ROOT = Path(__file__).parents[2]
SLOWER = ROOT / "examples" / "slower"
BEFORE, AFTER = SLOWER / "before" / "run1.folded", SLOWER / "after" / "run1.folded"
POSTCARDS = [str(ROOT / "examples" / "postcards" / name) for name in ("perf.data.gz", "jit-32015.dump.gz")]
MS = 1_000_000
SWITCHES = ROOT / "tests" / "truth" / "recorded" / "perf_machine" / "switches.perf.data"


@pytest.fixture(scope="module")
def compared() -> Iterator[Page]:
    """The recording after the change, with the one before it as its base."""
    base = Session(lambda _progress: perfuse.fuse(BEFORE), [str(BEFORE)])
    session = Session(lambda _progress: perfuse.fuse(AFTER), [str(AFTER)], base=base)
    with served_session(session) as page:
        session.start()
        session.join()
        yield page


def folded(path: Path) -> Counter[str]:
    """Samples by innermost function, from the text of the file."""
    counts = Counter[str]()
    for line in path.read_text(encoding="utf-8").splitlines():
        stack, _, number = line.rpartition(" ")
        counts[stack.split(";")[-1]] += int(number)
    return counts


def test_functions_are_compared_with_those_of_the_other_recording(compared: Page) -> None:
    before, after = folded(BEFORE), folded(AFTER)
    answer = compared.get("diff?limit=500&other.recording=base")
    assert (answer["a"]["total"], answer["b"]["total"]) == (after.total(), before.total())
    found = {row["name"]: (row["a"], row["b"]) for row in answer["rows"]}
    assert found == {name: (after[name], before[name]) for name in before | after}
    assert compared.get("overview")["base"] == [str(BEFORE)]


def recorded(directory: Path, samples: Counter[int]) -> list[Path]:
    """A perf.data with samples at addresses of JIT code, and its dump.

    The code has lines and no declaration, as that of LLVM and of the JVM; two closures are on one line.
    """
    pid, base = 100, 0x10000
    dump = struct.pack("<4sIIIIIQQ", b"DTiJ", 1, 40, 62, 0, pid, 1, 0)
    lines = b"".join(struct.pack("<QII", base + offset, line, 0) + b"w.c\0" for offset, line in ((0, 10), (0x20, 20)))
    dump += struct.pack("<IIQQQ", 2, 32 + len(lines), 2, base, 2) + lines
    for index, name in enumerate((b"work", b"JS:* /app/x.js:1:5", b"JS:* /app/x.js:1:90")):
        body = (
            struct.pack("<IIQQQQ", pid, pid, *[base + 0x100 * index] * 2, 0x40, index) + name + b"\0" + b"\x90" * 0x40
        )
        dump += struct.pack("<IIQ", 0, 16 + len(body), 3 + index) + body
    directory.mkdir()
    (directory / "jit-100.dump").write_bytes(dump)
    clock = crafting.Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD)
    records = [crafting.comm(clock, pid, pid, "main"), crafting.mmap2(clock, pid, "//anon", base, 0x1000)]
    records += [
        crafting.sample(clock, ip=base + offset, pid=pid, tid=pid, time=MS * (1 + number), period=1)
        for number, offset in enumerate(samples.elements())
    ]
    perf_data = crafting.PerfFile([clock], records).write(directory / "perf.data")
    return [perf_data, directory / "jit-100.dump"]


def test_functions_are_compared_by_their_declaration_not_by_their_samples(tmp_path: Path) -> None:
    """A function was new in one recording and gone in the other where other lines of it were sampled."""
    before = recorded(tmp_path / "before", Counter({0x10: 3, 0x30: 1, 0x110: 2, 0x210: 6}))
    after = recorded(tmp_path / "after", Counter({0x30: 5, 0x110: 4, 0x210: 7}))
    base = Session(lambda _progress: perfuse.fuse(*before), list(map(str, before)))
    session = Session(lambda _progress: perfuse.fuse(*after), list(map(str, after)), base=base)
    with served_session(session) as page:
        session.start()
        session.join()
        rows = page.get("diff?limit=100&other.recording=base")["rows"]
        times = page.get("diff?limit=100&from=0&to=5000000&other.from=5000000")["rows"]
    numbers = sorted((row["name"], row["b"], row["a"]) for row in rows)
    assert numbers == [("(anonymous)", 2, 4), ("(anonymous)", 6, 7), ("work", 4, 5)]
    numbers = sorted((row["name"], row["a"], row["b"]) for row in times)
    assert numbers == [("(anonymous)", 0, 4), ("(anonymous)", 0, 7), ("work", 5, 0)]


def test_a_filter_selects_the_same_functions_of_both_recordings(tmp_path: Path) -> None:
    one, two = tmp_path / "one.folded", tmp_path / "two.folded"
    one.write_text("main;add_extra 5\nmain;work 10\n")
    two.write_text("main;add_extra 5\nmain;work 10\nmain;extra 7\n")
    base = Session(lambda _progress: perfuse.fuse(one), [str(one)])
    session = Session(lambda _progress: perfuse.fuse(two), [str(two)], base=base)
    with served_session(session) as page:
        session.start()
        session.join()
        status, _, body = page.request('/api/diff?other.recording=base&filters=[["only","extra"]]')
        assert status == 400
        assert "a name in this recording, and in the other only a part of others, such as add_extra" in body.decode()
        rows = page.get('diff?other.recording=base&filters=[["only","*extra"]]')["rows"]
    assert {row["name"]: (row["b"], row["a"]) for row in rows} == {"add_extra": (5, 5), "extra": (0, 7)}


def test_the_command_of_a_difference_compares_both_recordings(compared: Page) -> None:
    answer = compared.get("diff?limit=500&other.recording=base")
    assert answer["command"] == f"perfuse diff {BEFORE} -- {AFTER}"
    words = [sys.executable, "-m", "perfuse", *answer["command"].split()[1:], "--json", "--limit", "0"]
    done = subprocess.run(words, capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    printed = {row["name"]: row["self"] for row in json.loads(done.stdout)["functions"] if row["self"]}
    rows = {row["name"]: {"new": row["a"], "base": row["b"]} for row in answer["rows"]}
    assert {name: (row["new"], row["base"]) for name, row in rows.items()} == {
        name: (row["new"], row["base"]) for name, row in printed.items() if row["new"] or row["base"]
    }
    filtered = compared.get('diff?other.recording=base&filters=[["only","shade"]]')
    assert filtered["command"] == f"perfuse diff {BEFORE} -- {AFTER} --only shade"


def test_the_tree_of_the_other_recording(compared: Page) -> None:
    for query, path in (("tree", AFTER), ("tree?recording=base", BEFORE)):
        status, _, body = compared.request(f"/api/{query}")
        assert status == 200
        head = json.loads(body[4 : 4 + int.from_bytes(body[:4], "little")])
        assert head["total_samples"] == folded(path).total()
        assert str(path) in head["command"]


def test_without_another_recording_there_is_nothing_to_compare_with() -> None:
    with served(AFTER) as page:
        assert page.get("overview")["base"] == []
        assert page.error("tree?recording=base") == (404, "no_base")
        assert page.error("diff?other.recording=base") == (404, "no_base")


def test_processors_have_the_threads_that_were_sampled_on_them(tmp_path: Path) -> None:
    """Ten samples of one thread, then five of another on the same processor, and five on another one; 1 ms apart."""
    head = crafting.IDENTIFIER | crafting.IP | crafting.TID | crafting.TIME | crafting.CPU | crafting.PERIOD
    clock = crafting.Attribute.of((1, 0), head | crafting.CALLCHAIN, ids=[1])
    placed = [(n, 100, 0) for n in range(10)] + [(n, 101, 0) for n in range(10, 15)] + [(n, 101, 1) for n in range(5)]
    records = [crafting.comm(clock, 100, tid, name) for tid, name in ((100, "main"), (101, "worker"))]
    records.append(crafting.mmap2(clock, 100, "//anon", 0x10000, 0x1000))
    stack: dict[str, Any] = {"ip": 0x10010, "chain": [crafting.CONTEXT_USER, 0x10010]}
    records += [
        crafting.sample(clock, pid=100, tid=tid, time=(1000 + n) * MS, cpu=cpu, period=MS, **stack)
        for n, tid, cpu in sorted(placed)
    ]
    names = {crafting.EVENT_DESC: crafting.event_desc([(clock, "cpu-clock")])}
    with served(crafting.PerfFile([clock], records, names).write(tmp_path / "perf.data")) as page:
        head_of, columns = page.binary(f"heat?kind=processors&column_ns={5 * MS}")
        assert head_of["labels"] == ["CPU 0", "CPU 1"]
        assert columns["cells"] == [5 * MS, 5 * MS, 5 * MS, 5 * MS, 0, 0]
        texts = page.get("symbols")["symbols"]["name"]
        boxes = {}
        for track in page.get("timeline")["tracks"]:
            if track["kind"] == "cpu":
                assert track["name"] == f"CPU {track['cpu']}"
                _, columns = page.binary(f"tiles?k=10&first=0&last=40&tracks={track['track']}")
                found = {
                    (start / MS, duration / MS, texts[symbol])
                    for start, duration, symbol in zip(
                        columns["start"], columns["duration"], columns["symbol"], strict=True
                    )
                }
                boxes[track["cpu"]] = sorted(found)
        # The last sample of a processor lasts as long as the others.
        assert boxes == {
            0: [(0, 10, "main 100/100"), (10, 5, "worker 100/101")],
            1: [(0, 5, "worker 100/101")],
        }


def test_states_of_threads_are_those_between_context_switches() -> None:
    """Sums equal those of the table, whose rows `tests/formats/test_perf_time_off_cpu.py` confirms."""
    rows = perfuse.fuse(SWITCHES).sql("SELECT thread_id, end_ns - start_ns FROM sched_states WHERE end_ns IS NOT NULL")
    expected = Counter[int]()
    for thread, length in rows.fetchall():
        expected[thread] += length
    with served(SWITCHES) as page:
        names = page.get("symbols")["symbols"]["name"]
        tracks = page.get("timeline")["tracks"]
        found = Counter[int]()
        for track in tracks:
            if track["kind"] == "state":
                _, columns = page.binary(f"tiles?k=40&first=0&last=0&tracks={track['track']}")
                assert sum(columns["count"]) == track["slices"]
                found[track["thread"]] += round(sum(columns["busy"]))
        assert found == expected
        assert {"running", "runnable", "sleeping"} <= set(names)
        # They show the time of the calls and samples once more: the longest slices are not among them.
        slowest = page.get("slowest?limit=1000")["slices"]
        assert not {row["kind"] for row in slowest} & {"cpu", "state"}


def test_the_life_of_a_function_has_the_samples_of_its_code() -> None:
    with served(*POSTCARDS) as page:
        row = next(row for row in page.get("code?q=render&limit=500")["rows"] if row["name"] == "render")
        assert row["num_again"] == len(row["compilations"]) - len({each["tier"] for each in row["compilations"]})
        codes = ",".join(str(each["code"]) for each in row["compilations"])
        life = page.get(f"code/life?codes={codes}")
        reported = next(row for row in page.get("functions?q=render&limit=500")["rows"] if row["name"] == "render")
        assert sum(each["samples"] for each in life["codes"]) == reported["samples"]
        for each in life["codes"]:
            assert sum(each["counts"]) == each["samples"]
            compiled = next(one for one in row["compilations"] if one["code"] == each["code"])
            assert compiled["create_ns"] <= each["first_ns"] <= each["last_ns"]
            assert compiled["retire_ns"] is None or each["last_ns"] < compiled["retire_ns"]


def test_functions_with_code_come_in_pages(jitdump_corpus: Path) -> None:
    """CPython's dump has many functions of one name and size, from different files: pages have each of them once."""
    with served(jitdump_corpus / "produced" / "cpython315-dwarf.dump") as page:
        whole = page.get("code?limit=500")
        rows = [
            row for first in range(0, whole["num"], 50) for row in page.get(f"code?limit=50&offset={first}")["rows"]
        ]
        keys = [(row["name"], row["path"], row["line"]) for row in rows]
        assert len(set(keys)) == whole["num"] == len(keys)
        sizes = [(-row["num_compilations"], -row["bytes"], *key) for row, key in zip(rows, keys, strict=True)]
        equal = [a[:3] == b[:3] for a, b in pairwise(sizes)]
        assert any(equal)
        assert all(a[:2] <= b[:2] for a, b in pairwise(sizes))
        assert all(str(a[3]) <= str(b[3]) for (a, b), same in zip(pairwise(sizes), equal, strict=True) if same)


def test_references_of_an_object_come_in_pages(mono_corpus: Path) -> None:
    with served(mono_corpus / "v17" / "heapshot.mlpd") as page:
        rows = page.get("heap/types?limit=500")["rows"]
        address = next(row["largest_address"] for row in rows if row["type"] == "System.Object[]")
        whole = page.get(f"heap/object?address={address}&limit=5000")
        assert len(whole["refers_to"]) == whole["num_refers_to"] > 20
        pages = [
            page.get(f"heap/object?address={address}&limit=7&offset={offset}")["refers_to"]
            for offset in range(0, whole["num_refers_to"] + 7, 7)
        ]
        assert [row for part in pages for row in part] == whole["refers_to"]


def test_paths_from_roots_to_a_type_are_those_of_the_report(mono_corpus: Path) -> None:
    with served(mono_corpus / "v17" / "everything.mlpd") as page:
        row = next(row for row in page.get("heap/types?limit=500")["rows"] if row["type"] == "Node")
        answer = page.get(f"heap/paths?type_id={row['type_id']}")
        words = [sys.executable, "-m", "perfuse", *shlex.split(answer["command"])[1:], "--json"]
        done = subprocess.run(words, capture_output=True, check=False)
        assert done.returncode in (0, 1), done.stderr
        printed = json.loads(done.stdout)["paths"]
        assert answer["num"] == len(printed) > 1
        fields = (("num_objects", "objects"), ("retained_bytes",) * 2, ("types",) * 2, ("address",) * 2, ("root",) * 2)
        assert [[one[name] for name, _ in fields] for one in printed] == [
            [one[name] for _, name in fields] for one in answer["rows"]
        ]
        assert sum(one["objects"] for one in answer["rows"]) == row["objects"]


def test_the_kernel_has_the_name_that_reports_show() -> None:
    """perf calls it `[kernel.kallsyms]_text`; boxes, lists and filters of the page have one name for it."""
    with served(*POSTCARDS) as page:
        rows = page.get("functions?limit=500")["rows"]
        kernel = [row for row in rows if row["kind"] == "kernel"]
        assert {row["module"] for row in kernel} == {"[kernel]"}
        found = page.get(f"callers?function={quote(kernel[0]['name'])}&module={quote('[kernel]')}")
        assert found["function"]["self"] == kernel[0]["self"]


def test_counters_are_those_of_the_process_of_their_log() -> None:
    """They had none: the timeline showed them below a heading `process undefined`."""
    with served(str(ROOT / "examples" / "mono_shop" / "output.mlpd.zst")) as page:
        processes = {row["process"] for row in page.get("overview")["processes"]}
        counters = page.get("timeline")["counters"]
        assert counters
        assert {row["process"] for row in counters} == processes
        assert len(processes) == 1
