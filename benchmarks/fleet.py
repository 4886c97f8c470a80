"""Costs of a fleet: by number of recordings, over decoding, of questions, sizes, memory, one and two Dask workers.

    python benchmarks/fleet.py 10 100 1000 [--folder DIR] [--dask N]
    python benchmarks/fleet.py 10 100 1000 10000 --mixed

Recordings are made of perf.data and dumps of the corpus: each has its own time stamps in the header, so that its
content is its own. With `--mixed`, one of ten is such a pair, one a saved profile, and eight are the stacks of a
recording of the corpus, drawn anew for each run; from build 6 of 10 on, one function costs half as much again. Then
the processor time of a program that has started is measured, which other programs of the machine disturb little.
Figures of `docs/fleet.md` are those of this program.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import time
import zipfile
from pathlib import Path

CORPUS = Path(os.environ.get("PERFUSE_CORPUS", "../shared/corpus")) / "jitdump" / "produced"
SOURCES = ("node20", "node24", "llvm19-orc", "wasmtime50", "jsc2.52", "cpython313")
BUILDS = 10
SLOWER_FROM = 6
"""The build from which on the planted function costs half as much again."""
SAMPLES = 1500
LABELS = r"/b(?P<build>\d+)/(?P<host>h\d+)/(?P<program>[^/]+?)-\d+\."
"""Labels in the paths of mixed recordings."""


def write_copies(folder: Path, number: int, *, first: int = 0, name: str | None = None) -> list[str]:
    """Copies of the sources: the time stamp of a dump's header differs, and each file's time of change is its day."""
    inputs = []
    for place in range(first, first + number):
        source = name or SOURCES[place % len(SOURCES)]
        target = folder / f"{source}-{place}"
        data, dump = Path(f"{target}.perf.data"), Path(f"{target}.dump")
        if not dump.exists():
            shutil.copy(CORPUS / f"{source}.perf.data", data)
            content = bytearray((CORPUS / f"{source}.dump").read_bytes())
            # Bytes 24 to 32 of a dump's header: the time at which it was created.
            stamp = int.from_bytes(content[24:32], "little") + place
            content[24:32] = stamp.to_bytes(8, "little")
            dump.write_bytes(content)
            at = 1_793_534_400 + place % 14 * 86_400
            os.utime(data, (at, at))
            os.utime(dump, (at, at))
        inputs.append(f"{data}+{dump}")
    return inputs


def write_mixed(folder: Path, number: int) -> list[str]:
    """Recordings of ten builds: of ten, a pair of files, a saved profile, and eight files of stacks drawn at random."""
    import perfuse

    sources, packs = {}, {}
    for name in SOURCES:
        pair = [CORPUS / f"{name}.perf.data", CORPUS / f"{name}.dump"]
        with perfuse.fuse(*pair) as profile:
            profile.export(folder / f"{name}.folded", to="collapsed")
            lines = (folder / f"{name}.folded").read_text(encoding="utf-8").splitlines()
            profile.save(folder / f"{name}.perfuse")
        parts = [line.rpartition(" ") for line in lines]
        sources[name] = ([stack for stack, _, _ in parts], [int(weight) for _, _, weight in parts])
        packs[name] = (folder / f"{name}.perfuse").read_bytes()
    planted = {name: _planted(*found) for name, found in sources.items()}
    (folder / "planted.json").write_text(json.dumps(planted), encoding="utf-8")
    inputs = []
    for place in range(number):
        name, build = SOURCES[place % len(SOURCES)], place * BUILDS // number
        at = 1_793_534_400 + place * 14 * 86_400 // number
        directory = folder / f"b{build}" / f"h{place % 20}"
        directory.mkdir(parents=True, exist_ok=True)
        chance = random.Random(place)
        if place % 10 == 0:
            (pair,) = write_copies(directory, 1, first=place, name=name)
            inputs.append(pair)
            continue
        target = directory / f"{name}-{place}.{'perfuse' if place % 10 == 1 else 'folded'}"
        if place % 10 == 1:
            target.write_bytes(_renamed(packs[name], place))
        else:
            stacks, weights = sources[name]
            slower = 1.5 if build >= SLOWER_FROM else 1.0
            drawn = [
                n * slower if stack.endswith(planted[name]) else n for stack, n in zip(stacks, weights, strict=True)
            ]
            counts: dict[str, int] = {}
            for stack in chance.choices(stacks, drawn, k=SAMPLES):
                counts[stack] = counts.get(stack, 0) + 1
            target.write_text("".join(f"{stack} {n}\n" for stack, n in counts.items()), encoding="utf-8")
        os.utime(target, (at, at))
        inputs.append(str(target))
    return inputs


def _planted(stacks: list[str], weights: list[int]) -> str:
    """The function that becomes slower: the one whose own share is closest to a tenth."""
    own: dict[str, int] = {}
    for stack, weight in zip(stacks, weights, strict=True):
        leaf = stack.rpartition(";")[2]
        own[leaf] = own.get(leaf, 0) + weight
    return min(own, key=lambda leaf: abs(own[leaf] / sum(weights) - 0.1))


def _renamed(pack: bytes, place: int) -> bytes:
    """A saved profile of other recordings, by the hashes of their files, so that it is a recording of its own."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(pack)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as new:
        for info in old.infolist():
            content = old.read(info.filename)
            if info.filename == "manifest.json":
                manifest = json.loads(content)
                for one in manifest["inputs"]:
                    one["sha256"] = hashlib.sha256(f"{place} {one['sha256']}".encode()).hexdigest()
                content = json.dumps(manifest | {"title": f"run {place}"}).encode()
            new.writestr(zipfile.ZipInfo(info.filename), content)
    return out.getvalue()


