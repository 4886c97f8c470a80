"""Dumps whose times are not on the recording's clock are aligned with it, with a bound on the error."""

import struct
from dataclasses import replace
from pathlib import Path

import pytest

import perf_crafting as crafting
import perfuse as pf
from perf_crafting import Attribute, PerfFile, Record, sample
from perfuse.fusing.alignment import align
from perfuse.fusing.facts import SamplingFacts
from perfuse.fusing.matching import Match
from perfuse.reports.profile import profile_lines, profile_report
from perfuse.reports.text import Style

LEAVES = """
    SELECT sample_id, f.linkage_name FROM samples JOIN stacks USING (stack_id) JOIN frames USING (frame_id)
    JOIN functions f USING (function_id) WHERE kind = 'jit' ORDER BY 1
"""


def in_ticks(dump: bytes, hz: int, zero: int) -> bytes:
    """A copy of a dump with every time in ticks of a counter, as JITDUMP_FLAGS_ARCH_TIMESTAMP declares."""
    out = bytearray(dump)

    def ticks(ns: int) -> int:
        return zero + ns * hz // 1_000_000_000

    struct.pack_into("<QQ", out, 24, ticks(struct.unpack_from("<Q", dump, 24)[0]), 1)
    offset = 40
    while offset + 16 <= len(dump):
        _, size, time = struct.unpack_from("<IIQ", dump, offset)
        struct.pack_into("<Q", out, offset + 8, ticks(time))
        offset += size
    return bytes(out)


@pytest.mark.truth(
    recording="perf_openjdk", path=["api:Profile.sql", "report"], source="the same recording with times in nanoseconds"
)
@pytest.mark.parametrize("hz", [2_596_100_000, 1_000_000_003, 3_400_000_000])
def test_ticks_of_an_unknown_rate(jitdump_corpus: Path, tmp_path: Path, hz: int) -> None:
    produced = jitdump_corpus / "produced"
    perf, dump = produced / "openjdk17-jvmti.perf.data", produced / "openjdk17-jvmti.dump"
    ticking = tmp_path / "jit-1176.dump"
    ticking.write_bytes(in_ticks(dump.read_bytes(), hz, zero=123_456_789_000))
    right = dict(pf.fuse(perf, dump).sql(LEAVES).fetchall())
    profile = pf.fuse(perf, ticking)
    found = dict(profile.sql(LEAVES).fetchall())
    assert len(right) > 1000
    # Code that ran before its own time, but within the uncertainty, has its name, too. The JVM writes a record after
    # the code can run, so that some samples come before it on the exact clock as well.
    early = """SELECT sample_id FROM samples JOIN stacks USING (stack_id) JOIN frames USING (frame_id)
        WHERE unnamed_because = 'a dump has code at this address, but not at that time'"""
    assert found.items() >= right.items()
    assert found.keys() - right.keys() <= {sample for (sample,) in pf.fuse(perf, dump).sql(early).fetchall()}
    assert not profile.sql(early).fetchall()
    (join,) = profile.joins
    assert join.alignment == "marker_and_rate"
    clock = "SELECT hz, hz_source, stated_hz, uncertainty_ns FROM clocks WHERE kind = 'tsc'"
    ((measured, source, stated, uncertainty),) = profile.sql(clock).fetchall()
    assert measured == pytest.approx(hz, rel=0.01)
    assert (source, stated) == ("estimated", None), "the dump states no rate"
    assert uncertainty == join.uncertainty_ns
    assert uncertainty is not None
    assert uncertainty >= 1_000_000
    text = "\n".join(profile_lines(profile_report(profile), Style(width=None)))
    assert "aligned at the marker, rate of its clock estimated, accurate to ±" in text
    assert "a dump is missing" not in text
    assert "FU003" in {d.code for d in profile.diagnostics}


def test_a_flag_for_ticks_over_nanoseconds_is_ignored(jitdump_corpus: Path, tmp_path: Path) -> None:
    produced = jitdump_corpus / "produced"
    perf, dump = produced / "openjdk17-jvmti.perf.data", produced / "openjdk17-jvmti.dump"
    flagged = bytearray(dump.read_bytes())
    flagged[32] = 1
    copy = tmp_path / "jit-1176.dump"
    copy.write_bytes(flagged)
    profile = pf.fuse(perf, copy)
    assert profile.joins[0].alignment == "same_clock"
    assert profile.sql(LEAVES).fetchall() == pf.fuse(perf, dump).sql(LEAVES).fetchall()


def test_recorded_without_k_mono(jitdump_corpus: Path) -> None:
    produced = jitdump_corpus / "produced"
    profile = pf.fuse(produced / "node20-noclock.perf.data", produced / "node20-noclock.dump")
    (join,) = profile.joins
    assert (join.found_by, join.alignment, join.pid) == ("marker", "marker", 18494)
    assert join.uncertainty_ns is not None
    assert 0 < join.uncertainty_ns < 50_000_000
    names = profile.sql(f"SELECT linkage_name, count(*) n FROM ({LEAVES}) GROUP BY 1 ORDER BY n DESC").fetchall()
    assert names[0][0].startswith("JS:*fib ")
    assert sum(n for _, n in names) > 150


