"""What benchmarks measure is the command, not the benchmark."""

import shutil
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import measure

    return measure


def test_the_memory_of_a_command_is_its_own(measure, tmp_path: Path) -> None:
    """`true` takes one megabyte, also where it is started by a process of 200; an allocation of 100 MB is measured."""
    held = bytearray(b"1") * (200 << 20)
    cost = measure.run(["true"], tmp_path / "out", tmp_path)
    assert cost.rss_bytes < 8 << 20
    allocated = [sys.executable, "-c", "bytearray(b'1') * (100 << 20); print('done')"]
    cost = measure.run(allocated, tmp_path / "out", tmp_path)
    assert 100 << 20 < cost.rss_bytes < 140 << 20
    assert (tmp_path / "out").read_text(encoding="ascii") == "done\n"
    assert 0 < cost.cpu_s < 60
    assert len(held) == 200 << 20


def test_new_files_are_counted_and_failures_raised(measure, tmp_path: Path) -> None:
    made = tmp_path / "made"
    cost = measure.run(["touch", made], tmp_path / "out", tmp_path)
    assert cost.num_files == 1
    with pytest.raises(measure.CommandError, match="exit code 3"):
        measure.run(["sh", "-c", "exit 3"], tmp_path / "out", tmp_path)
    assert measure.run(["sh", "-c", "exit 3"], tmp_path / "out", tmp_path, accept=(3,)).num_files == 0
    with pytest.raises(measure.CommandError, match="exit code 127"):
        measure.run([tmp_path / "absent"], tmp_path / "out", tmp_path)
