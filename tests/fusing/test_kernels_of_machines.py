"""Recordings of two machines: each kernel has modules of its own at the same addresses, as perf shows of each alone."""

import re
import struct
import subprocess
from pathlib import Path

import pytest

import perf_crafting as crafting
import perfuse as pf
from needs import need
from perf_crafting import Attribute, PerfFile, Record

HOST, RELEASE, ARCH = 3, 4, 6
KERNEL = 1
MODULES = 0xFFFFFFFFC0000000


def recording(path: Path, release: str, kernel: int, module: str, time: int, *, chains: bool) -> Path:
    fields = crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD | (crafting.CALLCHAIN if chains else 0)
    event = Attribute.of((1, 0), fields, ids=[1]).with_size(128)

    def mapped(name: str, start: int, size: int) -> Record:
        body = struct.pack("<iiQQQ", -1, 0, start, size, 0 if start == MODULES else start) + crafting.text(name)
        return Record(crafting.MMAP, KERNEL, body + event.sample_id(2**32 - 1))

    records = [
        mapped("[kernel.kallsyms]_text", kernel, 0x1000000),
        mapped(f"/lib/modules/{release}/{module}.ko", MODULES, 0x4000),
        crafting.comm(event, 7, 7, "program"),
    ]
    for at, ip in enumerate((MODULES + 0x100, kernel + 0x1234, MODULES + 0x200)):
        chain = {"chain": [crafting.CONTEXT_KERNEL, ip, kernel + 0x2000]} if chains else {}
        records.append(crafting.sample(event, ip=ip, pid=7, tid=7, time=time + at, misc=KERNEL, **chain))
    texts = {HOST: f"host-{release}", RELEASE: release, ARCH: "x86_64"}
    features = {key: struct.pack("<I", 64) + text.encode().ljust(64, b"\0") for key, text in texts.items()}
    return PerfFile([event], records, features).write(path)


def answers_of_perf(path: Path) -> list[str]:
    """The file of each sample."""
    command = ["perf", "script", "-f", "-i", str(path), "-F", "time,dso,ip", "-G"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [line.rsplit("(", 1)[1].rstrip(")") for line in printed.splitlines() if line.strip()]


@pytest.mark.truth(recording="perf_data", path="api:Profile.sql", source="perf script of each recording alone")
@pytest.mark.parametrize("chains", [False, True])
@pytest.mark.parametrize("later_ns", [1, 1_000_000])
def test_modules_are_those_of_the_machine_that_was_recorded(tmp_path: Path, chains: bool, later_ns: int) -> None:
    need("perf")
    one = recording(tmp_path / "one.data", "6.1.0", 0xFFFFFFFF81000000, "disk", 1000, chains=chains)
    two = recording(tmp_path / "two.data", "6.5.0", 0xFFFFFFFF82000000, "net", 1000 + later_ns, chains=chains)
    for order in ((one, two), (two, one)):
        with pf.fuse(*order) as profile:
            rows = profile.sql("""
                SELECT samples.source_id, m.path FROM samples JOIN stacks USING (stack_id) JOIN frames USING (frame_id)
                LEFT JOIN mappings m USING (mapping_id) ORDER BY samples.source_id, ts_ns
            """).fetchall()
        # perf calls modules by their names.
        rows = [(source, re.sub(r".*/(\w+)\.ko$", r"[\1]", path.removesuffix("_text"))) for source, path in rows]
        assert rows == [(source, file) for source, path in enumerate(order) for file in answers_of_perf(path)]


def test_a_recording_without_the_place_of_its_kernel_has_that_of_another(tmp_path: Path) -> None:
    """As a part of one recording that was cut off."""
    one = recording(tmp_path / "one.data", "6.1.0", 0xFFFFFFFF81000000, "disk", 1000, chains=False)
    event = Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD, ids=[1]).with_size(128)
    samples = [crafting.sample(event, ip=MODULES + 0x100, pid=7, tid=7, time=5000, misc=KERNEL)]
    two = PerfFile([event], samples).write(tmp_path / "two.data")
    with pf.fuse(one, two) as profile:
        last = "SELECT m.path FROM samples JOIN stacks USING (stack_id) JOIN frames USING (frame_id) "
        last += "JOIN mappings m USING (mapping_id) WHERE samples.source_id = 1"
        assert profile.sql(last).fetchall() == [("/lib/modules/6.1.0/disk.ko",)]
