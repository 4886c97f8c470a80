"""Bytes after the last section of a perf.data: the file ends where its own header says, as `struct` reads it."""

import struct
from pathlib import Path

import pytest

import perfuse

from .command import command_line, json_of, run
from .kinds import KINDS, Kind

HEADER = struct.Struct("<8s2Q6Q4Q")
SECTION = struct.Struct("<QQ")


def end_of_sections(recording: bytes) -> int:
    """End of the last section: attributes, records, the table of features after them, and the features."""
    _magic, _, _, attrs, attrs_size, data, data_size, _, _, *features = HEADER.unpack_from(recording)
    num_features = sum(word.bit_count() for word in features)
    table = data + data_size
    sections = [SECTION.unpack_from(recording, table + at * SECTION.size) for at in range(num_features)]
    return max(attrs + attrs_size, table + num_features * SECTION.size, *(begin + size for begin, size in sections))


@pytest.mark.truth(
    recording=[
        "perf_data",
        "perf_node",
        "perf_cpython",
        "perf_openjdk",
        "perf_llvm",
        "perf_jsc",
        "perf_erlang",
        "perf_postgres",
        "perf_stacks",
    ],
    path="check",
    source="the sections of the header, by struct",
)
def test_recordings_end_with_their_last_section(kind: Kind) -> None:
    path = kind.paths[0]
    assert end_of_sections(path.read_bytes()) == path.stat().st_size
    assert "PD022" not in {found.code for found in perfuse.open(path).check()}


@pytest.mark.truth(recording="perf_data", path=["check", "repair"], source="bytes appended by the test")
@pytest.mark.parametrize("junk", ["zeros", "text", "recording"])
def test_what_was_appended_is_found_and_left_out(junk: str, tmp_path: Path) -> None:
    original = KINDS["perf_data"].paths[0]
    recorded = original.read_bytes()
    appended = {"zeros": bytes(64 << 20), "text": b"left over" * 1000, "recording": recorded}[junk]
    path, repaired = tmp_path / "perf.data", tmp_path / "repaired.data"
    path.write_bytes(recorded + appended)
    assert run("check", path).returncode == 1
    found = json_of("check", path)
    (row,) = [row for row in found["recordings"][0]["diagnostics"] if row["code"] == "PD022"]
    assert row["offset"] == len(recorded)
    assert f"{len(appended)} bytes follow the last section" in row["message"]
    assert ("another recording" in row["message"]) == (junk == "recording")
    command_line("repair", path, "-o", repaired)
    assert "PD022" not in {found.code for found in perfuse.open(repaired).check()}

    def stacks(file: Path) -> list[tuple[int, int]]:
        return perfuse.fuse(file).sql("SELECT ts_ns, count(*) FROM samples GROUP BY ALL ORDER BY ALL").fetchall()

    assert stacks(path) == stacks(repaired) == stacks(original)
