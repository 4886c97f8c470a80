"""Views of stacks, compared with what perf and llvm-xray report of the same recordings."""

from __future__ import annotations

import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from needs import need

from .command import json_of
from .kinds import CORPUS
from .producers import PROGRAMS, run_tool

Path_ = tuple[str, ...]
ALL = ("--percent-limit", "0", "--limit", "0")


@pytest.fixture(scope="module", params=["busy_calls", "recursion"])
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A native program, recorded with frame pointers and without the kernel."""
    need("perf", "cc")
    directory = tmp_path_factory.mktemp(request.param)
    program = directory / request.param
    run_tool(
        ["cc", "-w", "-g", "-O1", "-fno-omit-frame-pointer", "-o", program, PROGRAMS / f"{request.param}.c"], directory
    )
    perf = [
        "perf",
        "--buildid-dir",
        "debug",
        "record",
        "-q",
        "-e",
        "cpu-clock:u",
        "-F",
        "1999",
        "-g",
        "-o",
        "perf.data",
        "--",
        program,
    ]
    subprocess.run(perf, cwd=directory, check=True, capture_output=True, timeout=600)
    return directory / "perf.data"


def perf_report(perf_data: Path, *words: str) -> list[str]:
    """Lines of `perf report --stdio`, without inlined frames and comments."""
    command = ["perf", "--buildid-dir", perf_data.parent / "debug", "report", "-i", perf_data, "--stdio", "--no-inline"]
    command += ["--percent-limit", "0", *words]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True, timeout=600)
    return [line.strip() for line in done.stdout.splitlines() if line.strip() and not line.startswith("#")]


def plain(name: str) -> str:
    """A symbol without its version: `clock_gettime@@GLIBC_2.17`."""
    return re.sub(r"@@?[A-Z]\w*[\d.]*$", "", name)


def folded(lines: Iterable[str]) -> Counter[Path_]:
    """Counts by chain, of `-g folded`."""
    found = Counter[Path_]()
    for line in lines:
        if match := re.fullmatch(r"(\d+) (\S.*)", line):
            found[tuple(map(plain, match[2].split(";")))] += int(match[1])
    return found


def report(perf_data: Path, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json_of("report", perf_data, "--no-debug-info", *ALL, *words)
    return found


def name_of(function: dict[str, Any]) -> str:
    name: str = function["name"]
    return plain(name)


def chains_of(nodes: list[dict[str, Any]]) -> list[Path_]:
    chains: list[Path_] = []
    for node in nodes:
        above = () if node["parent"] is None else chains[node["parent"]]
        chains.append((*above, name_of(node["function"])))
    return chains


ELSEWHERE = re.compile(r"0|0x[0-9a-f]+|[0-9a-f]{12,16}|\[unknown\].*|__vdso_.*|_start|_dl_.*|_init|.*@plt")
"""Functions that perf gives no name, or that of a neighbour: of the vdso, of ld.so at its start, entries of a PLT."""


def is_named(chain: Path_) -> bool:
    """Whether all of its functions have names in both tools."""
    return not any(map(ELSEWHERE.fullmatch, chain))


def prefix_sums(chains: Counter[Path_]) -> Counter[Path_]:
    sums = Counter[Path_]()
    for chain, count in chains.items():
        for depth in range(len(chain)):
            sums[chain[: depth + 1]] += count
    return sums


def named_only(chains: Counter[Path_]) -> Counter[Path_]:
    return Counter({chain: count for chain, count in chains.items() if count and is_named(chain)})


@pytest.mark.truth(
    recording="perf_data",
    path=["report:stacks", "report:tree", "report:inverted"],
    source="perf report --no-children -g caller and callee",
)
@pytest.mark.parametrize("view", ["stacks", "tree", "inverted"])
def test_stacks_and_trees_are_those_of_perf(recorded: Path, view: str) -> None:
    order = "callee" if view == "inverted" else "caller"
    theirs = folded(
        perf_report(recorded, "--no-children", "-g", f"folded,0,{order},function,count", "-F", "sample,sym")
    )
    document = report(recorded, f"--{view}")
    assert document["recorded"]["count"] == sum(theirs.values()) > 100
    if view == "stacks":
        ours = Counter[Path_]()
        for one in document["stacks"]:
            ours[tuple(map(plain, one["functions"]))] += one["count"]
        assert named_only(ours) == named_only(theirs)
        return
    nodes = document["tree"]["nodes"]
    totals = Counter[Path_]()
    for chain, node in zip(chains_of(nodes), nodes, strict=True):
        totals[chain] += node["total_count"]
    assert named_only(totals) == named_only(prefix_sums(theirs))
    assert len(max(totals, key=len)) >= 5


@pytest.mark.truth(recording="perf_data", path="report:stacks", source="perf report --children; sorted by module")
def test_functions_and_modules_are_those_of_perf(recorded: Path) -> None:
    own, total = Counter[str](), Counter[str]()
    for line in perf_report(recorded, "--children", "-g", "none", "-F", "overhead_children,sample,sym"):
        share, samples, name = re.fullmatch(r"([\d.]+)% +(\d+) +\[[.k]\] (.*)", line).groups()  # type: ignore[union-attr]
        own[plain(name)] += int(samples)
        total[plain(name)] += float(share)  # type: ignore[assignment]
    document = report(recorded, "--by", "function")
    whole = document["recorded"]["count"]
    groups: dict[str, list[Any]] = defaultdict(list)
    for one in document["groups"]:
        if is_named((one["name"],)):
            groups[name_of(one)].append(one)
    assert {name: sum(one["self_count"] for one in of_name) for name, of_name in groups.items()} == {
        name: own[name] for name in own if is_named((name,))
    }
    for name, of_name in groups.items():
        if len(of_name) == 1:  # others may be on one stack, which perf counts once
            assert 100 * of_name[0]["total_count"] / whole == pytest.approx(total[name], abs=0.006), name
    modules = Counter[str]()
    for line in perf_report(recorded, "--no-children", "-g", "none", "--sort", "dso", "-F", "sample,dso"):
        samples, _, name = line.partition(" ")
        modules[name.strip()] += int(samples)
    listed = Counter[str]()
    for one in report(recorded, "--by", "module")["groups"]:
        listed[one["name"].rsplit("/", 1)[-1]] += one["self_count"]
    assert +listed == modules


@pytest.mark.truth(recording="perf_data", path="report:tree", source="perf report --children -g callee")
def test_callers_are_those_of_perf(recorded: Path) -> None:
    """For each function perf prints the chains from it to its outermost caller."""
    theirs: dict[str, Counter[Path_]] = defaultdict(Counter)
    name = ""
    lines = perf_report(
        recorded, "--children", "-g", "folded,0,callee,function,count", "-F", "overhead_children,sample,sym"
    )
    for line in lines:
        if head := re.fullmatch(r"[\d.]+% +\d+ +\[[.k]\] (.*)", line):
            name = plain(head[1])
        else:
            theirs[name] += folded([line])
    # Of recursive functions perf has a chain for each call.
    functions = [one for one in theirs if all(chain.count(one) == 1 for chain in theirs[one]) and is_named((one,))]
    assert len(functions) >= 3
    for function in functions:
        document = report(recorded, "--callers", f"/^{re.escape(function)}(@|$)/", "--depth", "1000")
        ours = Counter[Path_]()
        for view in document["views"]:
            nodes = view["callers"]["nodes"]
            for chain, node in zip(chains_of(nodes), nodes, strict=True):
                ours[chain] += node["total_count"]
        assert named_only(ours) == named_only(prefix_sums(theirs[function])), function


@pytest.mark.truth(recording="perf_data", path="report:tree", source="a folding of the text of perf script")
def test_callees_are_those_of_folded_stacks(recorded: Path) -> None:
    command = ["perf", "--buildid-dir", recorded.parent / "debug", "script", "-i", recorded, "--no-inline"]
    command += ["-F", "ip,sym"]
    text = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True, timeout=600).stdout
    stacks: list[Path_] = []
    for block in text.split("\n\n"):
        names = [line.split(maxsplit=1)[1] for line in block.splitlines() if line.strip()]
        if names:
            stacks.append(tuple(map(plain, reversed(names))))
    for function in ("main", "busy", "level", "compare"):
        below = Counter[Path_]()
        for stack in stacks:
            if function in stack:
                below[stack[stack.index(function) :]] += 1
        if not below:
            continue
        (view,) = report(recorded, "--callees", f"/^{function}$/", "--depth", "1000")["views"]
        assert view["total_count"] == sum(below.values())
        nodes, ours = view["callees"]["nodes"], Counter[Path_]()
        for chain, node in zip(chains_of(nodes), nodes, strict=True):
            ours[chain] += node["self_count"]
        assert named_only(ours) == named_only(below), function


@pytest.mark.truth(
    recording="xray_fdr",
    path=["report:stacks", "report:tree"],
    source="llvm-xray stack -all-stacks -stack-format=flame",
)
def test_calls_are_those_of_llvm_xray(llvm_xray: str) -> None:
    log = CORPUS / "xray" / "fdr" / "sqlite-small-v5.xray"
    stack = [llvm_xray, "stack", "-k", "-all-stacks", "-stack-format=flame", "-aggregate-threads"]
    theirs: list[Counter[Path_]] = []
    for what in ("time", "count"):
        text = subprocess.run(
            [*stack, f"-aggregation-type={what}", log], capture_output=True, text=True, check=True
        ).stdout
        found = Counter[Path_]()
        for line in text.splitlines():
            chain, _, value = line.rpartition("; ")
            found[tuple(name.removeprefix("#") for name in chain.split(";"))] += int(value)
        theirs.append(found)
    # With a tick for each nanosecond, times are ticks.
    nodes = json_of("report", log, "--tsc-hz", "1000000000", "--tree", *ALL)["tree"]["nodes"]
    rows = json_of("query", log, "SELECT function_id, native_id FROM functions", "--limit", "0")
    native = {row["function_id"]: str(row["native_id"]) for row in rows}
    chains: list[Path_] = []
    total, calls = Counter[Path_](), Counter[Path_]()
    for node in nodes:
        above = () if node["parent"] is None else chains[node["parent"]]
        chains.append((*above, native[node["function"]["function_id"]]))
        total[chains[-1]] += node["total_weight"]
        calls[chains[-1]] += node["self_count"]
    assert total == theirs[0]
    assert calls == theirs[1]
    assert len(total) > 100
