"""Programs under Mono's profiler in which everything happens a known number of times (Counts.cs)."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import perfuse as pf
from mlpd_events import read_events
from mono_programs import compiled, recorded, run_until_it_ends
from needs import need
from truth.command import run as run_perfuse
from truth.producers import run_tool

HERE = Path(__file__).parent / "mono"
NODES = 2000

ALLOCATOR = re.compile(
    r"\(wrapper alloc\)|__icall_wrapper_mono_(gc_alloc|profiler_raise|helper_ldstr)|FastAllocateString"
)

Record = Callable[..., Path]


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """Runs Counts.cs with options of the profiler, once for each combination."""
    folder = tmp_path_factory.mktemp("counts")
    program = compiled(HERE / "Counts.cs", folder, "-nowarn:414")

    def run(options: str, *args: str) -> Path:
        log = folder / f"{'-'.join([*options.split(','), *args])}.mlpd"
        return log if log.exists() else recorded(program, log, options, *args)

    return run


def convert(log: Path, target: str, *options: str) -> bytes:
    """A log in another tool's format."""
    out = log.with_suffix(f".{target}.out")
    done = run_perfuse("convert", log, "-o", out, "--to", target, *options)
    assert done.returncode == 0, done.stderr
    return out.read_bytes()


PLACES = {
    ("Counts:MakeNodes (int)", "Node"): (NODES, 24),
    ("Counts:MakeLeaks ()", "Leak"): (1000, 24),
    ("Leak:.ctor ()", "System.Byte[]"): (1000, 72),
    ("Counts:MakeBuffers ()", "System.Byte[]"): (500, 136),
}
"""Who creates objects of which type: how many, and the size of each, rounded up to 8 bytes."""


@pytest.mark.truth(
    recording="mono_allocations", path="convert:collapsed", source="a program that allocates known numbers of objects"
)
def test_collapsed_allocations_end_in_their_type_below_the_method_that_creates_them(record: Record) -> None:
    log = record("nodefaults,alloc")
    for event, which in (("allocations", 0), ("allocated-bytes", 1)):
        text = convert(log, "collapsed", "-O", f"event={event}").decode()
        assert not ALLOCATOR.search(text)
        weights = dict.fromkeys(PLACES, 0)
        for line in text.splitlines():
            stack, _, weight = line.rpartition(" ")
            place = tuple(stack.split(";")[-2:])
            if place in weights:
                weights[place] += int(weight)
        assert weights == {place: count * (size if which else 1) for place, (count, size) in PLACES.items()}


def test_types_that_need_allocations_state_how_to_record_these(record: Record) -> None:
    """Seven exceptions of type Oops are thrown, and one thread waits for an Object."""
    hint = "record these, too: mono --profile=log:alloc"
    for options, name, number in (("exception", "Oops", 7), ("monitor", "System.Object", 1)):
        section = {"exception": "exceptions", "monitor": "locks"}[options]
        text = run_perfuse("report", record(f"nodefaults,{options}"), "--section", section).stdout
        assert re.search(rf"^ +{number} .*\(unknown type\)", text, re.MULTILINE)
        assert hint in text
        document = json.loads(run_perfuse("report", record(f"nodefaults,{options}"), "--json").stdout)
        assert document["unknown_types"] == {section: "mono --profile=log:alloc"}
        text = run_perfuse("report", record(f"nodefaults,alloc,{options}"), "--section", section).stdout
        assert re.search(rf"^ +{number} .*{re.escape(name)}", text, re.MULTILINE)
        assert hint not in text


def test_calls_of_code_that_was_compiled_ahead_of_time(record: Record, tmp_path: Path) -> None:
    """Such code records no calls, which the report states; with the option that it names, Wait is called ten times."""
    need("as", "ld")
    program = shutil.copy(record("nodefaults,calls").parent / "Counts.exe", tmp_path)
    run_tool(["mono", "--aot", program], tmp_path)
    for options, number in (([], 0), (["-O=-aot"], 10)):
        log = tmp_path / f"calls{number}.mlpd"
        run_until_it_ends(["mono", *options, f"--profile=log:nodefaults,calls,output={log}", program], log)
        document = json.loads(run_perfuse("report", log, "--json", "--limit", "0").stdout)
        called = {one["name"]: one["num_calls"] for one in document["calls"]["functions"]}
        assert called.get("Counts:Wait ()", 0) == number
        assert document["is_ahead_of_time"] is (number == 0)
        assert ("mono -O=-aot" in run_perfuse("report", log).stdout) is (number == 0)


