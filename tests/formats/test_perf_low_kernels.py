"""Samples in kernels that share the lower half of addresses with programs, as on 32-bit machines: perf's own answer."""

import struct
import subprocess
from pathlib import Path

import pytest

import perf_crafting as crafting
import perfuse as pf
from needs import need
from perf_crafting import Attribute, PerfFile, Record

ARCH = 6
KERNEL, USER = 1, 2
"""What the processor executed, in the header of a sample."""
PROGRAM = "/bin/program-that-is-nowhere"


def answers_of_perf(path: Path) -> list[str]:
    """The file of each sample, `[kernel.kallsyms]` for the kernel."""
    command = ["perf", "script", "-f", "-i", str(path), "-F", "time,dso,ip", "-G"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [line.rsplit("(", 1)[1].rstrip(")") for line in printed.splitlines() if line.strip()]


def answers(path: Path) -> list[tuple[str, str]]:
    """The kind of the innermost frame of each sample, and its file."""
    with pf.fuse(path) as profile:
        return profile.sql("""
            SELECT frames.kind, mappings.path FROM samples JOIN stacks USING (stack_id) JOIN frames USING (frame_id)
            LEFT JOIN mappings USING (mapping_id) ORDER BY ts_ns
        """).fetchall()


@pytest.mark.parametrize("arch", ["i686", "armv7l", "s390x", None])
@pytest.mark.parametrize("with_chains", [False, True])
def test_what_the_processor_executed_decides(tmp_path: Path, arch: str | None, with_chains: bool) -> None:
    need("perf")
    fields = crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD | (crafting.CALLCHAIN if with_chains else 0)
    event = Attribute.of((1, 0), fields, ids=[1]).with_size(128)
    kernel = struct.pack("<iiQQQ", -1, 0, 0xC0008000, 0x800000, 0xC0008000) + crafting.text("[kernel.kallsyms]_text")
    records = [
        Record(crafting.MMAP, KERNEL, kernel + event.sample_id(2**32 - 1)),
        crafting.comm(event, 7, 7, "program"),
        crafting.mmap2(event, 7, PROGRAM, 0x8000, 0x4000),
        crafting.sample(
            event, ip=0xC04AD2BC, pid=7, tid=7, time=10, misc=KERNEL, chain=[crafting.CONTEXT_KERNEL, 0xC04AD2BC]
        ),
        crafting.sample(event, ip=0x9000, pid=7, tid=7, time=20, misc=USER, chain=[crafting.CONTEXT_USER, 0x9000]),
    ]
    features = {ARCH: struct.pack("<I", 64) + (arch or "").encode().ljust(64, b"\0")} if arch else {}
    path = PerfFile([event], records, features).write(tmp_path / "perf.data")
    assert answers_of_perf(path) == ["[kernel.kallsyms]", PROGRAM]
    assert answers(path) == [("kernel", "[kernel.kallsyms]_text"), ("native", PROGRAM)]


def test_a_precise_event_before_a_system_call_is_of_the_program(tmp_path: Path) -> None:
    """On other machines an address in the lower half is of the program, whatever the processor executed then."""
    event = Attribute.of((0, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD, ids=[1]).with_size(128)
    kernel = struct.pack("<iiQQQ", -1, 0, 0xFFFFFFFF81000000, 0x1000000, 0xFFFFFFFF81000000)
    records = [
        Record(crafting.MMAP, KERNEL, kernel + crafting.text("[kernel.kallsyms]_text") + event.sample_id(2**32 - 1)),
        crafting.mmap2(event, 7, PROGRAM, 0x8000, 0x4000),
        crafting.sample(event, ip=0x9000, pid=7, tid=7, time=10, misc=KERNEL),
    ]
    assert answers(PerfFile([event], records).write(tmp_path / "perf.data")) == [("native", PROGRAM)]
