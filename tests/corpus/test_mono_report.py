"""Reports of real Mono logs, compared with mprof-report 6.8 where that is right, and with independent facts."""

import gzip
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import perfuse as pf
from perfuse.analysis.latency import CallAccount
from perfuse.analysis.selected_calls import CallCondition, selected_calls
from perfuse.reports.runtime.report import runtime_report
from perfuse.reports.runtime.sections import RuntimeRequest
from truth.mono_walk import MonoWalk

from .mono_logs import CORPUS, logs, stem, truth

SECTIONS = ("jit", "gc", "handles", "allocations", "exceptions", "locks", "threads", "calls", "counters")
HANDLES = {"weak": "weak", "weaktrack": "weak_track_resurrection", "normal": "normal"}


def mprof_text(path: Path) -> str | None:
    """The output of mprof-report for a log; None where there is none."""
    for suffix in (".txt", ".txt.gz"):
        file = CORPUS / "expected" / path.parent.name / f"{stem(path)}.default{suffix}"
        if file.is_file():
            raw = file.read_bytes()
            return (gzip.decompress(raw) if suffix == ".txt.gz" else raw).decode("utf-8", "replace")
    return None


@dataclass(frozen=True)
class Log:
    """A log with the reports of mprof-report and of perfuse."""

    path: Path
    theirs: str
    ours: dict[str, Any]

    def number(self, pattern: str) -> int:
        match = re.search(pattern, self.theirs)
        return int(match[1]) if match else 0

    @property
    def data_version(self) -> int:
        return int(self.theirs.split("Data version: ")[1].split()[0])

    @property
    def is_32bit(self) -> bool:
        return "i386" in self.path.name

    def rows(self, title: str) -> list[tuple[int, int, int, str]]:
        """Lines of a summary that are three numbers and a name."""
        if title not in self.theirs:
            return []
        found = []
        for line in self.theirs[self.theirs.index(title) :].splitlines()[2:]:
            match = re.match(r" *(\d+) +(\d+) +(\d+) (.*)$", line)
            if match is None:
                break
            found.append((int(match[1]), int(match[2]), int(match[3]), match[4]))
        return found


LOGS_WITH_MPROF_TEXT = [path for path in logs("tiny", "v17", "versions") if mprof_text(path)]


@pytest.fixture(scope="module", params=LOGS_WITH_MPROF_TEXT, ids=lambda path: f"{path.parent.name}-{stem(path)}")
def log(request: pytest.FixtureRequest) -> Log:
    path: Path = request.param
    report = runtime_report(pf.fuse(path), RuntimeRequest(sections=SECTIONS, limit=None))
    return Log(path, mprof_text(path) or "", report.as_json())


def mprof_loses_events(log: Log) -> bool:
    """Whether mprof-report loses events: in data versions 16 and 17 it reads too much after an unloaded image."""
    return log.data_version >= 16 and any(
        record.mtype == 2 for record in pf.open(log.path).records(kinds=["METADATA_END_UNLOAD"])
    )


def test_helpers(log: Log) -> None:
    jit = log.ours.get("jit") or {"num_helpers": 0, "helper_bytes": 0}
    theirs = log.number(r"JIT helpers: (\d+)"), log.number(r"JIT helpers code size: (\d+)")
    assert (jit["num_helpers"], jit["helper_bytes"]) == theirs or mprof_loses_events(log)


def test_collections(log: Log) -> None:
    gc = log.ours.get("gc") or {"num_resizes": 0, "max_heap_bytes": 0, "num_moves": 0, "generations": []}
    theirs = tuple(log.number(name + r": (\d+)") for name in ("GC resizes", "Max heap size", "Object moves"))
    found = (gc["num_resizes"], gc["max_heap_bytes"] or 0, gc["num_moves"] or 0)
    collections = {one["name"]: one["collections"] for one in gc["generations"]}
    if mprof_loses_events(log) and found != theirs:
        assert all(ours >= their for ours, their in zip(found, theirs, strict=True))
        return
    assert found == theirs
    for generation, name in enumerate(("nursery", "major")):
        match = re.search(rf"Gen{generation} collections: (\d+), max time: (\d+)us, total time: (\d+)us", log.theirs)
        printed = collections.get(name, {"count": 0, "max": 0, "sum": 0})
        assert (printed["count"], printed["max"] // 1000, printed["sum"] // 1000) == (
            tuple(map(int, match.groups())) if match else (0, 0, 0)
        )


def test_handles(log: Log) -> None:
    """mprof-report omits pinned handles, and counts live handles in file order instead of time order."""
    found = re.findall(r"GC handles (\w+): created: (\d+), destroyed: (\d+)", log.theirs)
    theirs = {HANDLES[kind]: (int(made), int(freed)) for kind, made, freed in found}
    ours = {
        one["kind"]: (one["num_created"], one["num_destroyed"])
        for one in (log.ours.get("handles") or {"kinds": []})["kinds"]
        if one["kind"] != "pinned"
    }
    assert ours == theirs or mprof_loses_events(log)