@pytest.mark.truth(
    recording="mono_allocations", path="convert:speedscope", source="a program that allocates known numbers of objects"
)
def test_speedscope_allocations_end_in_their_type_below_the_method_that_creates_them(record: Record) -> None:
    text = convert(record("nodefaults,alloc"), "speedscope")
    assert not ALLOCATOR.search(text.decode())
    file = json.loads(text)
    frames = [frame["name"] for frame in file["shared"]["frames"]]
    totals: dict[tuple[str, ...], int] = {}
    for profile in file["profiles"]:
        for stack, weight in zip(profile["samples"], profile["weights"], strict=True):
            place = tuple(frames[frame] for frame in stack[-2:])
            totals[place] = totals.get(place, 0) + weight
    for place, (count, size) in PLACES.items():
        assert totals[place] in (count * size, count, count * size + count)


@pytest.mark.truth(
    recording="mono_allocations",
    path=["query", "api:Profile.sql", "api:Profile.flame"],
    source="a program that allocates known numbers of objects",
)
def test_tables_and_flame_graphs_have_no_allocator_of_the_runtime(record: Record) -> None:
    log = record("nodefaults,alloc")
    profile = pf.fuse(log)
    names = profile.sql(
        "SELECT DISTINCT f.name::VARCHAR FROM stacks JOIN frames USING (frame_id) JOIN functions f USING (function_id)"
    ).fetchall()
    assert not [name for (name,) in names if ALLOCATOR.search(name)]
    found = profile.sql("""
        SELECT f.name::VARCHAR, sum(weight)::BIGINT FROM samples JOIN stacks USING (stack_id)
        JOIN frames USING (frame_id) JOIN functions f USING (function_id) WHERE event = 'allocations' GROUP BY 1
    """).fetchall()
    numbers = dict(found)
    assert (numbers["Node"], numbers["Leak"], numbers.get("Counts", 0)) == (NODES, 1000, 0)
    done = run_perfuse(
        "query",
        log,
        "SELECT count(*) FROM allocations JOIN types USING (type_id) WHERE name = 'Node'",
        "--format",
        "csv",
    )
    assert done.stdout.splitlines()[-1] == str(NODES)
    page = log.with_suffix(".html")
    profile.flame().save(page)
    assert not ALLOCATOR.search(page.read_text(encoding="utf-8"))
    pprof = convert(log, "pprof")
    assert b"Counts:MakeNodes" in pprof
    assert not ALLOCATOR.search(pprof.decode("utf-8", "replace"))


@pytest.mark.truth(
    recording="mono_allocations", path="query", source="a program that throws a literal of a known size seven times"
)
def test_a_literal_is_allocated_by_the_method_that_contains_it(record: Record) -> None:
    """The runtime makes the literals of `throw` by a call of its own."""
    found = pf.fuse(record("nodefaults,alloc")).sql("""
        SELECT f.name::VARCHAR, count(*) FROM allocations JOIN types t USING (type_id) JOIN stacks USING (stack_id)
        JOIN frames USING (frame_id) JOIN functions f USING (function_id)
        WHERE t.name = 'System.String' AND size_bytes = 80 GROUP BY 1
    """)
    assert ("Counts:Throw ()", 7) in found.fetchall()


@pytest.mark.truth(
    recording="mono_allocations", path="diff", source="a program that allocates known numbers of objects, run twice"
)
def test_allocations_differ_by_type(record: Record) -> None:
    before, after = record("nodefaults,alloc"), record("nodefaults,alloc", "3500")
    done = run_perfuse("diff", before, after, "--event", "allocations", "--json", "--limit", "1")
    found = json.loads(done.stdout)
    (first,) = found["functions"]
    assert first["name"] == "Node"
    assert [first["self"][side] for side in ("base", "new")] == [NODES, 3500]


