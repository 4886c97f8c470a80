"""Samples of instructions, compared with perf: its own join of recorded dumps, and `perf annotate`."""

from __future__ import annotations

import gzip
import re
import subprocess
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import perfuse
from needs import need
from perfuse.analysis.function_search import SeveralFunctions
from perfuse.profile import Profile
from perfuse.table import Columns

from .command import json_of
from .kinds import CORPUS, Kind
from .outside import jitdump, perf_data
from .producers import PROGRAMS, run_tool

EXPECTED = CORPUS / "jitdump" / "expected"
JITTED = re.compile(r"\s+[0-9a-f]+ .*\+0x([0-9a-f]+) \(.*jitted-\d+-(\d+)\.so\)$")


@cache
def leaves_of_perf(stem: str) -> dict[int, Counter[int]]:
    """Samples by code index and offset, as `perf script` printed them of the output of `perf inject --jit`."""
    found: dict[int, Counter[int]] = defaultdict(Counter)
    text = gzip.decompress((EXPECTED / f"{stem}.script.txt.gz").read_bytes()).decode(errors="replace")
    for sample in text.split("\n\n"):
        lines = sample.strip("\n").split("\n")
        leaf = JITTED.match(lines[1]) if len(lines) > 1 else None
        if leaf:
            found[int(leaf[2])][int(leaf[1], 16)] += 1
    return found


KERNEL = 1 << 63


@dataclass(slots=True)
class Walked:
    """Samples of a load: by offset those taken there, and for each sample with it on the stack all offsets."""

    leaves: Counter[int] = field(default_factory=Counter)
    stacks: list[set[int]] = field(default_factory=list)


def walked(kind: Kind, only: str | None = None) -> dict[int, Walked]:
    """Samples by the number of the load, from walks over dump and recording.

    With `only`, those that have code of that name on their stack.

    A caller's frame has the address to which it returns: its call contains the byte before. The first frame, and the
    first one of the program below those of the kernel, were interrupted.
    """
    dump = jitdump(kind.paths[-1])
    found: dict[int, Walked] = defaultdict(Walked)
    candidates = cache(
        lambda at: [n for n, load in enumerate(dump.loads) if load.address <= at < load.address + load.size]
    )
    for sample in perf_data(kind.paths[0]).samples:
        on_stack: dict[int, set[int]] = defaultdict(set)
        chain = sample.chain or (sample.ip,)
        leaf: tuple[int, int] | None = None
        for depth, address in enumerate(chain):
            at = address - (depth > 0 and chain[depth - 1] < KERNEL)
            # The last load before the sample.
            numbers = [number for number in candidates(at) if dump.loads[number].time_ns <= sample.time_ns]
            if not numbers:
                continue
            number = max(numbers, key=lambda number: (dump.loads[number].time_ns, number))
            start = dump.loads[number].address
            on_stack[number].add(at - start)
            if depth == 0:
                leaf = number, at - start
        if only is not None and not any(dump.loads[number].name == only for number in on_stack):
            continue
        if leaf is not None:
            found[leaf[0]].leaves[leaf[1]] += 1
        for number, offsets in on_stack.items():
            found[number].stacks.append(offsets)
    return found


Row = tuple[int, int, int, int]
"""Offset and size of an instruction, samples there, samples with it on the stack."""


def annotated(kind: Kind, profile: Profile, path: str, key: int) -> list[Row]:
    """The instructions of a code object by the command line or the Python interface."""
    if path == "annotate":
        document = json_of("annotate", *kind.paths, f"c{key}")
        columns = ("offset", "size_bytes", "self_samples", "total_samples")
        rows: list[Row] = [tuple(row[name] for name in columns) for row in document["listings"][0]["instructions"]]
        (compilation,) = [one for one in document["compilations"] if one["code_object_id"] == key]
        assert compilation["self_samples"] == sum(row[2] for row in rows)
        return rows
    annotation = profile.annotate(f"c{key}")
    instructions = annotation.listing(annotation.hottest).instructions
    return [(one.offset, one.size, one.self_samples, one.total_samples) for one in instructions]


