"""`repair` of recordings that are damaged here has what walks find in undamaged parts; perf and llvm-xray read it."""

import struct
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import perfuse as pf
from perf_crafting import PerfFile

SAMPLE = 9
FINISHED_ROUND = 68
FEATURES_OFFSET = 72
"""Of the set of feature sections in the header."""
CPUDESC, BPF_PROG_INFO = 8, 25
"""Bits of feature sections."""
BUFFER_EXTENTS = 7 << 1 | 1
"""First byte of that metadata record of XRay."""


def perf_records(data: bytes) -> list[tuple[int, int, int]]:
    """Offset, size and type of the records of a file that is not damaged, by a walk over the sizes in their headers."""
    at, size = struct.unpack_from("<QQ", data, 40)
    end, found = at + size, []
    while at < end:
        kind, _, size = struct.unpack_from("<IHH", data, at)
        found.append((at, size, kind))
        at += size
    assert at == end
    return found


def undamaged(records: list[tuple[int, int, int]], begin: int, end: int) -> list[tuple[int, int, int]]:
    return [one for one in records if one[0] + one[1] <= begin or one[0] >= end]


def num_of_perf(path: Path) -> int:
    """Number of samples that perf reads."""
    command = ["perf", "script", "-i", str(path), "-F", "tid,time,event"]
    return len(subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines())


@pytest.mark.truth(recording="perf_data", path="repair", source="a walk over the records; perf script")
@pytest.mark.parametrize(
    ("name", "begin", "size"),
    [("node24", 0x38000, 4096), ("erlang27", 18324, 64), ("openjdk17-jvmti", 0x50000, 16384)],
)
def test_samples_after_zeros(jitdump_corpus: Path, tmp_path: Path, name: str, begin: int, size: int) -> None:
    """Reading stopped at the first record whose size was zeroed, and the rest of the file was lost."""
    data = (jitdump_corpus / "produced" / f"{name}.perf.data").read_bytes()
    records = perf_records(data)
    source, out, again = tmp_path / "in", tmp_path / "out", tmp_path / "again"
    source.write_bytes(data[:begin] + bytes(size) + data[begin + size :])
    result = pf.repair(source, out)
    written = Counter(out.read_bytes()[at : at + n] for at, n, _ in perf_records(out.read_bytes()))
    expected = Counter(
        data[at : at + n] for at, n, kind in undamaged(records, begin, begin + size) if kind != FINISHED_ROUND
    )
    assert not expected - written
    # At most the record in which the zeros begin, whose size is still there, is written too.
    assert (written - expected).total() <= 2
    num_samples = sum(kind == SAMPLE for *_, kind in perf_records(out.read_bytes()))
    assert num_of_perf(out) == num_samples < sum(kind == SAMPLE for *_, kind in records)
    assert [one.code for one in result.lost if one.severity == "error"] == ["PD003"]
    assert not result.remaining
    assert not pf.repair(out, again).changes
    assert out.read_bytes() == again.read_bytes()


@pytest.mark.truth(recording="perf_data", path="report", source="a walk over the records of the undamaged file")
def test_a_report_of_a_damaged_recording_has_its_other_samples(jitdump_corpus: Path) -> None:
    data = (jitdump_corpus / "produced" / "node24.perf.data").read_bytes()
    begin, end = 0x30000, 0x34000
    rest = undamaged(perf_records(data), begin, end)
    ((num,),) = pf.fuse(data[:begin] + bytes(end - begin) + data[end:]).sql("SELECT count(*) FROM samples").fetchall()
    num_whole = sum(kind == SAMPLE for *_, kind in rest)
    assert num_whole <= num <= num_whole + 1


@pytest.mark.truth(recording="perf_data", path=["repair", "check"], source="a walk over the records; perf script")
@pytest.mark.parametrize("name", ["cpython313", "llvm19-orc", "node24"])
def test_feature_sections_that_cannot_be_decoded_are_left_out(jitdump_corpus: Path, tmp_path: Path, name: str) -> None:
    """Their content is overwritten: perf 7 refuses the file, and `check` had no finding."""
    data = bytearray((jitdump_corpus / "produced" / f"{name}.perf.data").read_bytes())
    offset, size = struct.unpack_from("<QQ", data, 40)
    num = sum(word.bit_count() for word in struct.unpack_from("<4Q", data, FEATURES_OFFSET))
    first = offset + size + 16 * num
    data[first:] = bytes(0xFF if at % 7 else 0x80 for at in range(len(data) - first))
    source, out = tmp_path / "in", tmp_path / "out"
    source.write_bytes(data)
    assert "PD024" in {one.code for one in pf.check(source)}
    result = pf.repair(source, out)
    assert {one.code for one in result.lost} == {one.code for one in result.changes} == {"PD024"}
    assert num_of_perf(out) == sum(kind == SAMPLE for *_, kind in perf_records(bytes(data)))
    assert not [one for one in pf.check(out) if one.is_loss]