def test_perf_that_attached_without_k_mono_states_no_time_of_the_marker(jitdump_corpus: Path, tmp_path: Path) -> None:
    """It writes mappings that exist when it attaches at time 0: here, the marker of a recording that has its time."""
    produced = jitdump_corpus / "produced"
    recorded, dump = produced / "node20-noclock.perf.data", produced / "node20-noclock.dump"
    file = PerfFile.read(recorded)
    (attribute,) = file.attributes
    untimed = attribute.sample_id(18494, 18494, 0)
    markers = [number for number, one in enumerate(file.records) if b"/jit-18494.dump" in one.body]
    for number in markers:
        one = file.records[number]
        file.records[number] = Record(one.type, one.misc, one.body[: -len(untimed)] + untimed)
    assert markers
    attached = pf.fuse(file.write(tmp_path / "perf.data"), dump)
    started = pf.fuse(recorded, dump)
    (join,) = attached.joins
    assert (join.found_by, join.alignment, join.pid) == ("marker", "first_use", 18494)
    assert join.offset_ns == pytest.approx(started.joins[0].offset_ns, abs=50_000_000)
    leaves, expected = attached.sql(LEAVES).fetchall(), started.sql(LEAVES).fetchall()
    assert len(expected) > 150
    assert len(set(leaves) & set(expected)) >= 0.99 * len(expected)


def test_code_that_replaces_other_code_is_it_from_its_own_time_on(tmp_path: Path) -> None:
    pid, code, size, second = 7, 0x7000_0000, 0x1000, 1_000_000_000
    own_clock = 1 << 25
    attribute = Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.CALLCHAIN | crafting.PERIOD)
    attribute = replace(
        attribute, attr=attribute.attr[:40] + struct.pack("<Q", attribute.flags & ~own_clock) + attribute.attr[48:]
    )
    records = [
        crafting.comm(attribute, pid, pid, "runtime"),
        crafting.mmap2(attribute, pid, "//anon", code, size, prot=7),
    ]
    records.append(crafting.mmap2(attribute, pid, f"/app/jit-{pid}.dump", 0x1000_0000, size))
    chain = [crafting.CONTEXT_USER, code + 0x10]
    for at in (15, 19, 21, 25):
        records.append(sample(attribute, ip=chain[1], pid=pid, tid=pid, time=at * second, chain=chain))
    dump = struct.pack("<4sIIIIIQQ", b"DTiJ", 1, 40, 62, 0, pid, 10 * second, 0)
    for made, name in ((11, b"first"), (20, b"second")):
        body = struct.pack("<IIQQQQ", pid, pid, code, code, 0x40, made) + name + b"\0" + b"\x90" * 0x40
        dump += struct.pack("<IIQ", 0, 16 + len(body), made * second) + body
    path = tmp_path / f"jit-{pid}.dump"
    path.write_bytes(dump)
    profile = pf.fuse(PerfFile([attribute], records).write(tmp_path / "perf.data"), path)
    query = f"SELECT ts_ns // {second}, linkage_name FROM samples JOIN ({LEAVES}) USING (sample_id) ORDER BY 1"
    assert profile.sql(query).fetchall() == [(15, "first"), (19, "first"), (21, "second"), (25, "second")]


def test_pid_namespace(jitdump_corpus: Path) -> None:
    produced = jitdump_corpus / "produced"
    profile = pf.fuse(produced / "node20-nsz.perf.data", produced / "node20-nsz.dump")
    assert [(join.pid, join.found_by) for join in profile.joins] == [(18443, "marker")]
    assert "FU004" in {d.code for d in profile.diagnostics}
    assert len(profile.sql(LEAVES).fetchall()) > 150


def test_a_dump_of_another_run_names_nothing(jitdump_corpus: Path) -> None:
    produced = jitdump_corpus / "produced"
    other = pf.fuse(produced / "node24.perf.data", produced / "node20.dump")
    assert [join.pid for join in other.joins] == [None]
    assert "FU001" in {d.code for d in other.diagnostics}
    assert not other.sql(LEAVES).fetchall()


@pytest.mark.parametrize("minutes", [10, -10])
def test_a_dump_of_another_process_of_the_pid_names_nothing(jitdump_corpus: Path, tmp_path: Path, minutes: int) -> None:
    """The pid was reused, as those of containers are: the header matches, the times do not."""
    produced = jitdump_corpus / "produced"
    again = bytearray((produced / "node20.dump").read_bytes())
    offset = 40
    while offset + 16 <= len(again):
        _, size, time = struct.unpack_from("<IIQ", again, offset)
        struct.pack_into("<Q", again, offset + 8, time + minutes * 60_000_000_000)
        offset += size
    other = tmp_path / "jit-29793.dump"
    other.write_bytes(again)
    named = pf.fuse(produced / "node20.perf.data", other)
    assert "FU001" in {d.code for d in named.diagnostics}
    assert not named.sql(LEAVES).fetchall()
    beside = tmp_path / "perf.data"
    beside.write_bytes((produced / "node20.perf.data").read_bytes())
    profile = pf.fuse(beside)
    assert "FU005" in {d.code for d in profile.diagnostics}
    assert not profile.sql(LEAVES).fetchall()