@pytest.mark.truth(
    recording=["perf_node", "perf_openjdk", "perf_llvm", "perf_erlang", "perf_postgres"],
    path=["annotate", "api:Profile.annotate"],
    source="perf script of the output of perf inject --jit",
)
def test_samples_of_instructions_are_those_of_perf(kind: Kind, profile: Profile, path: str) -> None:
    theirs = leaves_of_perf(kind.paths[0].name.removesuffix(".perf.data"))
    codes = Columns(profile.tables["code_objects"])
    of_index = Counter(codes["code_index"])
    hottest = sorted((index for index in theirs if of_index[index] == 1), key=lambda one: -theirs[one].total())
    for index in hottest[: 2 if path == "annotate" else 12]:
        key = codes["code_object_id"][codes["code_index"].index(index)]
        rows = annotated(kind, profile, path, key)
        assert {row[0]: row[2] for row in rows if row[2]} == dict(theirs[index]), f"c{key}"
    assert hottest


@pytest.mark.truth(
    recording=["perf_node", "perf_jsc", "perf_llvm", "perf_postgres"],
    path=["annotate", "api:Profile.annotate"],
    source="walks over the dump and the recording",
)
def test_samples_with_an_instruction_on_their_stack(kind: Kind, profile: Profile, path: str) -> None:
    theirs = walked(kind)
    hottest = sorted(theirs, key=lambda one: -len(theirs[one].stacks))
    for key in hottest[: 2 if path == "annotate" else 12]:
        rows = annotated(kind, profile, path, key)
        assert {row[0]: row[2] for row in rows if row[2]} == dict(theirs[key].leaves), f"c{key}"
        for offset, size, _, total in rows:
            inside = set(range(offset, offset + size))
            assert total == sum(1 for one in theirs[key].stacks if not inside.isdisjoint(one)), f"c{key}+{offset}"
    assert hottest


