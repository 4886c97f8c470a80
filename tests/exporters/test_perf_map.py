"""Perf maps: exact lines, and perf itself naming code by them."""

import io
import os
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fake_profile import FakeProfile

import perfuse
from needs import need
from perfuse.errors import ExportError
from perfuse.exporters import export


def perf_map(profile: Any, **options: Any) -> str:
    out = io.BytesIO()
    export(profile, out, to="perf-map", **options)
    return out.getvalue().decode()


def test_newer_code_wins_and_moves_count(small: FakeProfile) -> None:
    # The turbofan code overlaps the end of the sparkplug code; the stub has moved.
    assert perf_map(small) == "7f0000001080 200 JS:*run app.js:7:1\n7f0000003000 40 Builtin:Entry\n"


def test_an_instant(small: FakeProfile) -> None:
    assert perf_map(small, at=0) == "7f0000001000 100 JS:*run app.js:7:1\n7f0000002000 40 Builtin:Entry\n"
    assert perf_map(small, at=0.001) == "7f0000001080 200 JS:*run app.js:7:1\n7f0000002000 40 Builtin:Entry\n"


def test_a_process_must_be_clear(small: FakeProfile, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="process 9 has no JIT code"):
        perf_map(small, pid=9)
    with pytest.raises(ExportError, match="no process has JIT code"):
        perf_map(FakeProfile())
    small.add("processes", process_id=1, pid=20, name="other")
    small.add(
        "code_objects",
        code_object_id=9,
        function_id=2,
        process_id=1,
        create_ns=0,
        start_address=16,
        size_bytes=1,
    )
    with pytest.raises(ExportError, match="2 have JIT code: 10, 20"):
        perf_map(small)
    assert perf_map(small, pid=20) == "10 1 add\n"
    export(small, f"{tmp_path}/maps/", to="perf-map")
    assert {file.name for file in (tmp_path / "maps").iterdir()} == {"perf-10.map", "perf-20.map"}
    assert (tmp_path / "maps" / "perf-20.map").read_text() == "10 1 add\n"
    assert [file.name for file in tmp_path.iterdir()] == ["maps"]


_PROGRAM = """
function hot(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) | 0; return s; }
function outer(n) { let s = 0; for (let i = 0; i < n; i++) s ^= hot(1000 + i); return s; }
let t = 0; while (process.cpuUsage().user < 900e3) t ^= outer(50); console.log(t);
"""


def test_perf_names_samples_by_it(tmp_path: Path) -> None:
    """A recording without injection: `perf script` finds the map and names the hot functions, none before."""
    need("perf", "node")
    (tmp_path / "p.js").write_text(_PROGRAM)
    recorder = ["perf", "record", "-qN", "-e", "cpu-clock", "-k", "mono", "-o", "perf.data", "--"]
    record = [*recorder, "node", "--perf-prof", "p.js"]
    subprocess.run(record, cwd=tmp_path, capture_output=True, check=True)
    (dump,) = tmp_path.glob("jit-*.dump")
    pid = int(dump.stem.removeprefix("jit-"))
    assert num_named(symbols(tmp_path, pid)) == 0
    map_file = Path(f"/tmp/perf-{pid}.map")
    try:
        export(perfuse.fuse(dump), map_file)
        after = symbols(tmp_path, pid)
    finally:
        map_file.unlink(missing_ok=True)
    assert num_named(after) > 0.5 * sum(after.values()), after.most_common(5)


def num_named(symbols: Counter[str]) -> int:
    """Samples in the program's own functions."""
    return sum(count for name, count in symbols.items() if re.match(r"JS:.'?(hot|outer) ", name))


def symbols(directory: Path, pid: int) -> Counter[str]:
    script = ["perf", "script", "-i", "perf.data", "-F", "ip,sym", "--pid", str(pid)]
    text = subprocess.run(script, cwd=directory, capture_output=True, text=True, check=True, env=os.environ).stdout
    return Counter(line.split(maxsplit=1)[1] for line in text.splitlines() if line.strip())
