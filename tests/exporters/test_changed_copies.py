"""Copies of recordings with changed bytes: every exporter writes them, or refuses them with an error of its own.

The changes are chosen with the seed of property tests, `pytest --hypothesis-seed=N`; PERFUSE_MUTATIONS is the number of
copies of each recording.
"""

import os
import random
import warnings
from pathlib import Path

import pytest

import perfuse as pf
from perfuse.exporters import TARGETS

ROOT = Path(__file__).parents[2]
RECORDINGS = (
    "tests/cli/testdata/jit-2345.dump",
    "crates/formats/perf_data/src/testdata/offcpu.perf.data",
    "crates/formats/perf_data/src/testdata/branches.perf.data",
    "crates/formats/xray/src/testdata/fdr5.xray",
    "crates/formats/mono/src/testdata/v11-bt.mlpd",
)
EXTREMES = (bytes(8), b"\xff" * 8, b"\xff" * 7 + b"\x7f", bytes(7) + b"\x80", bytes(4) + b"\xff" * 4)


def changed(data: bytes, numbers: random.Random) -> bytes:
    """A copy with one to four changes: bytes, numbers at the limits of their types, pieces that are left out."""
    copy = bytearray(data)
    for _ in range(numbers.randint(1, 4)):
        at = numbers.randrange(len(copy))
        kind = numbers.randrange(5)
        if kind == 0:
            copy[at] = numbers.randrange(256)
        elif kind == 1:
            del copy[at : at + numbers.randrange(64)]
        else:
            copy[at : at + 8] = numbers.choice(EXTREMES)
    return bytes(copy)


@pytest.mark.parametrize("recording", RECORDINGS)
def test_every_target_writes_changed_copies(recording: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    numbers = random.Random(int(request.config.getoption("--hypothesis-seed") or 1))
    data = (ROOT / recording).read_bytes()
    num_written = 0
    for copy in range(int(os.environ.get("PERFUSE_MUTATIONS", "2"))):
        file = tmp_path / f"{copy}-{Path(recording).name}"
        file.write_bytes(changed(data, numbers))
        try:
            profile = pf.fuse(file)
        except pf.UnreadableInput:
            continue
        for target in TARGETS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    profile.export(tmp_path / f"{copy}-{target.name}", to=target.name)
                except pf.InternalError as error:
                    pytest.fail(f"{target.name} of {file}: {error}")
                except pf.PerfuseError:
                    continue
            num_written += 1
    assert num_written > 0
