"""XRay logs and traces that are written: names as llvm-xray has them, records that each version requires, and counts of
repaired records, by walks over the files."""

import gzip
import json
import re
import struct
from collections import Counter
from pathlib import Path

import pytest

from .command import output
from .kinds import CORPUS

XRAY = CORPUS / "xray"
METADATA = {0: "NewBuffer", 2: "NewCPUId", 3: "TSCWrap", 4: "WallTimeMarker", 6: "CallArgument", 9: "Pid"}


def corpus(name: str) -> Path:
    path = XRAY / name
    if not path.exists():
        pytest.skip(f"no {path}")
    return path


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic"],
    path=["convert", "convert:xray-yaml"],
    source="llvm-xray convert -f yaml -y -m BINARY of LLVM 22: the lines are equal, names included",
)
@pytest.mark.parametrize(
    ("log", "program"),
    [
        ("fdr/small-v5", "small22"),
        ("fdr/quoted-names-v5", "lit22"),
        ("fdr/lua-small-v5", "lua22"),
        ("fdr/threads4-v5", "threads22"),
        ("basic/basic-small-v3", "small22"),
    ],
)
def test_functions_in_yaml_have_the_names_of_llvm_xray(tmp_path: Path, log: str, program: str) -> None:
    source, out = corpus(f"{log}.xray"), tmp_path / "out.yaml"
    output("convert", source, "--map", XRAY / "bin" / program, "--to", "xray-yaml", "-o", out)
    stored = XRAY / "expected" / f"{source.stem}.yaml"
    data = stored.read_bytes() if stored.exists() else gzip.decompress(stored.with_suffix(".yaml.gz").read_bytes())
    found, expected = (
        Counter(re.findall(r"^  - .*func-id: .*kind: function.*", text, re.MULTILINE))
        for text in (re.sub(r"> (?=>)", ">", out.read_text()), data.decode(errors="replace"))
    )
    # The demangler of LLVM writes return types of templates.
    expected = Counter(
        {re.sub(r"function: '(?:int|void|double) ", "function: '", line): n for line, n in expected.items()}
    )
    assert found == expected
    assert found


def buffers(log: Path) -> list[list[str]]:
    """The records of each buffer of a log of version 2 to 5 without events."""
    data, at, found = log.read_bytes(), 32, list[list[str]]()
    while at < len(data):
        first = data[at]
        if not first & 1:
            found[-1].append("function")
            at += 8
        else:
            if first >> 1 == 7:
                found.append([])
            else:
                found[-1].append(METADATA[first >> 1])
            at += 16
    return found


@pytest.mark.truth(
    recording="xray_fdr",
    path=["convert", "convert:xray", "check"],
    source="a walk over the written log: from version 3 on, each buffer has a Pid record",
)
@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize("log", ["small_nc-v1", "threads_nc-v1", "small_nc-v2"])
def test_a_log_that_becomes_version_3_to_5_has_process_records(tmp_path: Path, log: str, version: int) -> None:
    """The process of versions 1 and 2 is unknown: it is written as 0, and reported as unknown."""
    source, out = corpus(f"fdr-old/{log}.xray"), tmp_path / "out.xray"
    output("convert", source, "--to", "xray", "-O", f"version={version}", "-o", out)
    found = buffers(out)
    assert all(one[:4] == ["NewBuffer", "WallTimeMarker", "Pid", "NewCPUId"] for one in found)
    assert len(found) == {"small_nc-v1": 1, "threads_nc-v1": 9, "small_nc-v2": 1}[log]
    document = json.loads(output("check", out, "--json"))
    assert not [one for one in document["recordings"][0]["diagnostics"] if one["severity"] != "info"]


@pytest.mark.truth(
    recording="xray_fdr", path="repair", source="the records of the damaged and the repaired file, by walks over both"
)
@pytest.mark.parametrize(
    ("log", "read", "added"),
    [
        ("no-cpu", 5, {"NewCPUId": 1}),
        ("no-newbuffer", 3, {"NewBuffer": 1, "WallTimeMarker": 1, "Pid": 1}),
        ("two-newbuffers", 11, {"BufferExtents": 1}),
    ],
)
def test_records_that_a_repair_adds_are_not_counted_as_read(
    tmp_path: Path, log: str, read: int, added: dict[str, int]
) -> None:
    source, out = corpus(f"malformed/{log}.xray"), tmp_path / "out.xray"

    def num_records(path: Path) -> int:
        return sum(1 + len(one) for one in buffers(path))

    assert num_records(source) == read
    first, *lines = output("repair", source, "-o", out).splitlines()
    written = read + sum(added.values())
    assert num_records(out) == written
    assert first.startswith(f"{read} records read, {written} written to ")
    assert [line.split("  ")[1:] for line in lines[: len(added)]] == [
        [kind, f"0 read, {num} written"] if kind != "BufferExtents" else [kind, "1 read, 2 written"]
        for kind, num in added.items()
    ]


@pytest.mark.truth(
    recording="xray_fdr",
    path=["repair", "query", "convert", "convert:xray", "check"],
    source="a walk over the file: an argument belongs to the call that directly precedes it, or its other arguments",
)
def test_an_argument_without_a_call_is_no_event(tmp_path: Path) -> None:
    """An argument that follows an event: readers, repair and conversion leave it out, and the check reports it."""
    source = CORPUS / "found" / "xray" / "argument_without_call.xray"
    if not source.exists():
        pytest.skip(f"no {source}")
    data, at = source.read_bytes(), 32
    rows, orphans, follows_call = list[tuple[str, int]](), list[int](), False
    while at < len(data):
        (word,) = struct.unpack_from("<I", data, at)
        kind = (word & 0xFF) >> 1
        if not word & 1:
            action = (word >> 1) & 7
            rows.append((("enter", "exit", "tail_exit", "enter")[action], at))
            follows_call = action in (0, 3)
            at += 8
            continue
        if kind == 6:
            rows += [("argument", at)] if follows_call else []
            orphans += [] if follows_call else [at]
        else:
            follows_call = False
        at += 16 + (struct.unpack_from("<i", data, at + 1)[0] if kind in (5, 8) else 0)
    assert len(orphans) == 1
    sql = "SELECT kind, record_offset FROM call_events ORDER BY record_offset"
    assert output("query", source, sql, "--format", "csv", "--limit", 0).splitlines()[1:] == [
        f"{k},{o}" for k, o in rows
    ]
    findings = json.loads(output("check", source, "--json", status=1))["recordings"][0]["diagnostics"]
    assert [one["offset"] for one in findings if one["code"] == "XR053"] == orphans
    repaired, converted = tmp_path / "repaired.xray", tmp_path / "converted.xray"
    output("repair", source, "-o", repaired, status=1)
    output("convert", source, "--to", "xray", "-o", converted)
    for path in (repaired, converted):
        found = output("query", path, sql, "--format", "csv", "--limit", 0).splitlines()[1:]
        assert [line.split(",")[0] for line in found] == [kind for kind, _ in rows]


@pytest.mark.truth(
    recording="xray_fdr",
    path=["convert", "convert:xray"],
    source="the byte order of the version field in the written file",
)
def test_a_log_replaces_a_log_of_the_other_byte_order(tmp_path: Path) -> None:
    """Logs have no magic number: one of big-endian order is recognized less certainly, and is a log still."""
    source, out = corpus("fdr/small-v5.xray"), tmp_path / "out.xray"
    for endian, order in (("little", "<H"), ("big", ">H"), ("little", "<H")):
        output("convert", source, "--to", "xray", "-O", f"endian={endian}", "-o", out)
        assert struct.unpack_from(order, out.read_bytes()) == (5,)
