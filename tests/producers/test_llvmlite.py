"""A JIT in Python, run under perf: perf's own tools, and perfuse, show its functions by name and line."""

import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

import perfuse as pf
from needs import need

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "llvmlite_jit" / "jit.py"
GUIDE = ROOT / "docs" / "guides" / "python-jit.md"


@dataclass(frozen=True)
class Recorded:
    """Files that a run wrote."""

    perf_data: Path
    dump: Path

    def lines(self) -> dict[int, list[tuple[int, int]]]:
        """Offsets and lines of each code object."""
        rows = pf.open(self.dump).tables["line_rows"].to_arrow()
        found: dict[int, list[tuple[int, int]]] = {}
        columns = (rows[name].to_pylist() for name in ("code_object_id", "code_offset", "line"))
        for code, offset, line in zip(*columns, strict=True):
            found.setdefault(code, []).append((offset, line))
        return found


def record(directory: Path, *program: str) -> Recorded:
    """Runs a program under perf, in a directory of its own."""
    need("perf")
    perf_data = directory / "perf.data"
    perf = ["perf", "record", "-qN", "-e", "cpu-clock", "-F", "499", "-k", "mono", "-g", "-o", str(perf_data)]
    command = [*perf, "--", sys.executable, *program]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    (dump,) = directory.glob("jit-*.dump")
    return Recorded(perf_data, dump)


def perf(directory: Path, *arguments: str) -> str:
    command = ["perf", *arguments]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=600, check=True).stdout


@pytest.fixture(scope="module")
def llvmlite_run(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    pytest.importorskip("llvmlite")
    pytest.importorskip("elftools")
    return record(tmp_path_factory.mktemp("llvmlite"), str(EXAMPLE), "1")


def shares(directory: Path, data: str) -> dict[str, float]:
    """Percent of samples by function, as perf report prints it."""
    text = perf(directory, "report", "--stdio", "--no-children", "-g", "none", "--sort", "sym", "-i", data)
    return {name: float(share) for share, name in re.findall(r"([\d.]+)%\s+\[\.\] (\S+)", text)}


def test_perf_shows_names_and_lines(llvmlite_run: Recorded) -> None:
    directory = llvmlite_run.perf_data.parent
    perf(directory, "inject", "--jit", "-i", "perf.data", "-o", "perf.jit.data")
    found = shares(directory, "perf.jit.data")
    # They run for a second of processor time, and the rest is spent on imports and compilation.
    assert found["kernels.primes"] > 2
    assert found["kernels.collatz"] > 2

    script = perf(directory, "script", "-G", "-F", "ip,sym,srcline", "-i", "perf.jit.data")
    printed = re.findall(r"([0-9a-f]+) kernels\.(\w+)\s+kernels\.py:(\d+)", script)
    assert len(printed) > 50
    functions = {"collatz": 0, "primes": 1}
    rows = llvmlite_run.lines()
    for address, function, line in printed:
        # perf 6.1 prints addresses within the file it made, whose code begins at 0x80.
        offset = int(address, 16) & 0xFFF
        holding = [row for start, row in rows[functions[function]] if start <= offset - 0x80]
        if int(address, 16) < 0x1000 and holding[-1] > 0:
            assert int(line) == holding[-1], (address, function)
    inner_loops = Counter(int(line) for _, _, line in printed)
    assert sum(inner_loops[line] for line in (*range(10, 17), *range(28, 32))) > len(printed) / 2


def test_lines_are_those_of_the_source(llvmlite_run: Recorded) -> None:
    source = (EXAMPLE.parent / "kernels.py").read_text().splitlines()
    starts = [number for number, text in enumerate(source, 1) if text.startswith("def ")]
    ranges = dict(enumerate(zip(starts, [*starts[1:], len(source) + 1], strict=True)))
    for code, rows in llvmlite_run.lines().items():
        known = {line for _, line in rows if line}
        assert known <= set(range(*ranges[code])), code
        (division,) = (n for n in range(*ranges[code]) if " % " in source[n - 1])
        assert division in known


def test_perfuse_shows_the_same_without_inject(llvmlite_run: Recorded) -> None:
    profile = pf.fuse(llvmlite_run.perf_data)
    query = """
        SELECT f.name, count(*) FROM samples s JOIN stacks t USING (stack_id)
        JOIN frames USING (frame_id) JOIN functions f USING (function_id) GROUP BY 1
    """
    counts = dict(profile.sql(query).fetchall())
    total = sum(counts.values())
    named = {name.removeprefix("kernels."): count / total for name, count in counts.items()}
    assert named["primes"] > 0.02
    assert named["collatz"] > 0.02


def test_the_numba_program_of_the_guide_is_named(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    pytest.importorskip("elftools")
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.S)
    (program,) = (block for block in blocks if "numba" in block)
    (tmp_path / "program.py").write_text(program)
    run = record(tmp_path, "program.py")
    perf(tmp_path, "inject", "--jit", "-i", "perf.data", "-o", "perf.jit.data")
    assert shares(tmp_path, "perf.jit.data")["count_primes"] > 2
    body = program.splitlines()
    first = next(n for n, text in enumerate(body, 1) if text.startswith("def count_primes"))
    known = {line for rows in run.lines().values() for _, line in rows if line}
    assert known <= set(range(first - 1, first + 11))
    assert any("% divisor" in body[line - 1] for line in known)
