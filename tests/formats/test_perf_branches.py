"""Branches and accesses to memory that processors record with samples, in crafted files, as perf 7.2 prints them."""

from __future__ import annotations

import re
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import perf_crafting as crafting
import perfuse as pf
from perf_crafting import Attribute, PerfFile

RECORDED = Path(__file__).parents[1] / "truth" / "recorded" / "perf_machine"
PID = 4242
CODE = 0x10000
COMMON = crafting.IDENTIFIER | crafting.IP | crafting.TID | crafting.TIME | crafting.CPU | crafting.PERIOD
FUNCTIONS = {"alpha": 0x10000, "beta": 0x10100, "gamma": 0x10200}
TIMES = (1_000_000, 2_000_000, 3_000_000)

HW_INDEX, COUNTERS = 1 << 17, 1 << 19


def _flags(
    *,
    wrong: bool | None = None,
    in_transaction: bool = False,
    aborted: bool = False,
    cycles: int = 0,
    kind: int = 0,
    speculation: int = 0,
    extended: int = 0,
    privilege: int = 0,
) -> int:
    """The flags of a branch, as `struct perf_branch_entry` lays them out."""
    predicted = 0 if wrong is None else 1 if wrong else 2
    word = predicted | in_transaction << 2 | aborted << 3 | cycles << 4 | kind << 20
    return word | speculation << 24 | extended << 26 | privilege << 30


STACKS = (
    (
        crafting.Branch(0x10010, 0x10100, _flags(wrong=False, cycles=7, kind=4), 0x0102),
        crafting.Branch(0x10110, 0x10014, _flags(wrong=False, cycles=11, kind=6), 0x0000),
        crafting.Branch(0x10020, 0x10008, _flags(wrong=True, cycles=200, kind=1), 0xFF01),
    ),
    (
        crafting.Branch(0x10010, 0x10100, _flags(wrong=True, cycles=9, kind=4, speculation=3), 0x0203),
        crafting.Branch(0x10130, 0x10200, _flags(wrong=False, cycles=65535, kind=5, in_transaction=True), 0x0001),
        crafting.Branch(0x10240, 0x10134, _flags(wrong=False, kind=6, aborted=True, privilege=1), 0x0010),
        crafting.Branch(0x10030, 0x10200, _flags(kind=15, extended=1), 0),
    ),
    (),
)


def branch_file() -> PerfFile:
    """Three samples with branch stacks: kinds, predictions, cycles, counters of two events."""
    kind = COMMON | crafting.BRANCH_STACK
    event = Attribute.of((0, 0), kind, ids=[7], branch_sample_type=8 | HW_INDEX | COUNTERS)
    records = [crafting.comm(event, PID, PID, "crafted"), crafting.mmap2(event, PID, "//anon", CODE, 0x1000)]
    records += [
        crafting.sample(
            event, ip=0x10018, pid=PID, tid=PID, time=time, branches=stack, hw_index=number, with_counters=True
        )
        for number, (time, stack) in enumerate(zip(TIMES, STACKS, strict=True))
    ]
    caps = [("branch_counter_nr", "2"), ("branch_counter_width", "8")]
    encoded = b"".join(
        struct.pack("<I", len(crafting.text(word))) + crafting.text(word) for pair in caps for word in pair
    )
    features = {crafting.EVENT_DESC: crafting.event_desc([(event, "cycles")]), 28: struct.pack("<I", 2) + encoded}
    return PerfFile([event], records, features)


def _data_source(
    *, op: int, level: int = 0xF, old: int = 1, snoop: int = 1, lock: int = 0, tlb: int = 1, **bits: int
) -> int:
    """The bits of `union perf_mem_data_src`."""
    word = op | old << 5 | snoop << 19 | lock << 24 | tlb << 26 | level << 33
    first = {"remote": 37, "snoopx": 38, "blocked": 40, "hops": 43}
    return word | sum(value << first[name] for name, value in bits.items())


HIT = 2
ACCESSES = (
    # address, data source, latency, instruction latency, retire latency
    (0x20010, _data_source(op=2, level=1, old=HIT | 8, snoop=2, tlb=2 | 8 | 16), 4, 9, 1),
    (0x20018, _data_source(op=2, level=1, old=HIT | 8, snoop=2, tlb=2 | 8 | 16), 6, 11, 2),
    (0x20020, _data_source(op=4, level=0xD, old=HIT | 0x80, snoop=4, lock=2, tlb=4 | 32, blocked=2), 300, 310, 0),
    (0x30000, _data_source(op=2, level=0xD, old=HIT | 0x100, snoop=16, tlb=4 | 32, remote=1, hops=2), 900, 0, 0),
    (0, 0x1E05080021, 0, 0, 0),
)


