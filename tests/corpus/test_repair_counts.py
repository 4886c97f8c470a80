"""`repair` states how many records of each kind it read and wrote: the numbers of walks over both files."""

import gzip
import json
import struct
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import perfuse as pf
from perfuse.cli import run

from .test_record_rows import fdr_records, perf_records

ROOT = Path(__file__).parents[2]
JIT_NAMES = {0: "JIT_CODE_LOAD", 2: "JIT_CODE_DEBUG_INFO", 3: "JIT_CODE_CLOSE", 4: "JIT_CODE_UNWINDING_INFO"}


def dump_records(path: Path) -> Counter[str]:
    """Whole records of a JITDUMP by name, by a walk over the sizes in their headers."""
    data = path.read_bytes()
    at, found = struct.unpack_from("<I", data, 8)[0], Counter[str]()
    while at + 16 <= len(data):
        record, size = struct.unpack_from("<II", data, at)
        at += size
        if at <= len(data):
            found[JIT_NAMES[record]] += 1
    return found


def stated(source: Path, out: Path) -> tuple[dict[str, tuple[int, int]], pf.RepairResult]:
    """Numbers of records read and written, of the kinds where these differ."""
    result = pf.repair(source, out)
    return {one.kind: (one.records_in, one.records_out) for one in result.differences}, result


def differences(before: Counter[str], after: Counter[str]) -> dict[str, tuple[int, int]]:
    """The same, of two counts."""
    return {kind: (before[kind], after[kind]) for kind in before | after if before[kind] != after[kind]}


@pytest.mark.truth(recording="perf_data", path="repair", source="perf script -D of both files")
@pytest.mark.parametrize("name", ["wasmtime50", "node20", "openjdk17-jvmti"])
def test_perf_data(jitdump_corpus: Path, tmp_path: Path, name: str) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.write_bytes((jitdump_corpus / "produced" / f"{name}.perf.data").read_bytes() + b"after the last section")
    found, result = stated(source, out)
    before, after = (Counter(record for *_, record in perf_records(path)) for path in (source, out))
    assert found == differences(before, after)
    assert (result.records_in, result.records_out) == (before.total(), after.total())
    assert after["PERF_RECORD_SAMPLE"] == before["PERF_RECORD_SAMPLE"] > 0
    # The only kind that is written anew.
    assert set(found) <= {"PERF_RECORD_FINISHED_ROUND"}
    assert all(one.reason for one in result.differences)


@pytest.mark.truth(recording="perf_data", path="repair", source="perf script -D of both files")
@pytest.mark.parametrize(("name", "kinds", "lost"), [("pipe", "HEADER_", ["PD003"]), ("zstd", "COMPRESSED", [])])
def test_records_that_the_output_has_in_another_form(tmp_path: Path, name: str, kinds: str, lost: list[str]) -> None:
    """Records of a pipe become the header of a file, compressed records are unpacked: nothing is lost."""
    whole = ROOT / "crates" / "formats" / "perf_data" / "src" / "testdata" / f"{name}.perf.data"
    source = tmp_path / "in"
    # A recording without damage would be copied.
    source.write_bytes(whole.read_bytes() + bytes(8))
    found, result = stated(source, tmp_path / "out")
    assert any(kinds in kind for kind in found)
    assert all(one.reason for one in result.differences if one.records_out < one.records_in)
    assert [one.code for one in result.lost] == lost
    texts = [
        subprocess.run(["perf", "script", "-i", path], capture_output=True, check=True).stdout
        for path in (whole, tmp_path / "out")
    ]
    assert texts[0] == texts[1] != b""


@pytest.mark.truth(recording="jitdump", path="repair", source="a walk over the records of both files")
@pytest.mark.parametrize("name", ["node20", "node20-killed", "openjdk17-jvmti", "cpython313"])
def test_jitdump(jitdump_corpus: Path, tmp_path: Path, name: str) -> None:
    source, out = jitdump_corpus / "produced" / f"{name}.dump", tmp_path / "out"
    found, result = stated(source, out)
    before, after = dump_records(source), dump_records(out)
    assert found == differences(before, after)
    assert (result.records_in, result.records_out) == (before.total(), after.total())
    # Every record that is not written is one of the changes.
    left_out = [change for change in result.changes if change.message == "left out"]
    assert sum(num - left for num, left in found.values() if num > left) <= len(left_out)


@pytest.mark.truth(recording="xray_fdr", path="repair", source="a walk over the records of both files")
@pytest.mark.parametrize("name", ["fdr/threads4-v5", "fdr/wrap-v5", "malformed/no-newbuffer", "malformed/kind-10"])
def test_xray(xray_corpus: Path, tmp_path: Path, name: str) -> None:
    source, out = xray_corpus / f"{name}.xray", tmp_path / "out"
    found, result = stated(source, out)
    after = Counter(kind for *_, kind in fdr_records(out.read_bytes()))
    assert result.records_out == after.total()
    for kind, (_, written) in found.items():
        assert written == after[kind]
    if name.startswith("fdr/"):
        before = Counter(kind for *_, kind in fdr_records(source.read_bytes()))
        assert found == differences(before, after) == {}


def test_the_command_states_both_numbers(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "in"
    whole = ROOT / "crates" / "formats" / "perf_data" / "src" / "testdata" / "zstd.perf.data"
    source.write_bytes(whole.read_bytes() + bytes(8))
    result = pf.repair(source, tmp_path / "by-api")
    numbers = result.records_in, result.records_out
    (packed,) = (one for one in result.differences if "COMPRESSED" in one.kind)
    assert run(["repair", str(source), "-o", str(tmp_path / "out")]) == 0
    first, *rest = capfd.readouterr().out.splitlines()
    assert first == f"{numbers[0]} records read, {numbers[1]} written to {tmp_path / 'out'}; 1 change; nothing lost"
    assert f"  {packed.kind}  {packed.records_in} read, 0 written: {packed.reason}" in rest
    assert run(["repair", str(source), "-o", str(tmp_path / "out.gz"), "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert (document["records_in"], document["records_out"], document["num_changes"]) == (*numbers, 1)
    assert gzip.decompress((tmp_path / "out.gz").read_bytes()) == (tmp_path / "out").read_bytes()


def test_a_recording_without_damage_is_copied(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = ROOT / "crates" / "formats" / "perf_data" / "src" / "testdata" / "pipe.perf.data"
    assert run(["repair", str(source), "-o", str(tmp_path / "out")]) == 0
    assert capfd.readouterr().out == f"73 records read, 73 written to {tmp_path / 'out'}; 0 changes; nothing lost\n"
    assert (tmp_path / "out").read_bytes() == source.read_bytes()