@pytest.mark.truth(
    recording="mono_allocations",
    path=["report:allocations", "api:Profile.allocations"],
    source="a program that allocates known numbers of objects",
)
def test_each_place_of_allocation_is_one_row(record: Record) -> None:
    found = pf.fuse(record("nodefaults,alloc")).allocations()
    sites = found.by_site()
    assert len({one.backtrace for one in sites}) == len(sites)
    innermost: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for one in sites:
        if one.backtrace and one.num_types == 1:
            innermost.setdefault((one.backtrace[-1], one.type_name), []).append((one.count, one.bytes))
    for place, (count, size) in PLACES.items():
        assert innermost[place] == [(count, count * size)]


def span_ns(log: Path) -> int:
    """The time from the first event to the last."""
    times = [event.time for event in read_events(log)]
    return max(times) - min(times)


EVERYTHING = "alloc,gcmove,gcroot,heapshot,legacy"
LEAK_BYTES = 24


def _assertion(log: Path, *facts: str) -> subprocess.CompletedProcess[str]:
    return run_perfuse("report", log, "--json", *(part for fact in facts for part in ("--assert", fact)))


def _values(log: Path, *facts: str) -> list[float | None]:
    """The values of facts; each assertion is one that may fail."""
    done = _assertion(log, *(f"{fact} == 0" for fact in facts))
    assert done.returncode in (0, 1), done.stderr
    return [one["value"] for one in json.loads(done.stdout)["assertions"]]


@pytest.mark.truth(
    recording="mono_allocations",
    path=["assert:heap", "assert:allocations", "assert:exceptions", "assert:locks", "assert:gc"],
    source="a program with known numbers of objects, exceptions, waits and collections",
)
@pytest.mark.truth(
    recording="mono_heap",
    path=["assert:heap", "assert:gc"],
    source="a program with known numbers of objects and collections",
)
def test_facts_are_the_numbers_of_the_program(record: Record) -> None:
    log = record(EVERYTHING)
    facts = {
        "allocations['Node'].count": NODES,
        "allocations['Leak'].bytes": 1000 * LEAK_BYTES,
        "heap.live_objects['Node']": NODES,
        "heap.live_bytes['Node']": NODES * 24,
        "heap.live_objects['Leak']": 1000,
        "heap.growth['Leak'].objects": 1000,
        "heap.growth['Leak'].bytes": 1000 * LEAK_BYTES,
        "heap.growth['Node'].objects": 0,
        "exceptions.count": 7,
        "exceptions['Oops'].count": 7,
        "exceptions['System.OutOfMemoryException'].count": 0,
        "locks.contentions": 1,
        "locks.failed": 0,
    }
    assert dict(zip(facts, _values(log, *facts), strict=True)) == facts
    # What else is alive is in the log, read by another decoder.
    shots: list[dict[int, int]] = []
    for event in read_events(log):
        if event.byte == 0x06:
            shots.append({})
        elif event.byte == 0x26 and event.values[2]:
            shots[-1][event.values[0]] = event.values[2]
    first, last = shots[0], shots[-1]
    totals = ("heap.live_bytes", "heap.live_objects", "heap.growth.bytes", "heap.growth.objects")
    sums = [sum(last.values()), len(last), sum(last.values()) - sum(first.values()), len(last) - len(first)]
    assert _values(log, *totals) == sums
    # Each Leak retains itself and its array, which the collector rounds up.
    assert _values(log, "heap.retained_bytes['Leak']") == [1000 * (LEAK_BYTES + 80)]
    ((waited,),) = [_values(log, "locks.waits.max")]
    assert 95e6 < (waited or 0) < span_ns(log)
    assert _values(log, "gc.major.collections")[0] == sum(
        event.byte == 0x11 and event.values == (0, 1) for event in read_events(log)
    )


@pytest.mark.truth(
    recording="mono_calls", path=["assert:calls", "report:calls"], source="a program with known numbers of calls"
)
def test_facts_of_calls_are_the_numbers_of_the_program(record: Record) -> None:
    log = record("nodefaults,calls")
    count, total, unused = _values(
        log, "calls['Counts:Wait ()'].count", "calls['Counts:Wait ()'].sum", "calls['Counts:Main (string[])'].count"
    )
    assert (count, unused) == (10, 1)
    # The main thread waits ten times for 20 ms at least, and only a busy machine makes it more.
    assert 10 * 20e6 <= (total or 0) < span_ns(log)
    text = run_perfuse("report", log, "--section", "calls").stdout
    assert "Main None" not in text
    assert re.search(r"Main \d", text)


