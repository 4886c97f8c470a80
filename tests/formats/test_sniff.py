"""The format of a file is recognized, and nothing else is taken for one."""

import json
import random
import struct
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import perfuse as pf
from perfuse import _core
from perfuse.declared_formats import formats

HEAD_BYTES = 4096
CONTAINERS = (b"\x7fELF", b"!<arch>\n", b"!<thin>\n")
"""Formats that may contain SFrame sections, and begin as programs and archives without one do."""
SHORT_OF_A_HEADER = {"empty.xray", "bad-magic.mlpd", "big-endian-magic.mlpd", "gzip-bad-crc.mlpd"}


def corpus_files(folders: list[Path]) -> Iterator[tuple[Path, bytes]]:
    """Every file of the corpus with its first bytes, unpacked where it is compressed with gzip."""
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.suffix != ".zst" and path.name != "gzip-bad-crc.mlpd":
                with path.open("rb") as file:
                    head = file.read(HEAD_BYTES)
                yield path, zlib.decompressobj(31).decompress(head, HEAD_BYTES) if head[:2] == b"\x1f\x8b" else head


def format_by_name(path: Path, head: bytes) -> set[str]:
    """The formats that a file of the corpus may be taken for: by its name, not by our own rules."""
    name = path.name.removesuffix(".gz")
    by_suffix = {".dump": "jitdump", ".data": "perf_data", ".mlpd": "mono", ".xray": "xray", ".sframe": "sframe"}
    found = by_suffix.get(Path(name).suffix)
    if head.startswith(CONTAINERS):
        return {"sframe"}
    if ".flame-" in name:
        return {"collapsed"}
    return {found} if found else set()


def test_no_corpus_file_is_taken_for_another_format(
    jitdump_corpus: Path, xray_corpus: Path, mono_corpus: Path, sframe_corpus: Path
) -> None:
    # The corpus contains what other programs wrote, and no saved profiles.
    recognized = {one.name: 0 for one in formats() if one.role != "saved_profile"}
    for path, head in corpus_files([jitdump_corpus, xray_corpus, mono_corpus, sframe_corpus]):
        expected = format_by_name(path, head)
        found = {name for name, _ in _core.sniff(head)}
        assert found <= expected, path
        if not head.startswith(CONTAINERS) and path.name not in SHORT_OF_A_HEADER:
            assert found == expected, path
            for name in found:
                recognized[name] += 1
    assert all(num >= 15 for num in recognized.values()), recognized


def common_files() -> dict[str, bytes]:
    """Files of other kinds that are often next to recordings."""
    records = b"".join(
        struct.pack("<IHH", kind, 1, 40) + struct.pack("<QIIQQ", 57, 9, 9, 0, 1) for kind in range(1, 12)
    )
    return {
        "empty": b"",
        "zeros": bytes(4096),
        "ones": b"\xff" * 4096,
        "text": b"All lines of this file are text.\n" * 40,
        "json": json.dumps({"version": 5, "frames": list(range(200))}).encode(),
        "csv": b"time,value\n0,1\n1,2\n",
        "png": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(200)),
        "icon": struct.pack("<HHH", 0, 1, 4) + bytes(range(200)),
        "font": bytes.fromhex("00010000000f0080000300704453494700000001"),
        "pdf": b"%PDF-1.7\n" + bytes(range(200)),
        "zip": b"PK\x03\x04\x14\x00\x00\x00\x08\x00" + bytes(range(200)),
        "class": b"\xca\xfe\xba\xbe\x00\x00\x00\x41" + bytes(range(200)),
        "pcap": struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + bytes(200),
        "sqlite": b"SQLite format 3\x00\x10\x00\x01\x01" + bytes(200),
        "mach-o": struct.pack("<IIIIIIII", 0xFEEDFACF, 0x01000007, 3, 2, 20, 2000, 0x85, 0) + bytes(200),
        "perf records without a header": records,
        "counters": struct.pack("<64Q", *range(64)),
        "floats": struct.pack("<64d", *range(64)),
    }


@pytest.mark.parametrize("name", common_files())
def test_other_files_are_not_recordings(name: str) -> None:
    assert _core.sniff(common_files()[name]) == []
    with pytest.raises(pf.UnreadableInput):
        pf.open(common_files()[name])


def test_raw_streams_of_perf_are_not_recordings(jitdump_corpus: Path) -> None:
    """`data.N` of `perf record --threads` begins with a record of any type: here at each record of a real file."""
    perf = pf.open(jitdump_corpus / "produced" / "node20.perf.data")
    starts = [record.offset for record in perf.records()]
    assert len(starts) > 500
    for offset in starts:
        assert _core.sniff(perf.read_bytes(offset, 256)) == [], offset


def test_random_bytes_are_not_recordings() -> None:
    numbers = random.Random(11)
    for _ in range(10_000):
        head = numbers.randbytes(numbers.choice((4, 8, 16, 32, 64, 128, 256)))
        assert _core.sniff(head) == [], head.hex()


def test_a_program_may_contain_a_section() -> None:
    """A program is not refused as unknown: the message states that it has no SFrame section."""
    with Path(sys.executable).open("rb") as file:
        assert _core.sniff(file.read(HEAD_BYTES)) == [("sframe", "likely")]
    with pytest.raises(pf.UnreadableInput, match=r"(?i)sframe|section"):
        pf.open(sys.executable)


def test_clocks_are_those_that_formats_declare(jitdump_corpus: Path, xray_corpus: Path, mono_corpus: Path) -> None:
    clocks: set[tuple[str, str]] = set()
    for folder in (jitdump_corpus / "produced", xray_corpus / "fdr", xray_corpus / "basic", mono_corpus / "tiny"):
        for path in sorted(folder.iterdir()):
            if any(one.names_file(path.name) for one in formats()) or path.suffix == ".dump":
                recording = pf.open(path)
                clock = recording.clock
                assert recording.summary.clock in recording.entry.clock.kinds, path
                assert clock.alignment in {*recording.entry.clock.alignments, "same_clock"}, path
                clocks.add((recording.format, recording.summary.clock))
    assert clocks >= {("jitdump", "monotonic"), ("perf_data", "monotonic"), ("perf_data", "perf"), ("xray", "tsc")}
