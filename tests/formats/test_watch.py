"""Files that are still being written, of any format."""

import gzip
import threading
from pathlib import Path

import pytest

import perfuse as pf
from perfuse.watch import watch

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
    log_path = tmp_path / "growing"
    cut = len(data) * 2 // 3
    log_path.write_bytes(data[:cut])
    lost_codes = {d.code for d in pf.open(log_path).check() if d.severity in ("data_loss", "error")}
    before = {d.code for d in pf.open(path).check() if d.severity in ("data_loss", "error")}
    with log_path.open("ab") as writer:
        log = pf.open(log_path)
        assert log.is_growing, "somebody has it open"
        findings = log.check()
        assert {d.code for d in findings if d.severity in ("data_loss", "error")} <= before
        assert "IO002" in {d.code for d in findings} or not lost_codes
        writer.write(data[cut:])
    assert log.is_growing, "it has grown"
    assert not pf.open(log_path).is_growing
    assert pf.open(log_path).check() == [d for d in pf.open(log_path).check() if d.code != "IO002"]


def test_a_stream_without_its_end(tmp_path: Path) -> None:
    data = gzip.compress(WHOLE[0].read_bytes())
    log_path = tmp_path / "log_path.gz"
    log_path.write_bytes(data[: len(data) // 2])
    assert {d.code for d in pf.open(log_path).findings()} >= {"IO001", "ML010"}
    with log_path.open("ab"):
        assert {d.code for d in pf.open(log_path).findings() if d.is_finding} == set()


def test_what_is_given_as_bytes_does_not_grow() -> None:
    assert not pf.open(WHOLE[0].read_bytes()).is_growing


def test_follow_reports_new_records(tmp_path: Path) -> None:
    data = WHOLE[0].read_bytes()
    log_path = tmp_path / "log_path.mlpd"
    total = sum(pf.open(data).summary.records.values())
    looks = []
    with log_path.open("wb", buffering=0) as writer:
        writer.write(data[: len(data) // 2])
        for look in watch(log_path, every_s=0.01):
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
    log_path = tmp_path / "log_path.mlpd"
    with log_path.open("wb", buffering=0) as writer:
        writer.write(data[:20])
        rest = threading.Timer(0.1, writer.write, [data[20:]])
        rest.start()
        first = next(watch(log_path, every_s=0.01))
        rest.join()
    assert first.size_bytes == len(data)


def test_follow_does_not_wait_for_what_will_not_come(tmp_path: Path) -> None:
    path = tmp_path / "none.mlpd"
    with pytest.raises(pf.UnreadableInput):
        next(watch(path))
    path.write_bytes(WHOLE[0].read_bytes()[:20])
    with pytest.raises(pf.UnreadableInput):
        next(watch(path))
