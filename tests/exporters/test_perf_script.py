"""The text of `perf script`: perf's own output for the same recordings."""

import io
import re
import struct
import subprocess
from pathlib import Path

import pytest
from fake_profile import FakeProfile
from small_profile import MS

import perf_crafting as crafting
import perfuse
from needs import need
from perf_crafting import Attribute, PerfFile
from perfuse.errors import ExportError, UsageError
from perfuse.exporters import export

SAMPLE = re.compile(r"^(.+?)\s+(-?\d+)/(\d+)\s+(?:\[\d+\]\s+)?(\d+\.\d+):\s+(\d+)\s+(.+?):(?:\w+:)?\s*$")
FRAME = re.compile(r"^\s+([0-9a-f]+) (.*) \((\S.*)\)$")

Paragraph = tuple[str, str, str, str, str, tuple[str, ...]]


def paragraphs(text: str) -> list[Paragraph]:
    """Command, pid, tid, time and period of each sample, and the addresses of its frames without inlined calls."""
    found = []
    for paragraph in filter(None, text.split("\n\n")):
        head, *lines = paragraph.strip("\n").split("\n")
        sample = SAMPLE.match(head.strip())
        assert sample, head
        frames = [FRAME.match(line) for line in lines]
        assert all(frames), lines
        ips = tuple(frame[1] for frame in frames if frame and frame[3] != "inlined")
        found.append((*sample.groups()[:5], ips))
    return found


@pytest.mark.parametrize("name", ["node20", "node24", "cpython313"])
def test_samples_are_those_of_perf(corpus: Path, tmp_path: Path, name: str) -> None:
    """Commands, threads, times, periods and addresses of every sample, as perf itself prints them."""
    need("perf")
    recording = corpus / "produced" / f"{name}.perf.data"
    fields = ["--ns", "-F", "comm,pid,tid,time,period,event,ip,sym,dso"]
    command = ["perf", "--buildid-dir", str(tmp_path), "script", "--no-inline", "-f", "-i", str(recording), *fields]
    theirs = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    out = io.BytesIO()
    export(perfuse.fuse(recording), out, to="perf-script")
    assert sorted(paragraphs(out.getvalue().decode())) == sorted(paragraphs(theirs))


def test_small_profile(small: FakeProfile) -> None:
    out = io.BytesIO()
    export(small, out, to="perf-script")
    first, *_, last = out.getvalue().decode().split("\n\n")[:-1]
    assert first.splitlines()[0] == f"app 10/10     5.000000000: {MS:10} cpu-clock: "
    assert [line.split()[1:] for line in first.splitlines()[1:]] == [
        ["run", "(/tmp/perf-10.map)"],
        ["main", "(/opt/app)"],
    ]
    assert last.startswith("app 10/10     5.006000000: ")
    assert "worker;1 10/11 " in out.getvalue().decode()
    assert "add (inlined)" in out.getvalue().decode()


def test_refusals(small: FakeProfile, traces: Path) -> None:
    with pytest.raises(ExportError, match="no samples"):
        export(FakeProfile(), io.BytesIO(), to="perf-script")
    with pytest.raises(UsageError, match="names"):
        export(small, io.BytesIO(), to="perf-script", names="short")
    with pytest.raises(ExportError, match="text of perf script has single samples"):
        export(perfuse.fuse(traces / "fdr" / "small-v5.xray"), io.BytesIO(), to="perf-script")


def test_code_that_a_perf_map_names_is_in_the_map_of_its_process(tmp_path: Path) -> None:
    """A map has code of a process without code objects: perf prints the path of the map itself."""
    attribute = Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD)
    records = []
    for pid in (41, 42):
        records += [
            crafting.comm(attribute, pid, pid, "php"),
            crafting.mmap2(attribute, pid, "//anon", 0x7000, 0x1000, prot=7),
        ]
        (tmp_path / f"perf-{pid}.map").write_text(f"7000 100 of_{pid}\n", encoding="ascii")
    records += [crafting.sample(attribute, ip=0x7010, pid=pid, tid=pid, time=1000 + pid) for pid in (41, 42)]
    recording = PerfFile([attribute], records).write(tmp_path / "perf.data")
    out = io.BytesIO()
    export(perfuse.fuse(recording), out, to="perf-script")
    lines = out.getvalue().decode().split("\n")
    assert [line.split()[1:] for line in lines if line.startswith("\t")] == [
        ["of_41", "(/tmp/perf-41.map)"],
        ["of_42", "(/tmp/perf-42.map)"],
    ]


def test_modules_of_the_kernel_have_the_names_that_perf_prints(tmp_path: Path) -> None:
    need("perf")
    attribute = Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD).with_size(128)
    first, size = 0xFFFFFFFFC0000000, 0x10000
    paths = "[ext4]", "/lib/modules/6.1.0/kernel/net/nf-tables.ko", "/lib/modules/6.1.0/kernel/fs/xfs/xfs.ko.xz"
    records = [crafting.comm(attribute, 41, 41, "app")]
    for place, path in enumerate(paths):
        body = struct.pack("<iIQQQ", -1, 0, first + place * size, size, 0) + crafting.text(path)
        records.append(crafting.Record(crafting.MMAP, 1, body + attribute.sample_id()))
    records += [
        crafting.sample(attribute, ip=first + place * size + 16, pid=41, tid=41, time=1000 + place, misc=1)
        for place in range(len(paths))
    ]
    recording = PerfFile([attribute], records).write(tmp_path / "perf.data")
    command = ["perf", "--buildid-dir", str(tmp_path), "script", "-f", "-i", str(recording), "-F", "ip,sym,dso"]
    theirs = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    out = io.BytesIO()
    export(perfuse.fuse(recording), out, to="perf-script")
    module = re.compile(r"\((.*)\)$", re.MULTILINE)
    assert module.findall(out.getvalue().decode()) == module.findall(theirs) == ["[ext4]", "[nf_tables]", "[xfs]"]
