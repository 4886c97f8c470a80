"""Methods whose code has no address in a Mono log, as of methods that several threads compile at once.

Names are those of mono's own perf map, and samples that nothing names are counted. Which samples these are, perf's list
and that map state.
"""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import perfuse as pf
from mono_programs import compiled, run_until_it_ends, under_profiler
from needs import need

PROGRAM = """
static class Busy {
    static int sink;
    static void Known(int n) { for (int k = 0; k < n; k++) sink = sink * 31 + (sink >> 3) + k; }
    static void Absent(int n) { for (int k = 0; k < n; k++) sink = sink * 33 + (sink >> 5) - k; }
    static void Main() { for (int k = 0; k < 30; k++) { Known(6000000); Absent(9000000); } }
}
"""


def without_address(log: bytes, name: bytes) -> bytes:
    """The log with a size of 0 for the code of a method: the number in front of its name, of as many bytes."""
    changed, at = bytearray(log), log.index(name + b"\0")
    changed[at - 1] = 0
    at -= 2
    while changed[at] & 0x80:
        changed[at] = 0x80
        at -= 1
    return bytes(changed)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of perf, the log and the perf map of one run."""
    need("perf")
    directory = tmp_path_factory.mktemp("without_addresses")
    (directory / "Busy.cs").write_text(PROGRAM, encoding="ascii")
    program, log = compiled(directory / "Busy.cs", directory, "-optimize+"), directory / "whole.mlpd"
    mono, *words = under_profiler(program, log, "nodefaults,jit")
    perf = ["perf", "record", "-q", "-N", "-k", "mono", "-e", "cpu-clock", "-F", "499", "-g", "-o", "perf.data"]
    run_until_it_ends([*perf, mono, "--jitmap", *words], log)
    pid = pf.open(log).header["pid"]
    shutil.move(f"/tmp/perf-{pid}.map", directory / "mono.map")
    (directory / "out.mlpd").write_bytes(without_address(log.read_bytes(), b"Busy:Absent (int)"))
    return directory


def samples_in(directory: Path, method: str) -> int:
    """Number of samples whose address is in the code of a method."""
    lines = (line.split(maxsplit=2) for line in (directory / "mono.map").read_text().splitlines())
    ((start, size),) = [(int(at, 16), int(size, 16)) for at, size, name in lines if name.startswith(method)]
    command = ["perf", "script", "-G", "-F", "ip", "-i", directory / "perf.data"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return sum(start <= int(ip, 16) < start + size for ip in printed)


def report(directory: Path, *options: str) -> str:
    """What `perfuse report` prints, without copies of libraries in perf's cache, which other recordings change."""
    command = [sys.executable, "-m", "perfuse", "report", "perf.data", "out.mlpd", *options]
    environment = {**os.environ, "HOME": str(directory)}
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=True).stdout


def report_of(directory: Path) -> tuple[dict[str, int], dict[str, int]]:
    """Samples by innermost function, and those without a name by reason."""
    samples = json.loads(report(directory, "--json", "--limit", "0"))["samples"]
    by_function = {one["name"]: one["samples"] for one in samples["top_self"]}
    unnamed: Counter[str] = Counter()
    for one in samples["unnamed"]:  # a row for each reason and file
        unnamed[one["reason"]] += one["leaf_samples"]
    return by_function, unnamed


def test_samples_without_a_name_are_counted(recorded: Path) -> None:
    by_function, unnamed = report_of(recorded)
    absent = samples_in(recorded, "Busy:Absent")
    assert absent > 50
    assert by_function["Busy:Known (int)"] == samples_in(recorded, "Busy:Known")
    assert unnamed["anonymous memory that no dump has code for at that time"] == absent
    (line,) = (line for line in report(recorded).splitlines() if line.startswith("Not named"))
    assert line.startswith(f"Not named  innermost frame of {sum(unnamed.values()):,} samples")


def test_the_perf_map_names_them(recorded: Path, tmp_path: Path) -> None:
    for name in ("perf.data", "out.mlpd"):
        os.link(recorded / name, tmp_path / name)
    pid = pf.open(tmp_path / "out.mlpd").header["pid"]
    shutil.copy(recorded / "mono.map", tmp_path / f"perf-{pid}.map")
    by_function, unnamed = report_of(tmp_path)
    counts = [count for name, count in by_function.items() if name.startswith("Busy:Absent")]
    assert counts == [samples_in(recorded, "Busy:Absent")]
    assert not any("no dump has code" in reason and count for reason, count in unnamed.items())
