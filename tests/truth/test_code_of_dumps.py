"""JIT code in exports, facts and reports, compared with walks over the dumps and recordings (`outside.py`).

Which code a sample ran in is determined here: the last load before the sample whose bytes contain its address.
"""

from __future__ import annotations

import re
import struct
import subprocess
from collections import Counter, defaultdict
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from needs import need
from perfuse.profile import Profile

from .command import json_of, run
from .kinds import KINDS, Kind
from .outside import Load, jitdump, outside, perf_data, read

FUNCTIONS = {
    "perf_node": r"JS:|RegExp:",
    "perf_cpython": r"py::",
    "perf_openjdk": r"L[^;]*;",
    "perf_llvm": r"",
    "perf_jsc": r"JSC-(LLInt|Baseline|DFG|FTL): ",
    "perf_erlang": r"\S+:.*/\d+$",
    "perf_postgres": r"",
    "perf_stacks": r"py::",
    "jitdump": r"L[^;]*;",
}
"""How the producer names compiled functions; all else that it writes is stubs, handlers and adapters of its own."""


def loads_of(name: str) -> list[Load]:
    """The loads of a kind's dump."""
    return jitdump(KINDS[name].paths[-1]).loads


def one_line(name: str) -> str:
    """A name without line breaks and runs of spaces, which symbol tables and maps do not have."""
    return " ".join(name.split())


def symbols(elf: Path) -> Counter[tuple[str, bytes]]:
    """Functions of an ELF file with their machine code, as pyelftools reads it."""
    found = Counter[tuple[str, bytes]]()
    image = elf.read_bytes()
    with elf.open("rb") as file:
        table = ELFFile(file)
        sections = list(table.iter_sections())
        for symbol in table.get_section_by_name(".symtab").iter_symbols():
            if symbol["st_info"]["type"] == "STT_FUNC":
                section = sections[symbol["st_shndx"]]
                at = symbol["st_value"] - section["sh_addr"] + section["sh_offset"]
                found[one_line(symbol.name), image[at : at + symbol["st_size"]]] += 1
    return found


@pytest.mark.truth(
    recording=["perf_[!dmx]*", "jitdump"],
    path=["convert:elf", "api:Profile.images"],
    source="names and code of the dump's loads by a walk over it; pyelftools",
)
def test_an_elf_file_has_the_code_of_every_load(kind: Kind, profile: Profile, path: str, tmp_path: Path) -> None:
    loads = loads_of(kind.name)
    (pid,) = {load.pid for load in loads}
    elf = tmp_path / "jit.elf"
    if path == "convert:elf":
        profile.export(elf, to="elf")
    else:
        assert profile.images.pids() == [pid]
        with elf.open("xb") as file:
            (image,) = profile.images.write({pid: file}).images
        assert (image.pid, image.num_functions, image.size_bytes) == (pid, len(loads), elf.stat().st_size)
    assert symbols(elf) == Counter((one_line(load.name), load.code) for load in loads)


PAGE = 4096


