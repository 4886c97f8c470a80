"""Addresses in kernel modules that have no symbols here: labels name the module, as perf's list of samples does."""

import struct
from pathlib import Path

import pytest

import perf_crafting as crafting
import perfuse as pf
from perf_crafting import Attribute, PerfFile, Record
from perfuse.analysis.weights import Weights

PID = 4242
KERNEL, MODULES = 0xFFFFFFFF81000000, 0xFFFFFFFFC0200000
PATHS = (
    "/lib/modules/6.1.0-none/kernel/fs/none/none-fs.ko.xz",
    "/lib/modules/6.1.0-none/kernel/net/nonet.ko",
    "[bare]",
)
SIZE = 0x10000


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A sample in the kernel, one in the first module, two in the second, and so on."""
    attribute = Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD)

    def mapped(path: str, start: int, size: int) -> Record:
        body = struct.pack("<IIQQQ", 0xFFFFFFFF, 0, start, size, 0) + crafting.text(path)
        return Record(crafting.MMAP, 1, body + attribute.sample_id(0xFFFFFFFF, 0))

    records = [mapped("[kernel.kallsyms]_none", KERNEL, 0x1000000), crafting.comm(attribute, PID, PID, "busy")]
    starts = [MODULES + place * SIZE for place in range(len(PATHS))]
    records += [mapped(path, start, SIZE) for path, start in zip(PATHS, starts, strict=True)]
    time = 1
    for number, start in enumerate([KERNEL, *starts]):
        for _ in range(max(number, 1)):
            records.append(crafting.sample(attribute, ip=start + 0x123, pid=PID, tid=PID, time=time, misc=1))
            time += 1
    return PerfFile([attribute], records).write(tmp_path / "perf.data")


def test_labels_name_modules(recording: Path) -> None:
    """perf 7.2.13 has these modules and numbers in `report --sort dso -n`; perf 6.1 refuses the file."""
    expected = {"[unknown] kernel": 1, "[unknown] [none_fs]": 1, "[unknown] [nonet]": 2, "[unknown] [bare]": 3}
    with pf.fuse(recording) as profile:
        assert {row.name: row.self_weight for row in Weights(profile).functions()} == expected
        collapsed = recording.with_suffix(".collapsed")
        profile.export(collapsed, to="collapsed")
    lines = dict(line.rsplit(" ", 1) for line in collapsed.read_text().splitlines())
    assert {stack.rsplit(";", 1)[-1]: int(count) for stack, count in lines.items()} == expected
