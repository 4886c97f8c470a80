"""`perfuse records`: any record is found, with the fields of an independent decoder, wherever it is in the file."""

import gzip
import io
import json
import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import Perfuse

import perfuse as pf
from perfuse.errors import UsageError
from perfuse.reports.json_text import json_text

HEADER = struct.Struct("<HHIQ16x")
FUNCTIONS = 5_000
ACTIONS = ("Entry", "Exit", "Tail_Exit", "Entry_Args")


def log_of_three_buffers() -> bytes:
    """An XRay log of version 5, assembled by hand: three buffers with function records, an event, and arguments."""
    made = random.Random(7)
    data = bytearray(HEADER.pack(5, 1, 3, 1_000_000_000))
    for buffer in range(3):
        body = bytearray(struct.pack("<Bi11x", 0 << 1 | 1, 100 + buffer))
        body += struct.pack("<Bqi3x", 4 << 1 | 1, 1_000 + buffer, 5)
        body += struct.pack("<Bi11x", 9 << 1 | 1, 77)
        body += struct.pack("<BHQ5x", 2 << 1 | 1, 1, 10**9 * (buffer + 1))
        for number in range(FUNCTIONS):
            action = made.randrange(4)
            body += struct.pack("<II", made.randrange(1, 1000) << 4 | action << 1, made.randrange(500))
            if action == 3:
                body += struct.pack("<BQ7x", 6 << 1 | 1, made.randrange(1 << 60))
            if number == FUNCTIONS // 2:
                body += struct.pack("<Bii7x", 5 << 1 | 1, 6, 9) + b"middle"
        data += struct.pack("<BQ7x", 7 << 1 | 1, len(body)) + body
    return bytes(data)


def walk(data: bytes) -> Iterator[dict[str, Any]]:
    """The records of that log, by their bytes."""
    at, index = HEADER.size, 0
    while at < len(data):
        size, timestamp, fields = 8, None, {}
        word, delta = struct.unpack_from("<II", data, at)
        if data[at] & 1:
            size, kind = 16, data[at] >> 1
            if kind == 0:
                name, fields = "NewBuffer", {"tid": struct.unpack_from("<i", data, at + 1)[0]}
            elif kind == 2:
                name = "NewCPUId"
                cpu, timestamp = struct.unpack_from("<HQ", data, at + 1)
                fields = {"cpu_id": cpu, "absolute_tsc": timestamp}
            elif kind == 4:
                name = "WallTimeMarker"
                fields = dict(zip(("seconds", "microseconds"), struct.unpack_from("<qi", data, at + 1), strict=True))
            elif kind == 5:
                name = "CustomEventMarker"
                length, since = struct.unpack_from("<ii", data, at + 1)
                fields = {"event_size": length, "tsc_delta": since, "event": data[at + 16 : at + 16 + length].decode()}
                size += length
            elif kind == 6:
                name, fields = "CallArgument", {"argument": hex(struct.unpack_from("<Q", data, at + 1)[0])}
            elif kind == 7:
                name, fields = "BufferExtents", {"size": struct.unpack_from("<Q", data, at + 1)[0]}
            else:
                assert kind == 9
                name, fields = "Pid", {"pid": struct.unpack_from("<i", data, at + 1)[0]}
        else:
            name, fields = ACTIONS[word >> 1 & 7], {"function_id": word >> 4, "tsc_delta": delta}
        yield {"index": index, "offset": at, "size": size, "name": name, "timestamp": timestamp, "fields": fields}
        at, index = at + size, index + 1


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("records") / "xray-log.hand.made"
    path.write_bytes(log_of_three_buffers())
    return path


@pytest.fixture(scope="module")
def expected(log: Path) -> list[dict[str, Any]]:
    return list(walk(log.read_bytes()))


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.truth(recording="xray_fdr", path="records", source="struct walk of a log assembled by hand")
def test_every_record_is_that_of_a_walk_over_the_bytes(
    perfuse: Perfuse, log: Path, expected: list[dict[str, Any]]
) -> None:
    done = perfuse("records", "--json", str(log))
    assert rows(done.out) == expected
    assert perfuse("info", "--json", str(log)).out.count('"Entry"') == 1


@pytest.mark.truth(recording="xray_fdr", path="records", source="struct walk of a log assembled by hand")
def test_a_range_begins_at_any_record(perfuse: Perfuse, log: Path, expected: list[dict[str, Any]]) -> None:
    """At the ends of buffers, in their middle, at an event, past the end; by index, by offset, between two records."""
    starts = [at for at, record in enumerate(expected) if record["name"] in ("BufferExtents", "CustomEventMarker")]
    for start in [0, 1, 4999, *starts, *(at - 1 for at in starts if at), *(at + 1 for at in starts), len(expected) - 2]:
        by_index = perfuse("records", "--json", str(log), "--range", f"{start}..{start + 3}")
        assert rows(by_index.out) == expected[start : start + 3], start
        offset = expected[start]["offset"]
        by_offset = perfuse("records", "--json", str(log), "--range", f"{offset:#x}..{offset + 30:#x}")
        assert rows(by_offset.out) == [r for r in expected if offset <= r["offset"] < offset + 30], start
        between = perfuse("records", "--json", str(log), "--range", f"{offset + 3:#x}..", "--limit", "1")
        assert rows(between.out) == expected[start + 1 : start + 2], start
    past = perfuse("records", str(log), "--range", f"{len(expected)}..")
    assert past.out == ""
    assert "no record" in past.err