@pytest.mark.truth(
    recording="mono_calls",
    path=["assert:exceptions", "assert:locks", "assert:heap"],
    source="the options that the program was run with",
)
def test_a_fact_that_was_not_recorded_fails_and_one_of_nothing_is_zero(record: Record) -> None:
    calls = record("nodefaults,calls")
    for fact, option in (
        ("exceptions.count", "exception"),
        ("allocations.bytes", "alloc"),
        ("locks.contentions", "monitor"),
        ("heap.live_bytes", "heapshot"),
        ("heap.growth.objects", "heapshot"),
        ("handles.left", "gchandle"),
        ("gc.pauses.max", "gc"),
        ("samples.count", "sample"),
    ):
        done = _assertion(calls, f"{fact} < 1")
        (one,) = json.loads(done.stdout)["assertions"]
        assert (done.returncode, one["value"], one["holds"]) == (1, None, False)
        assert f"--profile=log:{option}" in one["reason"]
    # Nothing was thrown and no thread waited; both would have been recorded.
    quiet = record("nodefaults,exception,monitor,gc,gchandle,finalization", "quiet")
    done = _assertion(
        quiet, "exceptions.count == 0", "locks.contentions == 0", "locks.waits.max == 0", "handles.created >= 0"
    )
    assert [one["value"] for one in json.loads(done.stdout)["assertions"]][:3] == [0, 0, 0]
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("fact", "near"),
    [
        ("allocations['Noode'].count < 1", "Node"),
        ("heap.live_objects['Leek'] < 1", "Leak"),
        ("heap.growth['Leek'].objects < 1", "Leak"),
        ("exceptions['Ooops'].count < 1", "Oops"),
        ("heap.live_byte < 1", "heap.live_bytes"),
    ],
)
def test_a_misspelt_name_is_an_error_with_the_nearest_names(record: Record, fact: str, near: str) -> None:
    done = _assertion(record(EVERYTHING), fact)
    assert done.returncode == 2
    assert near in done.stderr.split("did you mean")[1]


@pytest.mark.truth(
    recording="mono_allocations",
    path=["assert:exceptions", "assert:allocations"],
    source="a program that never uses a type",
)
def test_nothing_of_a_type_that_was_never_used_happened(record: Record) -> None:
    """It is not in the log; only an assertion that there is none holds."""
    log = record(EVERYTHING)
    absent = ["exceptions['System.IO.FileNotFoundException'].count == 0", "allocations['Warehouse'].count < 1"]
    done = _assertion(log, *absent)
    assert [(one["value"], one["holds"]) for one in json.loads(done.stdout)["assertions"]] == [(0, True), (0, True)]
    assert done.returncode == 0
    done = _assertion(log, "allocations['Warehouse'].count < 1000")
    assert done.returncode == 2
    assert "there is no type 'Warehouse'" in done.stderr


def test_a_misspelt_function_is_an_error_with_the_nearest_names(record: Record) -> None:
    done = _assertion(record("nodefaults,calls"), "calls['Counts:Waitt ()'].count < 1")
    assert done.returncode == 2
    assert "Counts:Wait ()" in done.stderr


@pytest.mark.truth(
    recording="mono_allocations", path=["report:threads", "api:Profile.between"], source="the selected time"
)
def test_a_selection_keeps_the_times_of_the_recording(record: Record) -> None:
    log = record(EVERYTHING)
    whole = json.loads(run_perfuse("report", log, "--json").stdout)
    part = json.loads(run_perfuse("report", log, "--json", "--between", "0.2..0.3").stdout)
    assert (part["start_ns"] - whole["start_ns"], part["duration_ns"]) == (200_000_000, 100_000_000)
    nothing = run_perfuse("report", log, "--between", "0.25..0.250001")
    assert re.search(r"^ +over +1.00 µs, ", nothing.stdout, re.MULTILINE)
    for text in (nothing.stdout, run_perfuse("report", log, "--between", "0.2..0.3", "--section", "threads").stdout):
        rows = re.findall(r"0x[0-9a-f]+ +(\S+ \S+) +(\S+ \S+) ", text)
        assert rows
        assert not [row for row in rows if any(time.startswith("-") or "min" in time or " h" in time for time in row)]


