"""Code that the kernel adds while it is recorded, such as BPF programs: KSYMBOL records name it, as in perf."""

from __future__ import annotations

import io
import re
import struct
import subprocess
from pathlib import Path

import perf_crafting as crafting
import perfuse as pf
from needs import need
from perf_crafting import Attribute, PerfFile, Record
from perfuse.exporters import export

ADDED = 0xFFFFFFFFC1000000
KSYMBOL, BPF, OUT_OF_LINE, UNREGISTER = 17, 1, 2, 1


def test_added_code_has_the_names_that_perf_prints(tmp_path: Path) -> None:
    """One program is there from the start; another one is removed, and its address has a third one later."""
    need("perf")
    attribute = Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD).with_size(128)

    def symbol(name: str, place: int, time: int, kind: int = BPF, flags: int = 0) -> Record:
        body = struct.pack("<QIHH", ADDED + place, 0x80, kind, flags) + crafting.text(name)
        return Record(KSYMBOL, 1, body + attribute.sample_id(0, 0, time))

    def sample(place: int, time: int) -> Record:
        return crafting.sample(attribute, ip=ADDED + place, pid=41, tid=41, time=time, misc=1)

    kernel = struct.pack("<iIQQQ", -1, 0, 0xFFFFFFFF81000000, 0x1000000, 0xFFFFFFFF81000000)
    kernel += crafting.text("[kernel.kallsyms]_text") + attribute.sample_id()
    records = [
        Record(crafting.MMAP, 1, kernel),
        symbol("bpf_prog_1_first", 0, 0),
        crafting.comm(attribute, 41, 41, "app"),
        sample(16, 1000),
        symbol("bpf_prog_2_second", 0x1000, 1001),
        symbol("kprobe_optinsn_page", 0x2000, 1002, OUT_OF_LINE),
        sample(0x1010, 1003),
        sample(0x2010, 1004),
        symbol("bpf_prog_2_second", 0x1000, 1005, flags=UNREGISTER),
        symbol("bpf_prog_3_third", 0x1000, 1006),
        sample(0x1010, 1007),
        sample(0x7F, 1008),
    ]
    recording = PerfFile([attribute], records).write(tmp_path / "perf.data")
    command = ["perf", "--buildid-dir", str(tmp_path), "script", "-f", "-i", str(recording), "-F", "time,ip,sym,dso"]
    theirs = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    out = io.BytesIO()
    with pf.fuse(recording) as profile:
        export(profile, out, to="perf-script")
        kinds = profile.sql("SELECT DISTINCT kind::VARCHAR FROM frames").fetchall()
    frame = re.compile(r"[0-9a-f]{16} (\S+) \((\S+)\)$", re.MULTILINE)
    names = ["bpf_prog_1_first", "bpf_prog_2_second", "kprobe_optinsn_page", "bpf_prog_3_third", "bpf_prog_1_first"]
    assert frame.findall(out.getvalue().decode()) == frame.findall(theirs)
    assert [name for name, _ in frame.findall(theirs)] == names
    assert kinds == [("kernel",)]