def memory_file(*, struct_weight: bool = True) -> PerfFile:
    """Five samples with accesses: levels, a remote one, a locked one, and one about which nothing is known."""
    weight = crafting.WEIGHT_STRUCT if struct_weight else crafting.WEIGHT
    kind = COMMON | crafting.ADDR | crafting.DATA_SRC | weight | crafting.PHYS_ADDR | crafting.DATA_PAGE_SIZE
    event = Attribute.of((4, 0x1CD), kind, ids=[7])
    records = [
        crafting.comm(event, PID, PID, "crafted"),
        crafting.mmap2(event, PID, "//anon", CODE, 0x1000),
        crafting.mmap2(event, PID, "/data/table.bin", 0x20000, 0x1000, prot=3),
        crafting.mmap2(event, PID, "/data/log.bin", 0x30000, 0x1000, prot=3),
    ]
    for number, (address, source, latency, instruction, retire) in enumerate(ACCESSES):
        word = latency | instruction << 32 | retire << 48 if struct_weight else latency
        fields: dict[str, Any] = {"address": address, "data_source": source, "weight": word}
        if address:
            fields |= {"physical": address << 8, "page_size": 4096}
        records.append(crafting.sample(event, ip=0x10018, pid=PID, tid=PID, time=1_000_000 * (number + 1), **fields))
    return PerfFile([event], records, {crafting.EVENT_DESC: crafting.event_desc([(event, "mem-loads")])})