def test_sections_that_were_not_recorded_say_how_to_record_them(record: Record) -> None:
    log = record("nodefaults,calls")
    for section, option in (
        ("locks", "monitor"),
        ("exceptions", "exception"),
        ("gc", "gc"),
        ("heap", "heapshot"),
        ("samples", "sample"),
        ("counters", "counter"),
        ("handles", "gchandle"),
        ("allocations", "alloc"),
    ):
        text = run_perfuse("report", log, "--section", section).stdout
        assert re.search(rf"Not recorded\n +{section} +mono --profile=log:{option}\n", text)
        assert json.loads(run_perfuse("report", log, "--json", "--section", section).stdout)["not_recorded"] == {
            section: f"mono --profile=log:{option}"
        }
    assert "calls" not in json.loads(run_perfuse("report", log, "--json").stdout)["not_recorded"]


def _live_and_known(log: Path) -> tuple[int, int]:
    """Objects of the last heap snapshot, and those whose allocation is in the log: a replay of its events."""
    events = sorted(read_events(log), key=lambda event: event.time)
    known: set[int] = set()
    shot: set[int] = set()
    last = (0, 0)
    for event in events:
        if event.byte & 15 == 0:
            known.add(event.values[1])
        elif event.byte == 0x31:
            for old, new in event.pairs:
                if old in known:
                    known.discard(old)
                    known.add(new)
        elif event.byte == 0x06:
            shot = set()
        elif event.byte == 0x26 and event.values[2]:
            shot.add(event.values[0])
        elif event.byte == 0x16:
            last = len(shot), len(shot & known)
    return last


@pytest.mark.truth(
    recording="mono_heap",
    path=["report:heap", "api:Profile.heap"],
    source="a replay of allocations and moves in the test",
)
def test_the_report_states_how_many_live_objects_have_a_known_allocation(record: Record) -> None:
    log = record(EVERYTHING)
    live, known = _live_and_known(log)
    heap = pf.fuse(log).heap()
    assert (heap.num_objects, heap.num_sited) == (live, known)
    assert sum(one.num_objects for one in heap.sites(None)) == known
    without = record("nodefaults,gc,gcmove,gcroot,heapshot")
    live, known = _live_and_known(without)
    assert known == 0
    text = run_perfuse("report", without, "--section", "heap").stdout
    assert re.search(rf"Allocation sites of live objects +0 of {live:,} objects\n +not recorded: ", text)


def test_places_that_differ_only_in_wrappers_are_one(record: Record) -> None:
    profile = pf.fuse(record("nodefaults,exception,monitor,gchandle"))
    sites: Sequence[Any] = profile.exceptions().by_site
    (thrown,) = [one for one in sites if "Counts:Throw ()" in one.backtrace]
    assert (thrown.count, thrown.backtrace) == (7, ("Counts:Main (string[])", "Counts:Throw ()"))
    assert profile.contention().by_site[0].backtrace[-1] == "Counts:Contend ()"


def test_a_log_of_handles_and_finalizers_alone(record: Record) -> None:
    """Nothing was asked about collections, heap snapshots, samples or calls."""
    log = record("nodefaults,gchandle,finalization")
    report = run_perfuse("report", log).stdout
    assert "Finalizers" in report
    assert "Garbage collection" not in report
    for words in (("flame", log, "-o", log.with_suffix(".svg")), ("report", "--tree", log)):
        done = run_perfuse(*words)
        assert done.returncode == 2
        assert "calls or allocations to " in done.stderr
        assert "hint: " in done.stderr
    assert "no samples that could be compared" in run_perfuse("diff", log, log).stderr
    done = run_perfuse("flame", log, "-o", log.with_suffix(".svg"), "--weight", "retained")
    assert "hint: Mono records them with --profile=log:heapshot" in done.stderr
    done = run_perfuse("convert", log, "--to", "dot", "-o", log.with_suffix(".dot"))
    assert "hint: " in done.stderr
