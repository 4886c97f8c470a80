"""`diff` of a recording with a copy in which known samples or calls are missing or are those of another function."""

import shutil
import struct
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mlpd_events import buffer_starts, read_events

from . import outside
from .command import json_of
from .kinds import Kind
from .walks import places

Row = dict[str, Any]


def changed(difference: dict[str, Any], statistic: str = "self") -> list[dict[str, int]]:
    """The values of the functions of which a statistic differs."""
    rows = [one[statistic] for one in difference["functions"]]
    return [row for row in rows if row["new"] != row["base"]]


def increase(row: dict[str, int]) -> int:
    """By how much the second number is larger."""
    return row["new"] - row["base"]


def without(data: bytes, removed: list[tuple[int, int]]) -> bytes:
    """A copy of a perf.data without some records: what follows them moves, and the header states where it is."""
    out, at = bytearray(), 0
    for start, end in removed:
        out += data[at:start]
        at = end
    out += data[at:]
    size = sum(end - start for start, end in removed)
    (data_at, data_size) = struct.unpack_from("<QQ", data, 40)
    struct.pack_into("<Q", out, 48, data_size - size)
    num_features = sum(bin(word).count("1") for word in struct.unpack_from("<4Q", data, 72))
    table = data_at + data_size - size
    for number in range(num_features):
        place = table + 16 * number
        (offset,) = struct.unpack_from("<Q", out, place)
        struct.pack_into("<Q", out, place, offset - size)
    return bytes(out)


def copied(kind: Kind, folder: Path, replaced: dict[int, bytes]) -> Path:
    """A directory with the files of an example, some with other contents, under names that perfuse looks for."""
    folder.mkdir()
    for file, (path, of) in enumerate(zip(kind.paths, kind.formats, strict=True)):
        data = replaced.get(file, outside.read(path))
        name = path.name.removesuffix(".gz")
        if of == "jitdump":
            name = f"jit-{struct.unpack_from('<I', data, 20)[0]}.dump"
        (folder / name).write_bytes(data)
    if kind.map:
        shutil.copy(kind.map_options[1], folder)
    return folder


@pytest.mark.truth(
    recording="perf_*",
    path="diff",
    source="periods of the samples that the copy lacks: a walk over the structures of the perf.data",
)
def test_samples_that_are_missing(kind: Kind, tmp_path: Path) -> None:
    data = outside.read(kind.paths[0])
    samples = outside.perf_data(kind.paths[0]).samples
    found = [one for one in places("perf_data", data) if one.kind == 9]
    # Every second sample of the address that most samples are at, hence of one function.
    ((address, _),) = Counter(one.ip for one in samples).most_common(1)
    numbers = [number for number, one in enumerate(samples) if one.ip == address][::2]
    removed = [samples[number] for number in numbers]
    periods = sum(one.period for one in removed)
    before = copied(kind, tmp_path / "before", {})
    rest = without(data, [(found[number].offset, found[number].end) for number in numbers])
    after = copied(kind, tmp_path / "after", {0: rest})

    difference = json_of("diff", before, after, "--event", "cpu-clock")
    assert (difference["base"]["num_counted"], difference["new"]["num_counted"]) == (
        len(samples),
        len(samples) - len(removed),
    )
    assert difference["base"]["self"] - difference["new"]["self"] == periods
    (row,) = [one for one in difference["functions"] if increase(one["self"])]
    assert increase(row["self"]) == -periods
    assert increase(row["count"]) == -len(removed)
    assert row["self"]["change"] == pytest.approx(-periods / row["self"]["base"])
    assert row["verdict"] == "unclear"