def perf_map(loads: list[Load]) -> list[str]:
    """Lines of a map: code over which none of the newer code in the map lies, by painting bytes."""
    pages: dict[int, bytearray] = defaultdict(lambda: bytearray(PAGE))
    found = []
    for load in sorted(loads, key=lambda one: one.time_ns, reverse=True):
        spans = []
        at, end = load.address, load.address + load.size
        while at < end:
            stop = min(end, (at // PAGE + 1) * PAGE)
            spans.append((pages[at // PAGE], slice(at % PAGE, at % PAGE + stop - at)))
            at = stop
        if load.size and not any(any(page[span]) for page, span in spans):
            for page, span in spans:
                page[span] = b"\1" * len(page[span])
            found.append((load.address, f"{load.address:x} {load.size:x} {' '.join(load.name.splitlines())}"))
    return [line for _, line in sorted(found)]


@pytest.mark.truth(
    recording=["perf_[!dmx]*", "jitdump"],
    path="convert:perf-map",
    source="addresses, sizes and names of the dump's loads by a walk over it",
)
def test_a_perf_map_has_the_code_that_was_not_overwritten(kind: Kind, profile: Profile, tmp_path: Path) -> None:
    loads = loads_of(kind.name)
    profile.export(tmp_path / "perf-1.map", to="perf-map")
    lines = (tmp_path / "perf-1.map").read_text(encoding="utf-8").splitlines()
    assert lines == perf_map(loads)
    ranges = [[int(number, 16) for number in line.split(" ")[:2]] for line in lines]
    assert all(start + size <= following for (start, size), (following, _) in pairwise(ranges))


@pytest.mark.truth(
    recording=["perf_[!dmx]*", "jitdump"],
    path="assert:code",
    source="loads of the dump by a walk over it, by their producer's names for functions",
)
def test_facts_of_code(kind: Kind) -> None:
    loads = [load for load in loads_of(kind.name) if re.match(FUNCTIONS[kind.name], load.name)]
    count, size = len(loads), sum(load.size for load in loads)
    assert count > 0
    true = ["--assert", f"code.count == {count}", "--assert", f"code.bytes == {size}"]
    assert run("report", *kind.paths, *true).returncode == 0
    false = run("report", *kind.paths, "--assert", f"code.bytes < {size}")
    assert false.returncode == 1
    assert f"{size:,}" in false.stdout + false.stderr or str(size) in false.stdout + false.stderr


@pytest.mark.truth(
    recording=["perf_*", "collapsed", "mono_samples"],
    path="assert:samples",
    source="samples by a walk over the recording; an independent two-pass reader of Mono logs (corpus, truth.json)",
)
def test_facts_of_samples(kind: Kind) -> None:
    weights = outside(kind.name).weights.values()
    # A line of collapsed stacks counts samples.
    counted = (one.total if kind.name == "collapsed" else one.num_samples for one in weights)
    num = sum(one for one in counted if one is not None)
    assert num > 0
    files = [*kind.paths, *kind.map_options]
    assert run("report", *files, "--assert", f"samples.count == {num}").returncode == 0
    assert run("report", *files, "--assert", f"samples.count > {num}").returncode == 1


@pytest.mark.truth(
    recording="perf_[!dmx]*",
    path="convert:perf-data",
    source="walks over the dump, the recording and the converted file; pyelftools; perf script reads each sample",
)
def test_a_perf_data_maps_the_code_of_every_load(kind: Kind, profile: Profile, tmp_path: Path) -> None:
    """A mapping for each load that was not overwritten at its own time, at its address; samples are unchanged."""
    need("perf")
    written = tmp_path / "out.perf.data"
    profile.export(written)
    (elf,) = tmp_path.glob("out.perf.data.jit-*.elf")
    image = elf.read_bytes()
    pids = {load.pid for load in loads_of(kind.name)}
    mapped = Counter[tuple[int, int, bytes]]()
    for time_ns, pid, address, length, offset, name in mappings(written):
        if name == str(elf):
            assert pid in pids
            mapped[time_ns, address, image[offset : offset + length]] += 1
    assert mapped == Counter((load.time_ns, load.address, load.code) for load in loads_of(kind.name) if load.size)
    assert perf_data(written).samples == sorted(perf_data(kind.paths[0]).samples, key=lambda one: one.time_ns)
    script = ["perf", "script", "--no-inline", "-i", written, "-F", "tid,time", "--ns", "-G"]
    printed = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    times = Counter((int(tid), int(seconds + nanos)) for tid, seconds, nanos in re.findall(_SCRIPT_LINE, printed))
    assert times == Counter((sample.tid, sample.time_ns) for sample in perf_data(kind.paths[0]).samples)


_SCRIPT_LINE = re.compile(r"^\s*(\d+) +(\d+)\.(\d{9}):", re.MULTILINE)


def mappings(path: Path) -> list[tuple[int, int, int, int, int, str]]:
    """Time, pid, address, size, offset in its file and name of each MMAP2 record."""
    data = read(path)
    attrs_at, _, at, size = struct.unpack_from("<4Q", data, 24)
    (sample_type,) = struct.unpack_from("<Q", data, attrs_at + 24)
    after_time = 8 + 8 * sum(bool(sample_type & bit) for bit in (64, 512, 128, 1 << 16))
    found, end = [], at + size
    while at < end:
        kind, _, record_size = struct.unpack_from("<IHH", data, at)
        if kind == MMAP2:
            pid, _, address, length, offset = struct.unpack_from("<IIQQQ", data, at + 8)
            name = data[at + 72 : at + record_size].partition(b"\0")[0].decode()
            (time_ns,) = struct.unpack_from("<Q", data, at + record_size - after_time)
            found.append((time_ns, pid, address, length, offset, name))
        at += record_size
    return found


KERNEL = 1 << 63
MMAP, COMM, FORK, MMAP2 = 1, 3, 7, 10
EXEC, DATA = 1 << 13, 1 << 13
"""`misc` of a COMM after exec and of a mapping that is not executable."""


@cache
def leaf_modules(path: Path) -> list[str | None]:
    """For each sample, in time order, the file mapped at its address; None in the kernel and where nothing is mapped.

    A walk over MMAP, MMAP2, FORK and COMM records, ordered by the time at the end of each.
    """
    data = read(path)
    attrs_at, _, begin, size = struct.unpack_from("<4Q", data, 24)
    (sample_type,) = struct.unpack_from("<Q", data, attrs_at + 24)
    # TIME is followed by ID, STREAM_ID, CPU and IDENTIFIER.
    after_time = 8 + 8 * sum(bool(sample_type & bit) for bit in (64, 512, 128, 1 << 16))
    events: list[tuple[int, int, int, tuple]] = []
    at, end = begin, begin + size
    while at < end:
        kind, misc, record_size = struct.unpack_from("<IHH", data, at)
        if kind in (MMAP, MMAP2, COMM, FORK):
            (time_ns,) = struct.unpack_from("<Q", data, at + record_size - after_time)
            pid, other, address, length = struct.unpack_from("<IIQQ", data, at + 8)
            if kind in (MMAP, MMAP2) and not misc & DATA:
                name = data[at + (40 if kind == MMAP else 72) : at + record_size].partition(b"\0")[0].decode()
                events.append((time_ns, len(events), kind, (pid, address, length, name)))
            elif kind == FORK or (kind == COMM and misc & EXEC):
                events.append((time_ns, len(events), kind, (pid, other)))
        at += record_size
    for sample in perf_data(path).samples:
        events.append((sample.time_ns, len(events), 9, (sample.pid, sample.ip)))
    maps: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
    found: list[str | None] = []
    for _, _, kind, fields in sorted(events):
        if kind in (MMAP, MMAP2):
            pid, address, length, name = fields
            maps[pid].append((address, address + length, name))
        elif kind == FORK and fields[0] != fields[1]:
            maps[fields[0]] = list(maps[fields[1]])
        elif kind == COMM:
            maps[fields[0]] = []
        elif kind == 9:
            pid, ip = fields
            newest = (name for start, stop, name in reversed(maps[pid]) if start <= ip < stop)
            found.append(next(newest, None) if ip < KERNEL else None)
    return found


def code_of(kind: Kind) -> list[Load | None]:
    """For each sample, in time order, the load that it ran in."""
    if len(kind.paths) == 1:
        return [None] * len(perf_data(kind.paths[0]).samples)
    loads = sorted(loads_of(kind.name), key=lambda one: one.time_ns)
    found: list[Load | None] = []
    for sample in sorted(perf_data(kind.paths[0]).samples, key=lambda one: one.time_ns):
        matching = (
            load
            for load in reversed(loads)
            if load.pid == sample.pid
            and load.time_ns <= sample.time_ns
            and load.address <= sample.ip < load.address + load.size
        )
        found.append(next(matching, None))
    return found


SHOWN = {
    "perf_node": r"(?:JS:[~^+*']*|\w+:)(\S*)",
    "perf_jsc": r"\S+ (.*?)(?:#\w+)?$",
}
"""The part of the producer's name that is the name of the function."""


@pytest.mark.truth(
    recording=[
        "perf_data",
        "perf_node",
        "perf_cpython",
        "perf_llvm",
        "perf_jsc",
        "perf_erlang",
        "perf_postgres",
        "perf_stacks",
    ],
    path=["report", "report:profile"],
    source="walks over both files: samples by thread, by mapped file and by JIT function, joined by time and address",
)
def test_a_report_counts_samples_by_thread_file_and_jit_function(kind: Kind) -> None:
    samples = sorted(perf_data(kind.paths[0]).samples, key=lambda one: one.time_ns)
    code = code_of(kind)
    report = json_of("report", *kind.paths, "--limit", "0")
    assert [(one["samples"], one["weight"]) for one in report["events"]] == [
        (len(samples), sum(one.period for one in samples))
    ]
    assert report["start_ns"] == samples[0].time_ns
    assert report["duration_ns"] == samples[-1].time_ns - samples[0].time_ns
    by_thread = Counter({int(one["name"].rsplit(" ", 1)[1]): one["samples"] for one in report["threads"]})
    assert by_thread == Counter(one.tid for one in samples)
    modules = Counter[tuple[str, str]]()
    for one in report["modules"]:
        if one["kind"] == "native":
            modules["native", one["name"]] += one["samples"]
        else:
            modules[one["kind"], ""] += one["samples"]
    expected = Counter[tuple[str, str]]()
    for sample, load, module in zip(samples, code, leaf_modules(kind.paths[0]), strict=True):
        if load is not None:
            expected["jit", ""] += 1
        elif sample.ip >= KERNEL:
            expected["kernel", ""] += 1
        elif module is None or module.startswith(("//anon", "[heap]", "[stack]")):
            expected["unknown", ""] += 1
        else:
            expected["native", module] += 1
    assert modules == expected
    functions = Counter[str]()
    for one in report["top_self"]:
        if one["kind"] == "jit":
            functions[one["name"]] += one["samples"]
    named = Counter[str]()
    for load in code:
        if load is not None:
            match = re.match(SHOWN.get(kind.name, "(.*)"), load.name)
            named[(match[1] if match else load.name) or "(anonymous)"] += 1
    assert functions == named


@pytest.mark.truth(recording="collapsed", path=["report", "report:profile"], source="the counts of the lines, by hand")
def test_a_report_of_collapsed_stacks(kind: Kind) -> None:
    report = json_of("report", *kind.paths, "--limit", "0")
    assert {one["name"]: one["samples"] for one in report["top_self"]} == {
        "eval": 200,
        "lex": 120 + 50,
        "collect": 93,
        "parse": 30,
        "run": 7,
    }
    assert {one["name"]: one["total_weight"] for one in report["top_total"]} == {
        "main": 120 + 30 + 50 + 200 + 7,
        "run": 50 + 200 + 7,
        "eval": 50 + 200,
        "lex": 120 + 50,
        "parse": 120 + 30,
        "worker": 93,
        "collect": 93,
    }
    assert [(one["samples"], one["weight"]) for one in report["events"]] == [(500, 500)]