def decode(inputs: list[str]) -> float:
    """Seconds of CPU for each recording: opened and joined, and nothing stored."""
    import perfuse

    started = time.process_time()
    for one in inputs:
        with perfuse.fuse(*one.split("+")) as profile:
            for name in ("frames", "stacks", "samples", "functions", "modules"):
                profile.tables[name].to_arrow()
            for recording in profile.recordings:
                recording.findings()
    return (time.process_time() - started) / len(inputs)


def read_alone(inputs: list[str]) -> float:
    """Seconds of CPU for each recording: read by the function of a worker, whose rows are stored nowhere."""
    from perfuse.fleet import work
    from perfuse.fleet.inputs import inputs_of
    from perfuse.fleet.store import Store

    store, batch = Store("nowhere"), work._Batch()
    known, options = work.Known(store), work.WorkOptions(store.uri)
    started = time.process_time()
    for one in inputs_of(inputs, LABELS):
        assert work._process(options, store, known, one, batch).state != "failed"
    return (time.process_time() - started) / len(inputs)


def add(inputs: list[str], dataset: Path, *options: str) -> dict[str, float]:
    """Adds recordings by the command; its seconds, and the largest memory of its processes."""
    listed = dataset.with_suffix(".list")
    listed.write_text("".join(f"{one}\n" for one in inputs), encoding="utf-8")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "perfuse", "fleet", "add", str(dataset), "--from", str(listed), "--json", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - started
    if done.returncode > 1:
        raise SystemExit(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = json.loads(done.stdout)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": seconds, "cpu": cpu, "added": result["added"], "inner": result["seconds"]}


def measure_mixed(folder: Path, numbers: list[int]) -> None:
    """Processor time of each recording, in a program that has read some before, and of decoding alone."""
    from perfuse.fleet import Fleet

    inputs = write_mixed(folder, max(numbers))
    warm = Fleet(folder / "dataset-warm")
    shutil.rmtree(warm.uri, ignore_errors=True)
    warm.add(inputs[-30:])
    some = inputs[:300]
    alone, bare = read_alone(some), decode(some)
    print(
        f"read by a worker, nothing stored: {1e3 * alone:.1f} ms of CPU a recording; only opened and joined:"
        f" {1e3 * bare:.1f} ms ({len(some)} recordings)",
        flush=True,
    )
    for number in numbers:
        # The kinds and sources repeat after 30: of ten, three sets are read into a dataset each.
        sets = max(1, 30 // number)
        cpu = seconds = again = size = 0.0
        added = kept = 0
        for part in range(sets):
            some = inputs[part * number : (part + 1) * number]
            dataset = folder / f"dataset-mixed-{number}-{part}"
            shutil.rmtree(dataset, ignore_errors=True)
            started, before = time.monotonic(), time.process_time()
            result = Fleet(dataset).add(some, labels_from=LABELS)
            cpu, seconds = cpu + time.process_time() - before, seconds + time.monotonic() - started
            before = time.process_time()
            kept += Fleet(dataset).add(some).kept
            again += time.process_time() - before
            size += sum(one.stat().st_size for one in dataset.rglob("*.parquet"))
            added += result.num_added
            assert result.num_added == len(some), result
        each = 1e3 / number / sets
        print(
            f"{number:>6}: {each * cpu:.1f} ms of CPU a recording ({each * seconds:.1f} ms of a shared machine);"
            f" again {each * again:.1f} ms; {each * size / 1e6:.1f} kB each; {added} added, {kept} kept;"
            f" largest memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB",
            flush=True,
        )


def find_planted(folder: Path, dataset: Path) -> None:
    """Asks which functions changed at which build, and prints what is not the planted one."""
    from perfuse.fleet import Fleet
    from perfuse.fleet.comparing import steps_since
    from perfuse.fleet.selecting import Recordings

    planted = json.loads((folder / "planted.json").read_text(encoding="utf-8"))
    started, before = time.monotonic(), time.process_time()
    found = steps_since(Fleet(dataset), Recordings(), "0", within="program", event="samples")
    cpu, seconds = time.process_time() - before, time.monotonic() - started
    right = [one for one in found.steps if one.name == planted[str(one.within)] and one.first == str(SLOWER_FROM)]
    print(
        f"--since 0 --within program: {len(right)} of {len(planted)} planted changes at build {SLOWER_FROM},"
        f" {len(found.steps) - len(right)} others, of {found.num_recordings} recordings;"
        f" {cpu:.1f} s of CPU ({seconds:.0f} s); largest memory"
        f" {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB",
        flush=True,
    )


def compare_equals(dataset: Path, number: int) -> None:
    """Compares equal builds: two groups of recordings as `diff` does, and builds as `diff --since` does."""
    from perfuse.errors import UsageError
    from perfuse.fleet import Fleet
    from perfuse.fleet.comparing import difference, graphs_of, steps_since
    from perfuse.fleet.questions import select_event
    from perfuse.fleet.selecting import parse_recordings

    fleet, chance = Fleet(dataset), random.Random(1)
    equal = f"build={'|'.join(map(str, range(SLOWER_FROM)))}"
    graphs = {}
    for name in SOURCES:
        which = parse_recordings(f"program={name}, {equal}")
        graphs[name] = graphs_of(fleet, which, select_event(fleet, which, "samples"))
    alarms = 0
    for place in range(number):
        some = chance.sample(graphs[SOURCES[place % len(SOURCES)]], 40)
        found = difference(some[:20], some[20:])
        alarms += any(one.verdict in ("changed", "new", "gone") for one in found.functions)
    print(f"{number} comparisons of 20 and 20 recordings of equal builds: {alarms} name a function", flush=True)
    alarms = asked = 0
    for place in range(number):
        hosts = {place // len(SOURCES) % 20, (place // len(SOURCES) * 7 + place // 120) % 20}
        where = f"program={SOURCES[place % len(SOURCES)]}, {equal}, host={'|'.join(f'h{one}' for one in sorted(hosts))}"
        which = parse_recordings(where)
        try:
            alarms += bool(steps_since(fleet, which, "0", event="samples").steps)
        except UsageError:  # no recordings, or of one build
            continue
        asked += 1
    print(f"{asked} questions --since about equal builds: {alarms} name a function", flush=True)


def ask(dataset: Path, event: str = "cpu-clock") -> tuple[float, float]:
    """Seconds of the first and of repeated top-functions questions over all recordings."""
    from perfuse.fleet import Fleet
    from perfuse.fleet.questions import select_event, top_functions
    from perfuse.fleet.selecting import Recordings

    fleet, every = Fleet(dataset), Recordings()
    times = []
    for _ in range(6):
        started = time.monotonic()
        top_functions(fleet, every, select_event(fleet, every, event))
        times.append(time.monotonic() - started)
    return times[0], statistics.median(times[1:])


def multiply(source: Path, target: Path, number: int) -> None:
    """A dataset of many recordings: the rows of those of `source` again and again, with random weights."""
    import duckdb

    from perfuse.fleet import Fleet
    from perfuse.fleet.layout import TABLES

    fleet, made = Fleet(source), Fleet(target)
    made.store.create()
    delta = duckdb.connect()
    delta.execute("SELECT setseed(0.5)").fetchall()
    tables = {name: TABLES[name].arrow(fleet.rows(f"SELECT * FROM {name}")) for name in ("functions", "stacks")}
    shared = TABLES["recordings"].names
    recordings = fleet.rows(f"SELECT {', '.join(shared)} FROM recordings ORDER BY recording_id LIMIT 200")
    delta.register("r", TABLES["recordings"].arrow(recordings))
    keys = {row[shared.index("attempt_id")] for row in recordings}
    for name in ("event_totals", "function_totals"):
        names = TABLES[name].names
        own = ", ".join(f"t.{one}" for one in names if one not in ("day", "service"))
        rows = fleet.rows(
            f"SELECT {own.replace('t.attempt_id', 't.attempt_id, r.day, r.service')} FROM {name} AS t"
            " JOIN recordings AS r USING (recording_id)"
        )
        delta.register(name, TABLES[name].arrow([row for row in rows if row[1] in keys]))
    times = -(-number // len(recordings))
    copies = f"(SELECT range AS copy FROM range({times}))"
    numbered = "recording_id || copy AS recording_id, attempt_id || copy AS attempt_id"
    weights = "(self * (0.5 + random()))::BIGINT AS self, (total * (0.5 + random()))::BIGINT AS total"
    queries = {
        "event_totals": f"SELECT * EXCLUDE (copy) REPLACE ({numbered}) FROM event_totals CROSS JOIN {copies}",
        "function_totals": f"SELECT * EXCLUDE (copy) REPLACE ({numbered}, {weights}) FROM function_totals"
        f" CROSS JOIN {copies} ORDER BY event, function_hash, recording_id",
        "recordings": f"SELECT * EXCLUDE (copy) REPLACE ({numbered}, 'b' || (copy % 10) AS build,"
        f" 'h' || (copy % 500) AS host) FROM r CROSS JOIN {copies}",
    }
    import deltalake
    from arro3.core import Table as ArrowTable

    from perfuse.fleet.store import writer_properties

    for name, table in tables.items():
        deltalake.write_deltalake(made.store.table(name), table, mode="append")
    for name, query in queries.items():
        rows = ArrowTable.from_arrow(delta.sql(query))
        table = made.store.table(name)
        deltalake.write_deltalake(table, rows, mode="append", writer_properties=writer_properties())
        print(f"  {name}: {rows.num_rows:,} rows", flush=True)


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("numbers", nargs="*", type=int, default=[10, 100])
    parser.add_argument("--folder", type=Path, default=Path("/tmp/perfuse-fleet-benchmark"))
    parser.add_argument("--engine", default="inline", choices=("inline", "pool"))
    parser.add_argument(
        "--dask", type=int, metavar="N", default=0, help="Compare 1 and 2 Dask workers on N recordings."
    )
    parser.add_argument("--questions", type=int, metavar="N", default=0, help="Ask N recordings, copied as rows.")
    parser.add_argument(
        "--equal",
        type=int,
        metavar="N",
        default=0,
        help="With --mixed: compare equal builds of the largest dataset N times.",
    )
    parser.add_argument("--mixed", action="store_true", help="Many small recordings, raw and saved ones among them.")
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    if options.mixed:
        measure_mixed(options.folder, options.numbers)
        largest = options.folder / f"dataset-mixed-{max(options.numbers)}-0"
        first, repeated = ask(largest, "samples")
        print(f"top functions of all: first {first:.2f} s, then {repeated:.2f} s of a shared machine")
        find_planted(options.folder, largest)
        if options.equal:
            compare_equals(largest, options.equal)
        return
    inputs = write_copies(options.folder, max([*options.numbers, options.dask]))
    print(f"load {os.getloadavg()[0]:.1f}, {len(os.sched_getaffinity(0))} processors")
    bare = decode(inputs[:60])
    print(f"bare decoding: {1e3 * bare:.0f} ms of CPU a recording (60 recordings)")
    for number in options.numbers:
        dataset = options.folder / f"dataset-{number}"
        shutil.rmtree(dataset, ignore_errors=True)
        done = add(inputs[:number], dataset, "--engine", options.engine)
        again = add(inputs[:number], dataset, "--engine", options.engine)
        first, repeated = ask(dataset)
        size = sum(one.stat().st_size for one in dataset.rglob("*.parquet"))
        each = done["seconds"] / number
        print(
            f"{number:>6}: {1e3 * each:.0f} ms a recording ({1e3 * done['cpu'] / number:.0f} ms of CPU,"
            f" {done['cpu'] / number / bare:.2f} times bare); again {1e3 * again['seconds'] / number:.1f} ms;"
            f" top functions first {first:.2f} s, then {repeated:.3f} s; {size / number / 1e3:.1f} kB each on disk"
            f" (with old files); {done['added']} added",
            flush=True,
        )
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3
    print(f"largest process: {peak:.0f} MB")
    if options.questions:
        target = options.folder / f"questions-{options.questions}"
        shutil.rmtree(target, ignore_errors=True)
        multiply(options.folder / f"dataset-{max(options.numbers)}", target, options.questions)
        before = time.process_time()
        first, repeated = ask(target)
        cpu = (time.process_time() - before) / 6
        size = sum(one.stat().st_size for one in target.rglob("*.parquet"))
        print(
            f"{options.questions} recordings: top functions first {first:.2f} s, then {repeated:.2f} s"
            f" ({cpu:.2f} s of CPU); {size / options.questions / 1e3:.1f} kB a recording, without stacks"
        )
    if options.dask:
        seconds = []
        for workers in (1, 2):
            dataset = options.folder / f"dask-{workers}"
            shutil.rmtree(dataset, ignore_errors=True)
            done = add(inputs[: options.dask], dataset, "--dask", "local", "--workers", str(workers))
            seconds.append(done["inner"])
            print(f"Dask, {workers} workers: {done['inner']:.1f} s for {options.dask} recordings")
        print(f"two workers: {seconds[0] / seconds[1]:.2f} times one")


if __name__ == "__main__":
    main()