def test_a_dump_whose_times_count_from_the_start_of_its_process_is_joined(jitdump_corpus: Path, tmp_path: Path) -> None:
    produced = jitdump_corpus / "produced"
    own = bytearray((produced / "node20.dump").read_bytes())
    offset, first = 40, None
    while offset + 16 <= len(own):
        _, size, time = struct.unpack_from("<IIQ", own, offset)
        first = time if first is None else first
        struct.pack_into("<Q", own, offset + 8, time - first)
        offset += size
    path = tmp_path / "jit-29793.dump"
    path.write_bytes(own)
    assert len(pf.fuse(produced / "node20.perf.data", path).sql(LEAVES).fetchall()) > 150


def test_dumps_are_found(jitdump_corpus: Path, tmp_path: Path) -> None:
    produced = jitdump_corpus / "produced"
    directory = tmp_path / "recordings"
    (directory / "below").mkdir(parents=True)
    perf = directory / "perf.data"
    perf.write_bytes((produced / "node24.perf.data").read_bytes())
    dump = directory / "below" / "jit-2612.dump"
    dump.write_bytes((produced / "node24.dump").read_bytes())
    right = pf.fuse(perf, dump).sql(LEAVES).fetchall()
    assert len(right) > 300
    assert pf.fuse(directory).sql(LEAVES).fetchall() == right
    assert pf.fuse(perf, directory / "below").sql(LEAVES).fetchall() == right
    missing = pf.fuse(perf)
    assert "FU002" in {d.code for d in missing.diagnostics}
    dump.rename(directory / "jit-2612.dump")
    assert pf.fuse(perf).sql(LEAVES).fetchall() == right


def test_jsc_names_its_files_by_thread(jitdump_corpus: Path) -> None:
    produced = jitdump_corpus / "produced"
    profile = pf.fuse(produced / "jsc2.52.perf.data", produced / "jsc2.52.dump")
    assert [(join.pid, join.found_by) for join in profile.joins] == [(7086, "marker")]
    assert any(name.startswith("JSC-FTL: ") for _, name in profile.sql(LEAVES).fetchall())


def test_without_a_common_instant_code_has_no_start(jitdump_corpus: Path) -> None:
    produced = jitdump_corpus / "produced"
    perf, dump = pf.open(produced / "node20-noclock.perf.data"), pf.open(produced / "node20-noclock.dump")
    facts = SamplingFacts.of(perf)
    found = align(Match(dump, 18494, None, "header_pid"), facts, [])
    assert facts.span is not None
    assert (found.alignment, found.numerator, found.uncertainty_ns) == ("none", 0, None)
    assert found.offset_ns < facts.span[0]


@pytest.mark.parametrize("is_mapped", [True, False], ids=["anonymous memory", "no mapping"])
def test_the_rest_of_code_that_was_partly_replaced_has_a_reason(tmp_path: Path, is_mapped: bool) -> None:
    pid, code, second = 7, 0x7000_0000, 1_000_000_000
    attribute = Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD)
    records = [crafting.comm(attribute, pid, pid, "runtime")]
    records += [crafting.mmap2(attribute, pid, "//anon", code, 0x1000, prot=7)] if is_mapped else []
    records += [crafting.mmap2(attribute, pid, f"/app/jit-{pid}.dump", 0x1000_0000, 0x1000)]
    for at in (15, 25):
        for offset in (0x10, 0x90):
            records.append(sample(attribute, ip=code + offset, pid=pid, tid=pid, time=at * second))
    dump = struct.pack("<4sIIIIIQQ", b"DTiJ", 1, 40, 62, 0, pid, 10 * second, 0)
    for made, name, size in ((11, b"old", 0x100), (20, b"new", 0x40)):
        body = struct.pack("<IIQQQQ", pid, pid, code, code, size, made) + name + b"\0" + b"\x90" * size
        dump += struct.pack("<IIQ", 0, 16 + len(body), made * second) + body
    path = tmp_path / f"jit-{pid}.dump"
    path.write_bytes(dump)
    profile = pf.fuse(PerfFile([attribute], records).write(tmp_path / "perf.data"), path)
    query = f"""
        SELECT ts_ns // {second}, address - {code}, coalesce(f.name, unnamed_because) FROM samples
        JOIN stacks USING (stack_id) JOIN frames USING (frame_id) LEFT JOIN functions f USING (function_id) ORDER BY ALL
    """
    reason = "a dump has code at this address, but not at that time"
    assert profile.sql(query).fetchall() == [
        (15, 0x10, "old"),
        (15, 0x90, "old"),
        (25, 0x10, "new"),
        (25, 0x90, reason),
    ]
