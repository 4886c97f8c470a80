"""Exported files, read by the programs that they are for."""

import re
from collections import Counter
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from tools import output_of

from needs import need
from perfuse.profile import Profile

from . import exported
from .kinds import Kind
from .mono_walk import walk
from .outside import outside


@pytest.mark.truth(
    recording="perf_[!mx]*",
    path="convert:mono",
    source="mprof-report of the written log: samples of all threads, by a walk over the structures of the perf.data",
)
def test_samples_are_counted_by_mprof_report(kind: Kind, profile: Profile, tmp_path: Path) -> None:
    """It counts samples by their instruction pointers; a sample without a call chain has none."""
    need("mprof-report")
    profile.export(tmp_path / "out.mlpd", to="mono")
    text = output_of("mprof-report", "--reports=sample", tmp_path / "out.mlpd")
    hits = {name: int(num) for name, num in re.findall(r"^\t(\w+) hits: +(\d+)", text, re.MULTILINE)}
    (weight,) = outside(kind.name).weights.values()
    ((num_without,),) = profile.sql("SELECT count(*) FROM samples WHERE stack_id IS NULL").fetchall()
    assert num_without < 3
    assert hits == {"Unmanaged": 0, "Managed": weight.num_samples - num_without, "Unresolved": 0}
    listed = [int(num) for num in re.findall(r"^\s+(\d+)\s+\d+\.\d+ ", text, re.MULTILINE)]
    # Rare functions are not listed: the more, the more libraries of this machine name the recording's code.
    assert 0.5 * hits["Managed"] < sum(listed) <= hits["Managed"]


@pytest.mark.truth(
    recording="collapsed",
    path=["convert:firefox", "convert:jslb"],
    source="the counts of the lines, added up by hand",
)
@pytest.mark.truth(
    recording=["xray_shared_objects", "xray_basic"],
    path="convert:jslb",
    source="time inside calls: a walk over the log's records that pairs entries and exits",
)
@pytest.mark.truth(
    recording="xray_shared_objects",
    path="convert:firefox",
    source="time inside calls: a walk over the log's records that pairs entries and exits",
)
def test_weights_in_firefox(kind: Kind, profile: Profile, path: str, tmp_path: Path) -> None:
    profile.export(tmp_path / "out.json", to=path.removeprefix("convert:"))
    found = exported.firefox(tmp_path / "out.json")
    weights = outside(kind.name).weights
    if kind.name == "collapsed":
        assert [sums.total() for sums in found.values()] == [weights["samples"].total]
    else:
        assert found["wall-time"].total() == pytest.approx(weights["wall-time"].total, abs=len(weights) * 2)
        assert found["calls-samples"].total() == weights["calls"].total


@pytest.mark.truth(
    recording=["mono_samples", "mono_calls", "mono_allocations", "mono_heap", "mono_locks", "mono_gc", "perf_mono"],
    path="convert:elf",
    source="names and sizes of compiled methods by another decoder of Mono logs; symbols by pyelftools",
)
def test_symbols_of_compiled_methods(kind: Kind, profile: Profile, tmp_path: Path) -> None:
    """Every compiled method, and the runtime's own code; a log does not contain their machine code.

    Of code that was freed before the log was written, Mono wrote sizes that other data has replaced.
    """
    log = walk(kind.paths[-1])
    profile.export(tmp_path / "out.elf", to="elf")
    with (tmp_path / "out.elf").open("rb") as file:
        symbols = list(ELFFile(file).get_section_by_name(".symtab").iter_symbols())
        found = Counter((one.name, one["st_size"]) for one in symbols if one["st_info"]["type"] == "STT_FUNC")
    methods = Counter((" ".join(name.split()), size) for name, size in log.code())
    missing = methods - found
    assert missing.total() < (0.2 * methods.total() if kind.name in ("mono_samples", "mono_locks") else 1)
    assert Counter(size for _, size in (found - methods).elements()) == Counter(size for size in log.helpers() if size)


@pytest.mark.truth(
    recording="mono_calls",
    path="convert:csv",
    source="number and time of calls by method: another decoder of Mono logs, and pairs of its entries and exits",
)
def test_statistics_of_managed_calls(kind: Kind, profile: Profile, tmp_path: Path) -> None:
    log = walk(kind.paths[0])
    profile.export(tmp_path / "out.csv")
    names = log.methods()
    expected = Counter(names[event.values[0]] for event in log.of(0x23))
    found = Counter[str]()
    for row in exported.table(tmp_path / "out.csv"):
        found[row["function"]] += int(row["num_calls"])
    assert found == expected


@pytest.mark.truth(
    recording="mono_allocations",
    path="convert:dot",
    source="bytes of all allocations: another decoder of Mono logs; the graph is read by Graphviz",
)
@pytest.mark.truth(
    recording="mono_calls",
    path="convert:dot",
    source="number of calls: another decoder of Mono logs; the graph is read by Graphviz",
)
def test_graphs_of_managed_code(kind: Kind, profile: Profile, tmp_path: Path) -> None:
    profile.export(tmp_path / "out.dot", min_share=0.0)
    found = exported.dot(tmp_path / "out.dot")
    weights = outside(kind.name).weights
    if kind.name == "mono_calls":
        assert sum(one["count"] for one in found.values()) == weights["calls"].total
    else:
        assert sum(one["self"] for one in found.values()) == pytest.approx(weights["allocated-bytes"].total, rel=0.01)