@pytest.mark.truth(recording="perf_data", path=["repair", "check"], source="perf script")
def test_an_empty_feature_section_is_no_damage(jitdump_corpus: Path, tmp_path: Path) -> None:
    """perf 3.14 writes such a one for the processor's name, perf 6 for BPF programs; perf 6 then refuses the file."""
    whole = PerfFile.read(jitdump_corpus / "produced" / "cpython313.perf.data")
    whole.features |= {CPUDESC: b"", BPF_PROG_INFO: b""}
    source, out = whole.write(tmp_path / "in"), tmp_path / "out"
    (found,) = {(one.code, one.severity) for one in pf.check(source) if one.code == "PD026"}
    assert found == ("PD026", "info")
    assert not [one for one in pf.check(source) if one.is_loss]
    result = pf.repair(source, out)
    assert result.lost == []
    assert {one.code for one in result.changes} == {"PD026"}
    assert num_of_perf(out) == num_of_perf(jitdump_corpus / "produced" / "cpython313.perf.data")


def header_text(path: Path) -> list[str]:
    """What perf prints of the feature sections: the host, the command line, the events, the build ids."""
    commands = (["perf", "report", "--header-only", "-i", str(path)], ["perf", "buildid-list", "-i", str(path)])
    lines = [subprocess.run(one, capture_output=True, check=True, text=True).stdout.splitlines() for one in commands]
    # Times and sizes of the file, and what is written anew.
    return [line for part in lines for line in part if not line.startswith(("# captured on", "# data ", "# feat "))]


@pytest.mark.truth(recording="perf_data", path="repair", source="perf report --header-only; perf buildid-list; a walk")
@pytest.mark.parametrize(("begin", "size"), [(20278, 1), (16000, 8), (9000, 4096), (14444, -1), (20000, -64)])
def test_bytes_that_are_missing_or_were_added(jitdump_corpus: Path, tmp_path: Path, begin: int, size: int) -> None:
    """The sections after the records are elsewhere than the header states: the written file had empty ones."""
    whole = jitdump_corpus / "produced" / "cpython313.perf.data"
    data = whole.read_bytes()
    source, out = tmp_path / "in", tmp_path / "out"
    # A negative number of bytes are added.
    end = max(begin, begin + size)
    source.write_bytes(data[:begin] + b"\xa5" * -size + data[end:])
    result = pf.repair(source, out)
    assert "PD025" in {one.code for one in result.lost}
    samples = {data[at : at + n] for at, n, kind in undamaged(perf_records(data), begin, end) if kind == SAMPLE}
    written = {out.read_bytes()[at : at + n] for at, n, kind in perf_records(out.read_bytes()) if kind == SAMPLE}
    # The record in which bytes are missing ends in the next one.
    assert len(samples - written) <= 1
    assert num_of_perf(out) >= len(samples) - 1
    assert header_text(out) == header_text(whole)


def dump_records(data: bytes) -> list[tuple[int, int]]:
    """Offset and size of the records of a JITDUMP that is not damaged."""
    at, found = struct.unpack_from("<I", data, 8)[0], []
    while at < len(data):
        size = struct.unpack_from("<I", data, at + 4)[0]
        found.append((at, size))
        at += size
    return found


@pytest.mark.truth(recording="jitdump", path="repair", source="a walk over the records of the undamaged file")
@pytest.mark.parametrize(
    ("name", "begin", "size"),
    [
        ("jsc2.52", 13499, 8),
        ("jsc2.52", 12660, 100),
        ("postgres15", 426, 1),
        ("wasmtime50", 860, 8),
    ],
)
def test_the_record_after_code_of_which_bytes_are_missing(
    jitdump_corpus: Path, tmp_path: Path, name: str, begin: int, size: int
) -> None:
    """Its beginning is in what the size of the record before covers; it was left out."""
    data = (jitdump_corpus / "produced" / f"{name}.dump").read_bytes()
    source, out = tmp_path / "in", tmp_path / "out"
    source.write_bytes(data[:begin] + data[begin + size :])
    result = pf.repair(source, out)
    rest = [(at, n) for at, n in dump_records(data) if at + n <= begin or at >= begin + size]
    written = Counter(out.read_bytes()[at : at + n] for at, n in dump_records(out.read_bytes()))
    assert not Counter(data[at : at + n] for at, n in rest) - written
    assert result.lost


def functions_of_buffers(data: bytes) -> list[tuple[int, int, int]]:
    """Begin and end of each buffer of an undamaged log, and the number of its function records."""
    at, found = 32, []
    while at < len(data):
        assert data[at] == BUFFER_EXTENTS
        begin, end = at, at + 16 + struct.unpack_from("<Q", data, at + 1)[0]
        num = 0
        while at < end:
            is_metadata = data[at] & 1
            num += not is_metadata
            at += 16 if is_metadata else 8
        found.append((begin, end, num))
    return found


@pytest.mark.truth(recording="xray_fdr", path="repair", source="a walk over the buffers; llvm-xray convert")
@pytest.mark.parametrize(("begin", "size"), [(190286, 3), (35843, 100)])
def test_the_buffer_after_one_of_which_bytes_are_missing(
    xray_corpus: Path, tmp_path: Path, begin: int, size: int
) -> None:
    """It begins before the end that the buffer before it states; its 8,000 calls were left out."""
    data = (xray_corpus / "fdr" / "lua-small-v5.xray").read_bytes()
    source, out = tmp_path / "in", tmp_path / "out"
    source.write_bytes(data[:begin] + data[begin + size :])
    assert pf.repair(source, out).lost
    num_whole = sum(num for first, end, num in functions_of_buffers(data) if end <= begin or first >= begin + size)
    text = subprocess.run(
        ["llvm-xray", "convert", "-f", "yaml", out], capture_output=True, check=True, text=True
    ).stdout
    assert text.count("kind: function-") >= num_whole