def test_allocations(log: Log) -> None:
    """mprof-report has no class where the class event follows the allocation, and a wrong one for reused addresses."""
    ours = log.ours.get("allocations") or {"count": 0, "bytes": 0, "by_type": []}
    match = re.search(r"Total memory allocated: (\d+) bytes in (\d+) objects", log.theirs)
    theirs = (int(match[2]), int(match[1])) if match else (0, 0)
    if mprof_loses_events(log):
        assert (ours["count"], ours["bytes"]) >= theirs
        return
    assert (ours["count"], ours["bytes"]) == theirs
    by_type: dict[str, list[int]] = {}
    for size, count, _, name in log.rows("Allocation summary"):
        known = by_type.setdefault(name, [0, 0])
        known[0] += count
        known[1] += size
    if not any(name.startswith("unresolved") for name in by_type):
        assert {one["name"]: [one["count"], one["bytes"]] for one in ours["by_type"]} == by_type


def test_exceptions(log: Log) -> None:
    ours = log.ours.get("exceptions") or {"count": 0, "clauses": {}}
    theirs = {kind: log.number(rf"Executed {kind} clauses: (\d+)") for kind in ("catch", "filter", "finally", "fault")}
    found = {kind: ours["clauses"].get(kind, 0) for kind in theirs}
    if mprof_loses_events(log):
        assert all(found[kind] >= count for kind, count in theirs.items())
    else:
        assert (ours["count"], found) == (log.number(r"Throws: (\d+)"), theirs)


def test_locks(log: Log) -> None:
    """For data version 13 mprof-report never sets the kind of lock event."""
    ours = log.ours.get("locks") or {"num_contentions": 0, "num_acquired": 0, "num_failed": 0}
    theirs = tuple(log.number(rf"Lock {what}: (\d+)") for what in ("contentions", "acquired", "failures"))
    found = (ours["num_contentions"], ours["num_acquired"], ours["num_failed"])
    assert found == theirs or (log.data_version == 13 and theirs == (0, 0, 0)) or mprof_loses_events(log)
    waits = re.findall(r"([\d.]+) secs total wait time, ([\d.]+) max", log.theirs)
    if waits and found == theirs:
        assert ours["waits"]["sum"] / 1e9 == pytest.approx(sum(float(total) for total, _ in waits), abs=2e-6)
        assert ours["waits"]["max"] / 1e9 == pytest.approx(max(float(most) for _, most in waits), abs=2e-6)


def test_threads(log: Log) -> None:
    """mprof-report shows the last name of an id, and writes 32-bit ids as signed numbers."""
    mask = 0xFFFF_FFFF if log.is_32bit else 2**64 - 1
    names: dict[int, set[str]] = {}
    for one in log.ours["threads"]:
        names.setdefault(int(one["native_address"], 16), set()).update(one["names"])
    for thread, name in re.findall(r'\tThread: 0x([0-9a-f]+), name: "(.*)"', log.theirs):
        assert name in names[int(thread, 16) & mask] or not name


def test_calls(log: Log) -> None:
    """Its list of methods ends below one millisecond, so it lists only some calls of methods that share a name."""
    ours = log.ours.get("calls") or {"totals": {"num_calls": 0}, "functions": []}
    assert ours["totals"]["num_calls"] == log.number(r"Total calls: (\d+)") or log.is_32bit
    counts = {one["name"]: one["num_calls"] for one in ours["functions"]}
    assert len(counts) == len(ours["functions"])
    theirs = Counter[str]()
    for _, _, count, name in log.rows("Method call summary"):
        theirs[name] += count
    assert all(counts.get(name, 0) >= count or name.startswith("unknown method") for name, count in theirs.items())


def test_methods_of_a_name_are_one() -> None:
    """The runtime makes some wrappers several times. No report has the address that distinguishes them: one row has
    the calls of all, as an independent reader counts them, in one log and in two.
    """
    paths = [CORPUS / "tiny" / f"{name}-calls.mlpd" for name in ("v14", "v17")]
    if not all(path.is_file() for path in paths):
        pytest.skip(f"no {paths[0]}")
    entered = [Counter(call.name for call in MonoWalk(path).calls()) for path in paths]
    for given, expected in ((paths[:1], entered[0]), (paths[1:], entered[1]), (paths, entered[0] + entered[1])):
        with pf.fuse(*given) as profile:
            rows = CallAccount(profile).functions()
            selected = selected_calls(profile, CallCondition())
        found = {one.function.name: one.latency.num_calls for one in rows}
        assert len(found) == len(rows)
        assert found == expected
        assert {one.name for one in selected} <= found.keys()
        assert len({one.name for one in selected}) == len(selected)


def test_facts(log: Log) -> None:
    """The report agrees with the independent facts."""
    facts = truth(log.path)
    if not facts:
        return
    allocations = log.ours.get("allocations") or {"count": 0, "bytes": 0}
    assert (allocations["count"], allocations["bytes"]) == (
        facts["allocations"]["total_count"],
        facts["allocations"]["total_bytes"],
    )
    pauses = facts["gc"]["world_stopped_ns"]
    gc = log.ours.get("gc") or {"pauses": {"count": 0, "sum": 0, "max": 0}}
    assert (gc["pauses"]["count"], gc["pauses"]["sum"], gc["pauses"]["max"]) == (
        len(pauses),
        sum(pauses),
        max(pauses, default=0),
    )
    assert (log.ours.get("exceptions") or {"count": 0})["count"] == facts["throws"]
    assert (log.ours.get("calls") or {"totals": {"num_calls": 0}})["totals"]["num_calls"] == facts["calls"]["enter"]