def fdr_functions(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Offset, kind and function of the records of an XRay log of FDR or Basic mode; -1 and 0 for other records."""
    is_fdr = data[2] == 1
    for one in places("xray", data):
        if is_fdr:
            (word,) = struct.unpack_from("<I", data, one.offset)
            yield (one.offset, -1, 0) if word & 1 else (one.offset, word >> 1 & 7, word >> 4)
        else:
            record, _, kind, function = struct.unpack_from("<HBBi", data, one.offset)
            yield one.offset, kind if record == 0 else -1, function


def with_other_functions(data: bytes) -> bytes:
    """A copy of a log in which every second call without callees of one function is one of another function."""
    rows = list(fdr_functions(data))
    leaves = defaultdict(list)
    for first, second in pairwise(rows):
        if (first[1], second[1]) == (0, 1) and first[2] == second[2]:
            leaves[first[2]].append((first[0], second[0]))
    function = max(leaves, key=lambda one: len(leaves[one]))
    other = next(one for _, kind, one in rows if kind == 0 and one != function)
    out = bytearray(data)
    for offset in (offset for pair in leaves[function][::2] for offset in pair):
        if data[2] == 1:
            (word,) = struct.unpack_from("<I", data, offset)
            struct.pack_into("<I", out, offset, word & 0xF | other << 4)
        else:
            struct.pack_into("<i", out, offset + 4, other)
    return bytes(out)


def calls_of(log: outside.CallLog) -> dict[int, tuple[int, float]]:
    """Number of calls and self time in nanoseconds by function."""
    counts, ticks = Counter[int](), Counter[int]()
    for calls in log.calls.values():
        for one in calls:
            counts[one.function] += 1
            ticks[one.function] += one.end - one.start
            if one.caller is not None:
                ticks[calls[one.caller].function] -= one.end - one.start
    return {function: (count, ticks[function] * 1e9 / log.hz) for function, count in counts.items()}


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects", "perf_xray"],
    path="diff",
    source="calls and self times by function: a walk over the records of both logs that pairs entries and exits",
)
def test_calls_of_another_function(kind: Kind, tmp_path: Path) -> None:
    file = kind.formats.index("xray")
    log = with_other_functions(outside.read(kind.paths[file]))
    before, after = copied(kind, tmp_path / "before", {}), copied(kind, tmp_path / "after", {file: log})
    (changed_log,) = [path for path in after.iterdir() if path.read_bytes() == log]
    a, b = calls_of(outside.call_log(kind.paths[file])), calls_of(outside.call_log(changed_log))

    difference = json_of("diff", before, after)
    expected = sorted((a[one][0], b.get(one, (0, 0))[0]) for one in a if a[one] != b.get(one))
    assert len(expected) == 2
    assert sorted((row["base"], row["new"]) for row in changed(difference, "count")) == expected
    rows = sorted(changed(difference), key=lambda row: row["base"])
    times = sorted((a[one][1], b.get(one, (0, 0.0))[1]) for one in a if a[one] != b.get(one))
    for row, (first, second) in zip(rows, times, strict=True):
        assert row["base"] == pytest.approx(first, rel=3e-3, abs=len(a))
        assert row["new"] == pytest.approx(second, rel=3e-3, abs=len(a))
    assert difference["num_functions"]["same"] == len(a) - 2


@pytest.mark.truth(recording="collapsed", path="diff", source="the lines by hand")
def test_counts_that_differ(kind: Kind, tmp_path: Path) -> None:
    text = kind.paths[0].read_text(encoding="utf-8")
    (tmp_path / "after.folded").write_text(text.replace("main;parse 30", "main;parse 41"), encoding="utf-8")
    difference = json_of("diff", kind.paths[0], tmp_path / "after.folded")
    listed = [one for one in difference["functions"] if one["verdict"] != "same"]
    assert {one["name"]: increase(one["self"]) for one in listed} == {"parse": 11, "main": 0}
    assert {one["name"]: increase(one["count"]) for one in listed} == {"parse": 11, "main": 11}


SAMPLE_HIT, METHOD_ENTER, METHOD_JIT = 0x07, 0x23, 0x43


def shortened(data: bytes, kind: int) -> bytes:
    """A log that ends after half of its events of a kind, with a last buffer of that size."""
    ends = [one.end for one in places("mono", data) if one.kind == kind]
    end = ends[len(ends) // 2]
    start = max(one for one in buffer_starts(data) if one < end)
    out = bytearray(data[:end])
    struct.pack_into("<I", out, start - 44, end - start)
    return bytes(out)


@pytest.mark.truth(
    recording=["mono_samples", "mono_calls"],
    path="diff",
    source="samples, and calls by method, of both logs: another decoder",
)
def test_events_after_the_end_of_a_shorter_log(kind: Kind, tmp_path: Path) -> None:
    path, shorter = kind.paths[0], tmp_path / kind.paths[0].name
    event = SAMPLE_HIT if kind.name == "mono_samples" else METHOD_ENTER
    shorter.write_bytes(shortened(path.read_bytes(), event))
    a, b = ([one.values for one in read_events(log) if one.byte == event] for log in (path, shorter))
    assert 0 < len(b) < len(a)
    difference = json_of("diff", path, shorter)
    assert (difference["base"]["num_counted"], difference["new"]["num_counted"]) == (len(a), len(b))
    if event == SAMPLE_HIT:
        assert (difference["base"]["self"], difference["new"]["self"]) == (len(a), len(b))
        assert sum(map(increase, changed(difference))) == len(b) - len(a)
    else:
        # Methods of one name are one.
        names = {one.values[0]: one.values[3] for one in read_events(path) if one.byte == METHOD_JIT}
        before, after = (Counter(names.get(method, method) for (method,) in values) for values in (a, b))
        rows = sorted((row["base"], row["new"]) for row in changed(difference, "count"))
        assert rows == sorted((before[one], after[one]) for one in before if before[one] != after[one])
