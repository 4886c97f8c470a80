"""The rate of the counter and the stated error of times, where the true rate of the machine's counter is known.

The runtime states the processor's highest frequency in the header. A log confirms or corrects that by the wall times
of its buffers, of which short logs have one.
"""

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any, Literal

import pytest

import perfuse

from .command import output
from .kinds import CORPUS

WALL_NS = 2000
"""Wall times are truncated to microseconds, and the counter is read after them."""


@dataclass(frozen=True)
class Known:
    """A log and the true rate of the counter that it was recorded with."""

    path: Path
    hz: int

    def buffers(self) -> list[bytes]:
        """The buffers, each with the record that states its size."""
        data, at, found = self.path.read_bytes(), 32, []
        while at < len(data):
            size = 16 + struct.unpack_from("<Q", data, at + 1)[0]
            found.append(data[at : at + size])
            at += size
        return found

    def wall_ns(self, tsc: int) -> float:
        """Time of the wall clock: the line of the true rate through the wall times of all buffers."""
        return self._at_zero_ns + tsc * 1e9 / self.hz

    @cached_property
    def _at_zero_ns(self) -> float:
        offsets = []
        for buffer in self.buffers():
            seconds, microseconds = struct.unpack_from("<qi", buffer, 16 + 16 + 1)
            (first,) = struct.unpack_from("<Q", buffer, 4 * 16 + 3)
            offsets.append(seconds * 1e9 + microseconds * 1e3 - first * 1e9 / self.hz)
        return median(offsets)


PAIR = Known(CORPUS / "found" / "xray" / "pair" / "fdr.xray", 2_445_426_000)
WRONG = Known(CORPUS / "xray" / "fdr" / "wrong-frequency-v5.xray", 2_596_126_000)
RIGHT = Known(CORPUS / "xray" / "fdr" / "threads4-v5.xray", 2_596_126_000)


def ticks(buffer: bytes) -> Iterator[int]:
    """The counter at each function record of a buffer."""
    at, now = 16, 0
    while at < len(buffer):
        (first,) = struct.unpack_from("<I", buffer, at)
        if not first & 1:
            now += struct.unpack_from("<I", buffer, at + 4)[0]
            yield now
            at += 8
            continue
        kind = first >> 1 & 0x7F
        if kind in (2, 3):
            (now,) = struct.unpack_from("<Q", buffer, at + (3 if kind == 2 else 1))
        elif kind == 5:
            size, delta = struct.unpack_from("<ii", buffer, at + 1)
            now += delta
            at += size
        at += 16


@pytest.mark.truth(
    recording="xray_fdr",
    path=["query", "api:Profile.sql"],
    source="the true rate of the machine's counter, applied to a walk over the file",
)
@pytest.mark.parametrize("rate", ["auto", "header"])
@pytest.mark.parametrize(
    ("known", "num_buffers"),
    [(PAIR, 1), *((WRONG, n) for n in (1, 2, 3, 5, 9, 17)), *((RIGHT, n) for n in (1, 2, 3, 5, 10, 21))],
    ids=lambda one: one.path.stem if isinstance(one, Known) else str(one),
)
def test_times_are_within_their_stated_error(
    tmp_path: Path, known: Known, num_buffers: int, rate: Literal["auto", "header"]
) -> None:
    if not known.path.exists():
        pytest.skip(f"no {known.path}")
    buffers = known.buffers()[:num_buffers]
    log = tmp_path / "log.xray"
    log.write_bytes(known.path.read_bytes()[:32] + b"".join(buffers))
    profile = perfuse.fuse(log, tsc_hz=rate)
    ((stated,),) = profile.sql("SELECT uncertainty_ns FROM clocks").fetchall()
    rows = profile.sql("SELECT ts_ns FROM call_events WHERE kind <> 'argument' ORDER BY record_offset").fetchall()
    true = [known.wall_ns(tsc) for buffer in buffers for tsc in ticks(buffer)]
    assert len(rows) == len(true)
    off = max(abs(found - ns) for (found,), ns in zip(rows, true, strict=True))
    assert off <= stated + WALL_NS
    span = max(true) - min(true)
    if num_buffers == 17 and rate == "auto":
        assert stated < span / 1000


@pytest.mark.parametrize("rate", [-1, 0, 1 << 64, 1.5, float("nan"), "fast"])
def test_a_rate_is_a_number_of_ticks(rate: Any) -> None:
    with pytest.raises(perfuse.UsageError, match="ticks per second"):
        perfuse.fuse(PAIR.path, tsc_hz=rate)


@pytest.mark.truth(
    recording="xray_fdr",
    path=["info", "query"],
    source="the true rate of the machine's counter, and a header that states another one",
)
@pytest.mark.parametrize("num_buffers", [4, 5, 8])
def test_a_few_buffers_contradict_a_wrong_header(tmp_path: Path, num_buffers: int) -> None:
    """Buffers of less than a millisecond give a rate with an error of some percent, which 3.7 GHz is not within."""
    if not RIGHT.path.exists():
        pytest.skip(f"no {RIGHT.path}")
    header = bytearray(RIGHT.path.read_bytes()[:32])
    struct.pack_into("<Q", header, 8, 3_700_000_000)
    log = tmp_path / "log.xray"
    log.write_bytes(header + b"".join(RIGHT.buffers()[:num_buffers]))
    clock = perfuse.open(log).clock
    assert clock.hz_source == "estimated"
    assert clock.hz == pytest.approx(RIGHT.hz, rel=0.15)
    assert "measured in the log itself" in output("info", log)


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic"],
    path=["info", "report", "report:calls"],
    source="the true rate of the machine's counter; sleeps of 10 ms that take 9.5 ms by the header's rate",
)
def test_a_rate_that_nothing_confirms_is_called_unverified() -> None:
    """Logs with one wall time or none, whose header is wrong by 6 % or right: they do not contain which."""
    basic = CORPUS / "xray" / "basic" / "basic-small-v3.xray"
    if not PAIR.path.exists() or not basic.exists():
        pytest.skip("no corpus")
    documents: dict[Path, Any] = {
        path: json.loads(output("report", path, "--json", "--limit", 0)) for path in (PAIR.path, basic)
    }
    for path, document in documents.items():
        (clock,) = document["clocks"]
        assert (clock["hz_source"], clock["hz"]) == ("unverified", clock["stated_hz"])
        for verb in ("info", "report"):
            assert "from the header, unverified" in output(verb, path)
    (clock,) = documents[PAIR.path]["clocks"]
    sleeps = next(one for one in documents[PAIR.path]["functions"] if one["num_calls"] == 20)
    assert sleeps["min_ns"] < 10_000_000, "the header is wrong"
    whole = next(one for one in documents[PAIR.path]["functions"] if one["num_calls"] == 1)
    assert clock["uncertainty_ns"] > 0.06 * whole["total_ns"]
    for known, source in ((WRONG, "estimated"), (RIGHT, "header")):
        (clock,) = json.loads(output("report", known.path, "--json"))["clocks"]
        assert clock["hz_source"] == source
        assert clock["hz"] == pytest.approx(known.hz, rel=1e-5)
        assert "unverified" not in output("report", known.path)