@pytest.mark.truth(recording="xray_fdr", path="records", source="struct walk of a log assembled by hand")
def test_the_records_left_are_counted(perfuse: Perfuse, log: Path, expected: list[dict[str, Any]]) -> None:
    done = perfuse("records", str(log), "--range", "100..9000", "--limit", "5")
    assert done.out.splitlines()[-1] == "… 8,895 more records (--limit 0 shows all)"
    half = expected[len(expected) // 2]["offset"]
    arguments = [r for r in expected if r["name"] == "CallArgument" and r["offset"] >= half]
    done = perfuse("records", "--json", str(log), "--kind", "CallArgument", "--range", f"{half:#x}..", "--limit", "7")
    assert rows(done.out) == arguments[:7]
    assert f"{len(arguments) - 7:,} more records" in done.err


PATTERNS = [
    "jitdump/produced/*.dump",
    "jitdump/produced/*.perf.data",
    "mono/v17/*.mlpd",
    "xray/basic/*",
    "xray/profiling/*",
    "xray/fdr-old/*",
    "sframe/v[123]/*/*",
]


def smallest_of_each_kind(corpus: Path) -> list[Path]:
    """The two smallest files of each kind that have thirty records or more, but not many."""
    chosen = []
    for pattern in PATTERNS:
        found = []
        for path in sorted(corpus.glob(pattern), key=lambda path: path.stat().st_size):
            try:
                num_records = sum(pf.open(path).summary.records.values())
            except pf.UnreadableInput:
                continue
            if 30 <= num_records <= 4000 and len(found) < 2:
                found.append(path)
        assert found, pattern
        chosen += found
    return chosen


def test_ranges_of_every_format_are_parts_of_all_records(xray_corpus: Path) -> None:
    """A record is the same whether all before it are read or none; JSON, text, typed records have the same fields."""
    files = smallest_of_each_kind(xray_corpus.parent)
    assert len({pf.open(path).format for path in files}) == 5
    for path in files:
        recording = pf.open(path)
        everything = list(recording.records())
        num, last = len(everything), everything[-1].offset
        for first, end in ((0, 3), (num // 2, num // 2 + 4), (num - 2, None), (num, None), (num // 3, num // 3)):
            assert list(recording.records(indexes=(first, end))) == everything[first:end], (path, first)
        for first, end in ((0, last // 2), (last // 2, last), (last // 3 + 1, None), (last + 1, None)):
            within = [r for r in everything if r.offset >= first and (end is None or r.offset < end)]
            assert list(recording.records(offsets=(first, end))) == within, (path, first)
            out = io.BytesIO()
            shown, left = recording.write_records(out, "json", offsets=(first, end), limit=5)
            assert (shown, left) == (min(5, len(within)), max(len(within) - 5, 0)), (path, first)
            assert [json.loads(line)["index"] for line in out.getvalue().splitlines()] == [r.index for r in within[:5]]
        out = io.BytesIO()
        assert recording.write_records(out, "json") == (num, 0)
        for line, record in zip(out.getvalue().decode().splitlines(), everything, strict=True):
            row = json.loads(line)
            assert row["fields"] == json.loads(json_text(record.fields)), (path, record.index)
            assert (row["index"], row["offset"], row["name"]) == (record.index, record.offset, record.name)
        text = io.BytesIO()
        assert recording.write_records(text, limit=num) == (num, 0)
        heads = [line for line in text.getvalue().decode().splitlines() if line.startswith("#")]
        assert [line.split("  ")[:2] for line in heads] == [[f"#{r.index}", f"{r.offset:#x}"] for r in everything]


def test_the_bytes_of_a_record_follow_it(perfuse: Perfuse, log: Path, expected: list[dict[str, Any]]) -> None:
    event = next(record for record in expected if record["name"] == "CustomEventMarker")
    at = event["index"]
    done = perfuse("records", str(log), "--hex", "--range", f"{at}..{at + 1}")
    assert done.out.splitlines() == [
        f"#{at}  {event['offset']:#x}  CustomEventMarker  22 bytes",
        '    event_size 6  tsc_delta 9  event "middle"',
        f"    {event['offset']:08x}  0b 06 00 00 00 09 00 00  00 00 00 00 00 00 00 00  ................",
        f"    {event['offset'] + 16:08x}  6d 69 64 64 6c 65                                 middle",
    ]


def test_text_of_a_file_cannot_control_the_terminal(tmp_path: Path, perfuse: Perfuse) -> None:
    name = "f\x1b[31m\u202e日本語\u0301é\t"
    body = struct.pack("<IIQQQQ", 1, 1, 0x1000, 0x1000, 1, 1) + name.encode() + b"\0\xc3"
    dump = tmp_path / "jit-1.dump"
    dump.write_bytes(
        struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 1, 5, 0) + struct.pack("<IIQ", 0, 16 + len(body), 7) + body
    )
    assert '  name "f\\x1b[31m\\u202e日本語\u0301é\\t"  code c3' in perfuse("records", str(dump)).out
    (row,) = rows(perfuse("records", "--json", str(dump)).out)
    assert row["fields"]["name"] == name


def test_compressed_files_have_the_same_records(tmp_path: Path, perfuse: Perfuse, log: Path) -> None:
    packed = tmp_path / "log.gz"
    packed.write_bytes(gzip.compress(log.read_bytes(), 1))
    arguments = ("records", "--json", "--range", "9000..9100")
    assert perfuse(*arguments, str(packed)).out == perfuse(*arguments, str(log)).out


def test_a_range_is_of_indexes_or_of_offsets(log: Path) -> None:
    recording = pf.open(log)
    with pytest.raises(UsageError, match="one or the other"):
        next(recording.records(indexes=(0, 1), offsets=(0, 1)))
    with pytest.raises(UsageError, match="negative"):
        next(recording.records(indexes=(-1, None)))
