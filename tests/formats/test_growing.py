"""Files that are still being written, of any format."""

import gzip
import threading
from pathlib import Path

import pytest

import perfuse as pf
from perfuse.growing import follow

TESTDATA = Path(__file__).parents[2] / "crates" / "formats"
WHOLE = [
    TESTDATA / "mono" / "src" / "testdata" / "v17-heapshot.mlpd",
    TESTDATA / "mono" / "src" / "testdata" / "v11-bt.mlpd",
]


def files() -> list[Path]:
    """A file of each format that programs write as they run."""
    others = [next(iter(sorted((TESTDATA / name / "src" / "testdata").glob(f"*{end}"))), None) for name, end in OTHERS]
    return WHOLE + [path for path in others if path is not None]


OTHERS = [("jitdump", ".dump"), ("xray", ".xray")]


@pytest.mark.parametrize("path", files(), ids=lambda path: path.name)
def test_an_end_that_is_not_written_yet_is_no_loss(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    growing = tmp_path / "growing"
    cut = len(data) * 2 // 3
    growing.write_bytes(data[:cut])
    lost = {d.code for d in pf.open(growing).check() if d.severity in ("data_loss", "error")}
    before = {d.code for d in pf.open(path).check() if d.severity in ("data_loss", "error")}
    with growing.open("ab") as writer:
        log = pf.open(growing)
        assert log.is_growing, "somebody has it open"
        told = log.check()
        assert {d.code for d in told if d.severity in ("data_loss", "error")} <= before
        assert "IO002" in {d.code for d in told} or not lost
        writer.write(data[cut:])
    assert log.is_growing, "it has grown"
    assert not pf.open(growing).is_growing
    assert pf.open(growing).check() == [d for d in pf.open(growing).check() if d.code != "IO002"]


def test_a_stream_without_its_end(tmp_path: Path) -> None:
    data = gzip.compress(WHOLE[0].read_bytes())
    growing = tmp_path / "growing.gz"
    growing.write_bytes(data[: len(data) // 2])
    assert {d.code for d in pf.open(growing).findings()} >= {"IO001", "ML010"}
    with growing.open("ab"):
        assert {d.code for d in pf.open(growing).findings() if d.is_finding} == set()


def test_what_is_given_as_bytes_does_not_grow() -> None:
    assert not pf.open(WHOLE[0].read_bytes()).is_growing


def test_follow_tells_what_is_new(tmp_path: Path) -> None:
    data = WHOLE[0].read_bytes()
    growing = tmp_path / "growing.mlpd"
    total = sum(pf.open(data).summary.records.values())
    looks = []
    with growing.open("wb", buffering=0) as writer:
        writer.write(data[: len(data) // 2])
        for look in follow(growing, every_s=0.01):
            looks.append(look)
            if len(looks) == 1:
                writer.write(data[len(data) // 2 :])
            if len(looks) == 3:
                writer.close()
    assert sum(sum(look.new.values()) for look in looks) == total
    assert looks[-1].records == pf.open(data).summary.records
    assert looks[2].new == {} == looks[0].per_second


def test_follow_waits_for_the_header(tmp_path: Path) -> None:
    data = WHOLE[0].read_bytes()
    growing = tmp_path / "growing.mlpd"
    with growing.open("wb", buffering=0) as writer:
        writer.write(data[:20])
        rest = threading.Timer(0.1, writer.write, [data[20:]])
        rest.start()
        first = next(follow(growing, every_s=0.01))
        rest.join()
    assert first.size_bytes == len(data)


def test_follow_does_not_wait_for_what_will_not_come(tmp_path: Path) -> None:
    path = tmp_path / "none.mlpd"
    with pytest.raises(pf.UnreadableInput):
        next(follow(path))
    path.write_bytes(WHOLE[0].read_bytes()[:20])
    with pytest.raises(pf.UnreadableInput):
        next(follow(path))
