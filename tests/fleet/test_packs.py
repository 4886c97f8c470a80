"""Saved profiles beside the sums: what a number comes from opens after its files are gone."""

from __future__ import annotations

import json
import shlex
import shutil
import struct
from pathlib import Path

import deltalake
import pytest
from arro3.core import Table as ArrowTable

import perfuse
from fleet.generated import Written, write_fleet
from perf_crafting import IP, PERIOD, TID, TIME, Attribute, PerfFile, comm, mmap2, sample
from perfuse.cli import run
from perfuse.fleet import DatasetError, Fleet, packs, work
from perfuse.fleet.maintenance import clean


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Two recordings."""
    return write_fleet(tmp_path / "few", ["1"], hosts=["a"], runs=2, samples=300)


@pytest.fixture
def kept(written: Written, tmp_path: Path) -> Fleet:
    """A dataset that keeps saved profiles of them."""
    fleet = Fleet(tmp_path / "dataset")
    assert fleet.add(written.paths, keep_packs=True).num_added == 2
    return fleet


def _report(capfd: pytest.CaptureFixture[str], *words: str) -> str:
    capfd.readouterr()
    assert run(["report", *words, "--json", "--limit", "0"]) == 0
    document = json.loads(capfd.readouterr().out)
    return json.dumps(document["top_self"])


def test_a_recording_opens_after_its_file_is_gone(
    kept: Fleet, written: Written, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = written.paths[0]
    ((key,),) = kept.rows("SELECT recording_id FROM recordings WHERE contains(inputs, ?)", [str(path)])
    expected = _report(capfd, str(path))
    assert run(["fleet", "open", kept.uri, key[:10], "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["command"] == f"perfuse view {path}"
    path.unlink()
    assert run(["fleet", "open", kept.uri, key[:10], "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert [one["state"] for one in found["inputs"]] == ["missing"]
    _, _, shown = shlex.split(found["command"])
    assert shown == found["pack"]
    assert _report(capfd, shown) == expected
    copy = tmp_path / "copy.perfuse"
    assert run(["fleet", "open", kept.uri, key[:10], "-o", str(copy)]) == 0
    assert copy.read_bytes() == Path(shown).read_bytes()


def test_without_a_saved_profile_nothing_opens(written: Written, tmp_path: Path) -> None:
    fleet = Fleet(tmp_path / "dataset")
    fleet.add(written.paths)
    ((key,),) = fleet.rows("SELECT recording_id FROM recordings LIMIT 1")
    assert fleet.rows("SELECT count(pack) FROM recordings") == [(0,)]
    assert run(["fleet", "open", fleet.uri, key, "-o", str(tmp_path / "x.perfuse")]) == 2
    shutil.rmtree(written.paths[0].parents[2])
    assert run(["fleet", "open", fleet.uri, key]) == 1


def test_a_saved_profile_is_kept_as_it_is(written: Written, tmp_path: Path) -> None:
    path = tmp_path / "one.perfuse"
    with perfuse.fuse(written.paths[0]) as profile:
        profile.save(path)
    fleet = Fleet(tmp_path / "dataset")
    fleet.add([path], keep_packs=True)
    ((pack,),) = fleet.rows("SELECT pack FROM recordings")
    assert (Path(fleet.uri) / pack).read_bytes() == path.read_bytes()


def test_gc_deletes_what_no_recording_names(kept: Fleet) -> None:
    folder = Path(kept.uri) / packs.FOLDER
    named = sorted(folder.rglob("*.perfuse"))
    dead = folder / "ab" / f"{'ab' * 16}.20260101T000000Z-{'0' * 16}.perfuse"
    young = folder / "ab" / f"{'ab' * 16}.20991231T000000Z-{'0' * 16}.perfuse"
    for path in (dead, young):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"PK")
    assert clean(kept).deleted_packs == 1
    assert sorted(folder.rglob("*.perfuse")) == sorted([*named, young])


def test_a_saved_profile_that_cannot_be_written_ends_the_command(
    written: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk is no failure of a recording: nothing is in quarantine, and the same command continues."""
    fleet = Fleet(tmp_path / "dataset")

    def full(*_arguments: object) -> str:
        raise packs.NotKept("No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(work, "keep_pack", full)
        with pytest.raises(DatasetError, match="No space left"):
            fleet.add(written.paths, keep_packs=True)
    assert fleet.rows("SELECT count(*) FROM live_recordings") == [(0,)]
    assert fleet.add(written.paths, keep_packs=True).num_added == 2


def test_a_dataset_of_an_older_version_gets_the_column(written: Written, tmp_path: Path) -> None:
    """Its rows have none; those that are added have it."""
    fleet = Fleet(tmp_path / "dataset")
    fleet.add(written.paths[:1])
    where = f"{fleet.uri}/recordings"
    rows = ArrowTable.from_arrow(
        deltalake.QueryBuilder().register("r", deltalake.DeltaTable(where)).execute("SELECT * FROM r")
    )
    older = rows.select([name for name in rows.column_names if name != "pack"])
    deltalake.write_deltalake(where, older, mode="overwrite", schema_mode="overwrite")
    fleet.refresh()
    assert fleet.rows("SELECT count(*), count(pack) FROM recordings") == [(1, 0)]
    assert fleet.add(written.paths, keep_packs=True).num_added == 1
    assert fleet.rows("SELECT count(*), count(pack) FROM recordings") == [(2, 1)]


def test_a_saved_profile_is_the_recording_that_was_saved(written: Written, tmp_path: Path) -> None:
    """The number of samples is that of the files: a recording and its saved profile count once."""
    num_samples = sum(int(line.rsplit(" ", 1)[1]) for line in written.paths[0].read_text().splitlines())
    saved = tmp_path / "one.perfuse"
    with perfuse.fuse(written.paths[0]) as profile:
        profile.save(saved)
    for number, order in enumerate(([written.paths[0], saved], [saved, written.paths[0]])):
        fleet = Fleet(tmp_path / f"dataset{number}")
        assert [fleet.add([path], labels={"host": path.name}).num_added for path in order] == [1, 0]
        assert fleet.rows("SELECT sum(weight) FROM event_totals") == [(num_samples,)]
        assert fleet.add(order).num_added == 0


def test_a_dump_that_was_found_beside_a_recording_is_part_of_it(tmp_path: Path) -> None:
    """perf.data alone, with its dump, and the saved profile of both are one recording."""
    attribute = Attribute.of((1, 0), IP | TID | TIME | PERIOD)
    dump, recording, saved = tmp_path / "jit-7.dump", tmp_path / "perf.data", tmp_path / "both.perfuse"
    dump.write_bytes(struct.pack("<4sIIIIIQQ", b"DTiJ", 1, 40, 62, 0, 7, 500, 0))
    mapped = [comm(attribute, 7, 7, "app"), mmap2(attribute, 7, str(dump), 0x1000, 0x1000)]
    samples = [sample(attribute, ip=0x7010, pid=7, tid=7, time=1000 + number) for number in range(5)]
    PerfFile([attribute], [*mapped, *samples]).write(recording)
    with perfuse.fuse(recording) as profile:
        assert [one.format for one in profile.recordings] == ["perf_data", "jitdump"]
        profile.save(saved)
    both = f"{recording}+{dump}"
    for number, order in enumerate(([recording, saved], [saved, recording], [both, recording, saved], [saved, both])):
        fleet = Fleet(tmp_path / f"dataset{number}")
        assert [fleet.add([path]).num_added for path in order] == [1, *[0] * (len(order) - 1)]
        assert fleet.rows("SELECT sum(num_samples) FROM event_totals") == [(5,)]
