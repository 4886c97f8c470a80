"""Instructions of JIT code and of AArch64 programs, compared with GNU objdump."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Set
from functools import cache
from pathlib import Path

import pytest

import perfuse
from needs import need
from perfuse.analysis.instructions import decode
from perfuse.profile import Profile
from perfuse.table import Columns

from .command import json_of
from .kinds import CORPUS, KINDS, Kind
from .objdump import Function, Line, common_form, functions

DUMPS = sorted(path for folder in ("produced", "fetched") for path in (CORPUS / "jitdump" / folder).glob("*.dump*"))
WITHOUT_CODE = {"ddprof_jit-julia-partial.dump"}
"""Dumps of which nothing can be read."""
REPEATED = {"node24-5k.dump.gz", "node20-killed.dump", "node20-noclock.dump", "node20-nsz.dump"}
"""Further dumps of the runtimes of `node24.dump` and `node20.dump`, which take minutes."""
AARCH64 = CORPUS / "sframe" / "v1" / "aarch64" / "libsqlite.so"


MOST_FUNCTIONS = 1500
"""Of a dump: larger ones repeat the instructions of their compiler."""


def instructions_of(profile: Profile, chosen: Set[int]) -> dict[int, list[Line]]:
    """Table `instructions` by code object, of those that are chosen, in the form that is compared."""
    codes = Columns(profile.tables["code_objects"])
    starts = dict(codes.tuples("code_object_id", "start_address"))
    found: dict[int, list[Line]] = defaultdict(list)
    columns = ("code_object_id", "code_offset", "size_bytes", "text")
    for batch in profile.tables["instructions"].stream():
        for code, offset, size, text in Columns(batch).tuples(*columns):
            if code in chosen:
                found[code].append(Line(offset, size, common_form(text, starts[code])))
    return found


ODD = re.compile(r"\(bad\)|^(?:rex|lock|data16)\b|%riz|%[cdes]s\b|^(?:fs|gs) |\(%dx\)")
"""What bytes look like that are constants or tables."""
MOST_IN_DATA = 0.001
"""Share of a dump's instructions that may differ in functions with constants and tables between their instructions."""


def has_data(ours: list[Line], theirs: list[Line]) -> bool:
    """Whether bytes of a function are not instructions: after them a disassembler may continue within one."""
    return any(is_odd(line.text) for line in (*ours, *theirs))


@cache
def is_odd(text: str) -> bool:
    """Whether an instruction looks as constants and tables do."""
    return ODD.search(text) is not None


def differences(ours: list[Line], theirs: list[Line]) -> list[tuple[Line, Line | None]]:
    """Instructions that differ; in functions with data only those that both find at one offset, with one size."""
    at = {line.offset: line for line in theirs}
    if not has_data(ours, theirs):
        return [(line, at.get(line.offset)) for line in ours if at.get(line.offset) != line]
    both = [(line, at[line.offset]) for line in ours if line.offset in at and line.size == at[line.offset].size]
    return [(line, other) for line, other in both if line != other]


@pytest.mark.parametrize(
    "dump", [dump for dump in DUMPS if dump.name not in WITHOUT_CODE | REPEATED], ids=lambda dump: dump.name
)
@pytest.mark.some(8)
@pytest.mark.truth(recording="jitdump", path="annotate", source="objdump -d")
def test_functions_of_a_dump_are_as_objdump_prints_them(dump: Path, tmp_path: Path, choice: random.Random) -> None:
    need("objdump")
    profile = perfuse.fuse(dump)
    elf = tmp_path / "jit.elf"
    profile.export(elf, to="elf")
    sizes = dict(Columns(profile.tables["code_objects"]).tuples("code_object_id", "size_bytes"))
    keys = [key for key in sorted(sizes) if sizes[key]]
    numbers = sorted(choice.sample(range(len(keys)), min(len(keys), MOST_FUNCTIONS)))
    ours = instructions_of(profile, {keys[number] for number in numbers})
    theirs = list(functions(elf, chosen=set(numbers)))
    assert len(theirs) == len(keys)
    different, in_data, total = [], [], 0
    for key, function in ((keys[number], theirs[number]) for number in numbers):
        assert sum(line.size for line in ours[key]) == len(function.code) == sizes[key]
        total += len(ours[key])
        if ours[key] == function.lines:
            continue
        found = [(function.name, *pair) for pair in differences(ours[key], function.lines)]
        (in_data if has_data(ours[key], function.lines) else different).extend(found)
    assert different == [], f"{len(different)} of {total} instructions"
    assert len(in_data) <= MOST_IN_DATA * total, in_data[:20]


def test_aarch64_is_as_objdump_prints_it() -> None:
    need("aarch64-linux-gnu-objdump")
    if not AARCH64.exists():
        pytest.skip(f"no {AARCH64}")
    total = 0
    for function in functions(AARCH64, "aarch64-linux-gnu-objdump"):
        start = function.address
        rows = decode(function.code, start, 183)
        ours = [Line(one.offset, one.size, common_form(one.text, start)) for one in rows]
        assert differences(ours, function.lines) == [], function.name
        total += len(ours)
    assert total > 190_000


def test_code_is_filled_where_it_is_named() -> None:
    dump = KINDS["jitdump"].paths[-1]
    if not dump.exists():
        pytest.skip(f"no {dump}")
    profile = perfuse.fuse(dump)
    columns = ["code_object_id", "code"]
    arrow = Columns(profile.tables["code_objects"].to_arrow(columns=columns))
    queried = profile.sql("SELECT code_object_id, code FROM code_objects ORDER BY code_object_id").fetchall()
    from .outside import jitdump

    truth = [load.code for load in jitdump(dump).loads]
    assert [bytes(code) for code in arrow["code"]] == truth == [bytes(code) for _, code in queried]
    ((num_filled,),) = profile.sql("SELECT count(*) FROM (SELECT * FROM code_objects) WHERE size_bytes < 0").fetchall()
    assert num_filled == 0
    assert Columns(profile.tables["code_objects"])["code"] == [None] * len(truth)


@pytest.mark.truth(
    recording=["jitdump", "perf_cpython", "perf_stacks"],
    path=["annotate", "api:Profile.annotate"],
    source="objdump -d",
)
def test_a_listing_has_the_instructions_of_objdump(kind: Kind, profile: Profile, path: str, tmp_path: Path) -> None:
    need("objdump")
    dump = kind.paths[-1]
    elf = tmp_path / "jit.elf"
    perfuse.fuse(dump).export(elf, to="elf")
    sized = [
        key for key, size in Columns(profile.tables["code_objects"]).tuples("code_object_id", "size_bytes") if size
    ]
    theirs: dict[int, Function] = dict(zip(sized, functions(elf), strict=True))
    for key in (sized[100], sized[-1]):
        if path == "annotate":
            document = json_of("annotate", *kind.paths, f"c{key}")
            (address,) = [row["address"] for row in document["compilations"] if row["code_object_id"] == key]
            rows = document["listings"][0]["instructions"]
            listed = [(row["offset"], row["size_bytes"], row["text"]) for row in rows]
            start = int(address, 16)
        else:
            annotation = profile.annotate(f"c{key}")
            found = annotation.listing(annotation.hottest).instructions
            listed = [(one.offset, one.size, one.text) for one in found]
            start = annotation.hottest.address
        ours = [Line(offset, size, common_form(text, start)) for offset, size, text in listed]
        assert listed
        assert differences(ours, theirs[key].lines) == []
