"""Directories of `perf record --threads` are one recording, with the samples that perf's own reader counts."""

import shutil
import subprocess
from pathlib import Path

import pytest

import perfuse as pf
from needs import program_at


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that perf records on this machine."""
    perf = program_at("perf")
    directory = tmp_path_factory.mktemp("threads") / "perf.data"
    burn = "i=0; while [ $i -lt 60000 ]; do i=$((i + 1)); done"
    command = [perf, "record", "--threads", "-qN", "-e", "cpu-clock", "-F", "999", "-k", "mono", "-g", "-o", directory]
    done = subprocess.run(
        [*command, "--", "sh", "-c", burn + " & " + burn + "; wait"], capture_output=True, check=False
    )
    if done.returncode != 0 or not (directory / "data").is_file():
        pytest.skip("perf cannot record into a directory here")
    return directory


def perf_samples(path: Path) -> list[tuple[int, int]]:
    """`(tid, ns)` of each sample, as `perf script` prints it."""
    command = ["perf", "script", "--ns", "-F", "tid,time,event", "-i", str(path)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in text.splitlines() if line.rstrip().endswith("cpu-clock:")]
    return sorted((int(tid), round(float(time[:-1].replace(".", "")))) for tid, time, _ in lines)


SAMPLES = "SELECT tid, ts_ns FROM samples JOIN threads USING (thread_id) ORDER BY ALL"


def test_a_directory_is_one_recording(recorded: Path) -> None:
    expected = perf_samples(recorded)
    assert len(expected) > 20
    assert sum(path.stat().st_size > 0 for path in recorded.glob("data.*")) >= 1
    profile = pf.fuse(recorded)
    assert [r.format for r in profile.recordings] == ["perf_data"]
    assert profile.sql(SAMPLES).fetchall() == expected
    # A busy machine may lose records.
    assert {one.code for one in profile.recordings[0].check()} <= {"PD004"}
    assert pf.fuse(recorded.parent).sql(SAMPLES).fetchall() == expected


def test_streams_are_not_recordings(recorded: Path) -> None:
    for stream in recorded.glob("data.*"):
        if stream.stat().st_size:
            with pytest.raises(pf.UnreadableInput):
                pf.open(stream)


def test_a_cut_stream_is_reported(recorded: Path, tmp_path: Path) -> None:
    copy = tmp_path / "perf.data"
    shutil.copytree(recorded, copy)
    stream = max(copy.glob("data.*"), key=lambda path: path.stat().st_size)
    stream.write_bytes(stream.read_bytes()[:-5])
    recording = pf.open(copy)
    assert "PD001" in {d.code for d in recording.check()}
    whole = pf.open(recorded)
    kinds = recording.summary.records, whole.summary.records
    assert sum(kinds[0].values()) == sum(kinds[1].values()) - 1


def test_a_directory_without_a_header_is_refused(recorded: Path, tmp_path: Path) -> None:
    copy = tmp_path / "perf.data"
    shutil.copytree(recorded, copy)
    (copy / "data").write_bytes((copy / "data").read_bytes()[:60])
    with pytest.raises(pf.UnreadableInput, match="not a complete perf"):
        pf.open(copy)