@pytest.mark.truth(
    recording=["perf_llvm", "perf_postgres"],
    path=["annotate", "api:Profile.annotate"],
    source="walks over the dump and the recording",
)
def test_samples_that_a_filter_selects(kind: Kind, profile: Profile, path: str) -> None:
    """Only samples with another function on their stack: `--only` of a caller, or of the function itself."""
    loads = jitdump(kind.paths[-1]).loads
    everything = walked(kind)
    key = max(everything, key=lambda one: (len(everything[one].stacks), one))
    others = sorted(everything, key=lambda one: len(everything[one].stacks))
    for name in dict.fromkeys(loads[number].name for number in (others[0], others[len(others) // 2], key)):
        theirs = walked(kind, name)[key]
        options = ["--only", f"/^{re.escape(name)}$/"]
        if path == "annotate":
            document = json_of("annotate", *kind.paths, f"c{key}", *options)
            rows = [(row["offset"], row["self_samples"]) for row in document["listings"][0]["instructions"]]
            assert document["selection"]["num_recorded"] == len(perf_data(kind.paths[0]).samples)
            (one,) = [one for one in document["compilations"] if one["code_object_id"] == key]
            assert (one["self_samples"], one["total_samples"]) == (theirs.leaves.total(), len(theirs.stacks))
        else:
            annotation = profile.only(options[1]).annotate(f"c{key}")
            assert annotation.hottest.total_samples == len(theirs.stacks)
            rows = [(one.offset, one.self_samples) for one in annotation.listing(annotation.hottest).instructions]
        assert {offset: samples for offset, samples in rows if samples} == dict(theirs.leaves)


ANNOTATED = re.compile(r"\s*(\d+)\s+:\s*([0-9a-f]+):\s")


def samples_of_perf_annotate(perf_data: Path, symbol: str) -> Counter[int]:
    """Samples by address of `perf annotate --stdio -n`, of all code with that symbol."""
    command = ["perf", "annotate", "--stdio", "-n", "--no-source", "-i", perf_data, "-s", symbol]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=perf_data.parent)
    found = Counter[int]()
    for line in done.stdout.splitlines():
        match = ANNOTATED.match(line)
        if match and int(match[1]):
            found[int(match[2], 16)] += int(match[1])
    assert found, done.stderr
    return found


def lines_of_addr2line(program: Path, start: int, rows: list[dict[str, Any]]) -> list[tuple[int | None, int]]:
    """Line and number of inlined calls of each instruction, by `addr2line -i`."""
    addresses = [f"{start + row['offset']:#x}" for row in rows]
    command = ["addr2line", "-a", "-i", "-e", program, *addresses]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = []
    for block in re.split(r"^0x[0-9a-f]+\n", printed, flags=re.MULTILINE)[1:]:
        first, *callers = block.splitlines()
        line = re.search(r":(\d+)(?: |$)", first)
        found.append((int(line[1]) if line else None, len(callers)))
    return found


@pytest.mark.truth(recording="perf_data", path=["annotate", "api:Profile.annotate"], source="perf annotate --stdio -n")
def test_native_code_is_annotated_as_by_perf(tmp_path: Path) -> None:
    need("perf", "cc", "objdump")
    program = tmp_path / "phases"
    run_tool(["cc", "-g", "-O1", "-fno-omit-frame-pointer", "-o", program, PROGRAMS / "busy_calls.c"], tmp_path)
    perf_data = tmp_path / "perf.data"
    perf = ["perf", "record", "-qN", "-e", "cpu-clock", "-F", "1999", "-g", "-o", perf_data, "--", program]
    subprocess.run(perf, cwd=tmp_path, check=True, capture_output=True, timeout=600)
    profile = perfuse.fuse(perf_data)
    hottest = profile.sql(
        f"""SELECT n.name FROM samples JOIN stacks USING (stack_id) JOIN frames f USING (frame_id)
            JOIN functions n USING (function_id) JOIN modules m USING (module_id)
            WHERE m.name = '{program}' GROUP BY ALL ORDER BY count(*) DESC LIMIT 1"""
    ).fetchall()[0][0]
    theirs = samples_of_perf_annotate(perf_data, hottest)
    document = json_of("annotate", perf_data, hottest)
    (listing,) = document["listings"]
    start = int(document["compilations"][0]["address"], 16)
    ours = {start + row["offset"]: row["self_samples"] for row in listing["instructions"] if row["self_samples"]}
    assert ours == dict(theirs)
    annotation = profile.annotate(hottest)
    instructions = annotation.listing(annotation.hottest).instructions
    assert {start + one.offset: one.self_samples for one in instructions if one.self_samples} == ours
    rows = listing["instructions"]
    assert [(row["line"], len(row["inlined"])) for row in rows] == lines_of_addr2line(program, start, rows)
    source = PROGRAMS / "busy_calls.c"
    lines = {row["line"] for row in listing["instructions"] if row["path"] == str(source)}
    assert lines
    assert max(lines) <= len(source.read_text(encoding="utf-8").splitlines())
    assert document["sources"][str(source)]["origin"] == str(source)


SAME_NAME = """
extern volatile unsigned long sum;
static __attribute__((noinline)) void helper(unsigned long n) {{ for (unsigned long i = 0; i < n; i++) sum {sign}= i; }}
void {caller}(unsigned long n) {{ helper(n); sum++; }}
"""


@pytest.mark.truth(recording="perf_data", path="annotate", source="perf annotate --stdio -n")
def test_functions_of_one_name_in_a_program_are_listed_each(tmp_path: Path) -> None:
    need("perf", "cc", "objdump")
    (tmp_path / "a.c").write_text(SAME_NAME.format(sign="+", caller="add"), encoding="utf-8")
    (tmp_path / "b.c").write_text(SAME_NAME.format(sign="^", caller="mix"), encoding="utf-8")
    main = "volatile unsigned long sum; void add(unsigned long); void mix(unsigned long);"
    (tmp_path / "m.c").write_text(f"{main}\nint main(void) {{ add(200000000); mix(60000000); }}\n", encoding="utf-8")
    run_tool(["cc", "-g", "-O1", "-fno-omit-frame-pointer", "-o", "twice", "a.c", "b.c", "m.c"], tmp_path)
    perf_data = tmp_path / "perf.data"
    perf = ["perf", "record", "-qN", "-e", "cpu-clock:u", "-F", "999", "-g", "-o", perf_data, "--", "./twice"]
    subprocess.run(perf, cwd=tmp_path, check=True, capture_output=True, timeout=600)
    profile = perfuse.fuse(perf_data)
    with pytest.raises(SeveralFunctions) as several:
        profile.annotate("helper")
    annotations = [profile.annotate(one.handle) for one in several.value.found]
    ours = Counter[int]()
    for annotation in annotations:
        (compilation,) = annotation.compilations
        assert compilation.self_samples > 0
        rows = annotation.listing(compilation).instructions
        ours.update({compilation.address + row.offset: row.self_samples for row in rows if row.self_samples})
    assert ours == samples_of_perf_annotate(perf_data, "helper")
    assert len(annotations) == 2
