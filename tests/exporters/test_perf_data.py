"""perf.data with its code mapped: perf reports, annotates and lists by it.

tests/corpus/test_injected.py holds every frame of every recording of the corpus.
"""

import gzip
import re
import stat
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import perfuse
from needs import need
from perfuse.errors import ExportError, UsageError
from perfuse.exporters import export

ROOT = Path(__file__).parents[2]
POSTCARDS = ROOT / "examples" / "postcards"


@pytest.fixture(scope="module")
def postcards() -> perfuse.Profile:
    return perfuse.fuse(POSTCARDS / "perf.data.gz", POSTCARDS / "jit-32015.dump.gz")


@pytest.fixture(scope="module")
def named(postcards: perfuse.Profile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("named") / "named.perf.data"
    postcards.export(path)
    return path


def test_the_files(named: Path) -> None:
    assert {path.name for path in named.parent.iterdir()} == {named.name, f"{named.name}.jit-32015.elf"}
    assert stat.S_IMODE(named.stat().st_mode) == 0o600


def test_report_counts_functions_as_perfuse_does(postcards: perfuse.Profile, named: Path) -> None:
    need("perf")
    lines = _perf(named, "report", "--stdio", "--no-children", "-g", "none", "-F", "sample,sym,dso", "-t", "\t")
    rows = [line.split("\t") for line in lines.splitlines() if line and not line.startswith("#")]
    elf = f"{named.name}.jit-32015.elf"
    printed = Counter[str]()
    for count, symbol, dso in rows:
        if dso.strip() == elf:
            printed[symbol.strip().removeprefix("[.] ")] += int(count)
    ours = postcards.sql("""
        SELECT linkage_name::VARCHAR, count(*) FROM samples JOIN stacks USING (stack_id) JOIN frames USING (frame_id)
        JOIN code_objects c USING (code_object_id) JOIN functions f ON f.function_id = c.function_id
        GROUP BY 1
    """).fetchall()
    assert printed == Counter(dict(ours))
    assert printed.total() > 100


def test_annotate_shows_machine_code_with_its_lines(postcards: perfuse.Profile, named: Path) -> None:
    need("perf", "objdump")
    ((name, line),) = postcards.sql("""
        SELECT linkage_name::VARCHAR, mode(r.line) FROM samples JOIN stacks USING (stack_id)
        JOIN frames r USING (frame_id) JOIN code_objects c USING (code_object_id)
        JOIN functions f ON f.function_id = c.function_id
        WHERE c.tier = 'turbofan' AND inline_depth = 0 GROUP BY 1 ORDER BY count(*) DESC LIMIT 1
    """).fetchall()
    text = _perf(named, "annotate", "--stdio", "-l", "-s", name)
    assert f"<{name}>:" in text
    assert f"postcards.js:{line}" in text


def test_a_recording_made_now(tmp_path: Path) -> None:
    """From `perf record` to the lines of a function, by the command line alone."""
    need("perf", "node")
    (tmp_path / "p.js").write_text(_PROGRAM)
    recorder = ["perf", "record", "-qN", "-e", "cpu-clock", "-F", "800", "-k", "mono", "-g", "-o", "perf.data", "--"]
    command = [*recorder, "node", "--perf-prof", "--no-turbo-inlining", "p.js"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    from perfuse.cli import run

    assert run(["convert", str(tmp_path), "-o", str(tmp_path / "out.perf.data")]) == 0
    script = _perf(tmp_path / "out.perf.data", "script", "--no-inline", "-F", "ip,sym,srcline", "-G")
    hot = Counter(re.findall(r"JS:\*hot \S+/p\.js:2:13.*\n\s+(p\.js:\d+)", script))
    assert set(hot) <= {"p.js:2", "p.js:3", "p.js:4", "p.js:5", "p.js:6"}
    assert hot["p.js:4"] > 0.5 * hot.total() > 50, hot


_PROGRAM = """// `hot` is busy in line 4.
function hot(n) {
  let s = 0;
  for (let i = 0; i < n; i++) s = (s * 31 + (s >> 3) % 17) | 0;
  return s;
}
let t = 0;
// Time of the processor, so that a busy machine gives as many samples.
while (process.cpuUsage().user < 700e3) t ^= hot(20000);
console.log(t);
"""


def test_a_part_of_a_recording_is_refused(postcards: perfuse.Profile, tmp_path: Path) -> None:
    for part in (postcards.between(0, 1), postcards.thread("node")):
        with pytest.raises(ExportError, match="all samples of the recording"):
            export(part, tmp_path / "x.perf.data")
    assert list(tmp_path.iterdir()) == []


def test_refusals(postcards: perfuse.Profile, tmp_path: Path) -> None:
    path = tmp_path / "x.perf.data"
    perf_data = gzip.decompress((POSTCARDS / "perf.data.gz").read_bytes())
    other = ROOT / "tests" / "cli" / "testdata" / "jit-2345.dump"
    with pytest.raises(ExportError, match=r"there is no perf\.data to put the code into"):
        export(perfuse.fuse(POSTCARDS / "jit-32015.dump.gz"), path)
    with pytest.raises(ExportError, match=r"there are 2 perf\.data files"):
        export(perfuse.fuse(perf_data, perf_data, other), path)
    with pytest.raises(ExportError, match=r"no process of the perf\.data has JIT code"):
        export(perfuse.fuse(perf_data), path)
    with pytest.raises(UsageError, match=r"perf does not read \.gz"):
        export(postcards, tmp_path / "x.perf.data.gz")
    assert list(tmp_path.iterdir()) == []


def test_files_are_replaced_whole(postcards: perfuse.Profile, tmp_path: Path) -> None:
    path, elf = tmp_path / "x.perf.data", tmp_path / "x.perf.data.jit-32015.elf"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("not to be written to")
    elf.symlink_to(elsewhere)
    assert export(postcards, path) == (str(elf), str(path))
    assert not elf.is_symlink()
    assert elsewhere.read_text() == "not to be written to"
    before = path.read_bytes(), elf.read_bytes()
    export(postcards, path)
    assert (path.read_bytes(), elf.read_bytes()) == before
    assert {file.name for file in tmp_path.iterdir()} == {path.name, elf.name, elsewhere.name}


def _perf(path: Path, verb: str, *options: str) -> str:
    done = subprocess.run(["perf", verb, "-i", path, *options], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()