@pytest.fixture(scope="module")
def symbols(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a perf map that names the functions."""
    directory = tmp_path_factory.mktemp("symbols")
    lines = [f"{start:x} 100 {name}\n" for name, start in FUNCTIONS.items()]
    (directory / f"perf-{PID}.map").write_text("".join(lines))
    return directory


@pytest.fixture(scope="module")
def branched(symbols: Path) -> pf.Profile:
    return pf.fuse(branch_file().write(symbols / "branches.perf.data"), symbol_dirs=[symbols])


@pytest.fixture(scope="module")
def accessed(symbols: Path) -> pf.Profile:
    return pf.fuse(memory_file().write(symbols / "memory.perf.data"), symbol_dirs=[symbols])


_OF_PERF = re.compile(r"0x([0-9a-f]+)/0x([0-9a-f]+)/([MP-]|N)/([X-])/([A-])/(\d+)/([A-Z_]*|-)/(\S+?)(?:/\S*)?(?=\s|$)")
_KINDS = {
    "": None,
    "-": None,
    "COND": "conditional",
    "CALL": "call",
    "IND_CALL": "indirect_call",
    "RET": "return",
    "FAULT_DATA": "data_fault",
}


def test_branches_are_those_that_perf_prints(branched: pf.Profile) -> None:
    text = (RECORDED / "branches.perf-7.2.txt").read_text()
    expected = []
    for line in text.splitlines():
        seconds, _, rest = line.strip().partition(":")
        found = _OF_PERF.findall(rest)
        for position, (start, target, prediction, transaction, abort, cycles, kind, _) in enumerate(found):
            expected.append(
                (
                    round(float(seconds) * 1e9),
                    position,
                    int(start, 16),
                    int(target, 16),
                    {"M": True, "P": False}.get(prediction),
                    transaction == "X",
                    abort == "A",
                    int(cycles) or None,
                    _KINDS[kind],
                )
            )
    assert len(expected) == 7
    rows = branched.sql("""SELECT ts_ns, position, from_address, to_address, mispredicted, in_transaction, aborted,
        cycles, kind::VARCHAR FROM branches ORDER BY ts_ns, position""").fetchall()
    assert rows == expected


def test_parts_that_perf_does_not_print(branched: pf.Profile) -> None:
    """Counters of two events of eight bits, the entry of the processor, speculation and privilege."""
    rows = branched.sql("""SELECT counters, hw_index, speculation::VARCHAR, privilege::VARCHAR
        FROM branches ORDER BY ts_ns, position""").fetchall()
    expected_counters = [[one.counters & 0xFF, one.counters >> 8] for stack in STACKS for one in stack]
    assert [row[0] for row in rows] == expected_counters
    assert [row[1] for row in rows] == [0, 0, 0, 1, 1, 1, 1]
    assert [row[2] for row in rows] == [None, None, None, "correct_path", None, None, None]
    assert [row[3] for row in rows] == [None, None, None, None, None, "user", None]


def _function(address: int) -> str | None:
    return next((name for name, start in FUNCTIONS.items() if start <= address < start + 0x100), None)


def test_report_counts_pairs_of_functions(branched: pf.Profile) -> None:
    from perfuse.analysis.branches import branch_pairs

    every = [one for stack in STACKS for one in stack]
    expected = Counter((_function(one.start), _function(one.target)) for one in every)
    wrong = Counter((_function(one.start), _function(one.target)) for one in every if one.flags & 1)
    found: Counter[tuple[str | None, str | None]] = Counter()
    found_wrong: Counter[tuple[str | None, str | None]] = Counter()
    sums = [0, 0]
    for pair in branch_pairs(branched):
        found[pair.source, pair.target] += pair.count
        if pair.mispredicted:
            found_wrong[pair.source, pair.target] += pair.mispredicted
        sums = [sums[number] + pair.counters[number] for number in (0, 1)]
    assert (found, found_wrong) == (expected, wrong)
    assert sums == [sum(one.counters & 0xFF for one in every), sum(one.counters >> 8 for one in every)]
    [first] = [one for one in branch_pairs(branched) if (one.source, one.kind) == ("alpha", "call")]
    assert (first.count, first.mispredicted, first.predicted, first.mean_cycles) == (2, 1, 1, 8.0)


def test_selected_time_limits_branches(branched: pf.Profile) -> None:
    from perfuse.analysis.branches import branch_pairs

    early = branched.between(0, 0.0005)
    assert sum(pair.count for pair in branch_pairs(early)) == len(STACKS[0])


_OF_MEMORY = re.compile(
    r"^\s*(?P<seconds>[\d.]+):\s+(?P<address>[0-9a-f]+)\s+[0-9a-f]+\s*\|OP (?P<op>[^|]*)\|LVL (?P<level>[^|]*)"
    r"\|SNP (?P<snoop>[^|]*)\|TLB (?P<tlb>[^|]*)\|LCK (?P<lock>[^|]*)\|BLK (?P<blk>.*?)"
    r"\s+(?P<weight>\d+)\s+(?P<physical>[0-9a-f]+)\s*$"
)
_LEVELS = {"L1 hit": ("L1", True, False), "RAM hit": ("RAM", True, False), "N/A": (None, None, False)}
_SNOOPS = {"None": "none", "Hit": "hit", "HitM": "hit_modified", "N/A": None}


def test_accesses_are_those_that_perf_prints(accessed: pf.Profile) -> None:
    text = (RECORDED / "memory.perf-7.2.txt").read_text()
    expected = []
    for line in text.splitlines():
        found = _OF_MEMORY.match(line)
        assert found, line
        if found["op"].strip() == "N/A":
            continue
        level = found["level"].strip()
        remote = "Remote" in level
        expected.append(
            (
                round(float(found["seconds"]) * 1e9),
                int(found["address"], 16),
                {"LOAD": "load", "STORE": "store"}[found["op"].strip()],
                "RAM" if "RAM" in level else "L1",
                "hit" in level,
                remote,
                _SNOOPS[found["snoop"].strip()],
                found["lock"].strip() == "Yes",
                "hit" in found["tlb"],
                "data" if "Data" in found["blk"] else None,
                int(found["weight"]),
                int(found["physical"], 16),
            )
        )
    assert len(expected) == 4
    rows = accessed.sql("""SELECT ts_ns, address, operation::VARCHAR, level::VARCHAR, level_hit, remote,
        snoop::VARCHAR, locked, tlb_hit, blocked::VARCHAR, latency_cycles, physical_address
        FROM memory_accesses ORDER BY 1""").fetchall()
    assert rows == expected


def test_parts_of_weights(accessed: pf.Profile, tmp_path: Path) -> None:
    columns = "latency_cycles, instruction_latency_cycles, retire_latency_cycles, page_size_bytes"
    query = f"SELECT {columns} FROM memory_accesses ORDER BY ts_ns"
    assert accessed.sql(query).fetchall() == [(*access[2:], 4096) for access in ACCESSES[:4]]
    whole = pf.fuse(memory_file(struct_weight=False).write(tmp_path / "perf.data"))
    assert whole.sql(query).fetchall() == [(access[2], None, None, 4096) for access in ACCESSES[:4]]


def test_report_sums_accesses(accessed: pf.Profile) -> None:
    from perfuse.analysis.memory_accesses import access_sums

    levels = {(one.name, one.operation): (one.count, one.latency_cycles) for one in access_sums(accessed, "level")}
    assert levels == {("L1 hit", "load"): (2, 10), ("RAM hit", "store"): (1, 300), ("RAM hit", "load"): (1, 900)}
    objects = {one.name: (one.count, one.latency_cycles, one.remote) for one in access_sums(accessed, "object")}
    assert objects == {"/data/table.bin": (3, 310, 0), "/data/log.bin": (1, 900, 1)}
    [function] = access_sums(accessed, "function")
    assert (function.name, function.count) == ("alpha", 4)


def test_addresses_of_data_are_not_code_without_a_name(accessed: pf.Profile) -> None:
    from perfuse.reports.profile import profile_report

    assert len(accessed.tables["memory_accesses"].to_arrow()) == 4
    assert [one for one in profile_report(accessed).unnamed if not one.leaf_samples] == []
