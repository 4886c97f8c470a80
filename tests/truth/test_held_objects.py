"""What holds the objects of a type, compared with searches over the rows of the snapshot."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

import perfuse
from perfuse.analysis.held_objects import held_objects
from perfuse.profile import Profile
from perfuse.table import Columns

from .command import command_line, json_of, run

ROOT = -1
EXAMPLE = Path(__file__).parents[2] / "examples" / "mono_sessions" / "sessions.mlpd.gz"


Graph = dict[int, set[int]]


def graph_of(profile: Profile, snapshot: int) -> tuple[Graph, dict[int, tuple[str, int]]]:
    """References, with one from `ROOT` to each object of a root; type and size of each object."""
    types = dict(Columns(profile.tables["types"]).tuples("type_id", "name"))
    columns = ("snapshot_id", "object_address", "type_id", "size_bytes")
    objects: dict[int, tuple[str, int]] = {}
    for number, address, type_id, size in Columns(profile.tables["heap_objects"]).tuples(*columns):
        if number == snapshot:
            objects.setdefault(address, (types.get(type_id) or "(type never described)", size))
    graph: Graph = defaultdict(set)
    for number, owner, target in Columns(profile.tables["heap_references"]).tuples(
        "snapshot_id", "owner_address", "target_address"
    ):
        if number == snapshot and owner in objects and target in objects:
            graph[owner].add(target)
    for number, address, weak in Columns(profile.tables["heap_roots"]).tuples("snapshot_id", "object_address", "weak"):
        if number == snapshot and address in objects and not weak:
            graph[ROOT].add(address)
    return graph, objects


def distances(graph: Graph, without: int | None = None) -> dict[int, int]:
    """Number of references from a root to each object that can be reached, without one of them."""
    found, level, depth = {ROOT: 0}, {ROOT}, 0
    while level:
        depth += 1
        level = {target for owner in level for target in graph.get(owner, ())} - found.keys() - {without}
        found.update(dict.fromkeys(level, depth))
    return found


@pytest.mark.truth(
    recording=["mono_heap", "mono_before_15"],
    path="report:held_objects",
    source="searches over the objects, references and roots of the snapshot, with each object left out",
)
def test_paths_to_the_objects_of_each_type(profile: Profile) -> None:
    heap = profile.heap()
    graph, objects = graph_of(profile, heap.snapshot.snapshot_id)
    # Roots that point into objects are found by addresses; without roots, other objects begin the paths.
    paths_are_known = heap.has_roots and not heap.num_missed_roots
    reached = distances(graph)
    for name in sorted({name for name, _ in objects.values()}):
        found = held_objects(profile, f"/^{re.escape(name)}$/")
        members = {address for address, (kind, _) in objects.items() if kind == name}
        assert sum(one.num_objects for one in found.paths) == len(members)
        assert sum(one.size_bytes for one in found.paths) == sum(objects[address][1] for address in members)
        [row] = [one for one in found.types if one.type == name]
        assert row.num_objects == len(members)
        if not paths_are_known or not members <= reached.keys() or len(members) > MOST_LEFT_OUT:
            continue
        freed = {one: reached.keys() - distances(graph, one).keys() for one in members}
        tops = [one for one in members if not any(one in freed[other] for other in members - {one})]
        assert sum(one.retained_bytes for one in found.paths) == sum(
            objects[address][1] for top in tops for address in freed[top]
        )
        for one in found.paths:
            assert one.types[-1] == name
            if one.num_objects == 1:
                assert len(one.types) <= reached[one.address]
                assert is_path(graph, objects, one.types, one.address)


MOST_LEFT_OUT = 50


def is_path(graph: Graph, objects: dict[int, tuple[str, int]], types: tuple[str, ...], address: int) -> bool:
    """Whether objects of these types, of which consecutive ones may be of one type, lead from a root to an object."""
    owners_of: dict[int, set[int]] = defaultdict(set)
    for owner, targets in graph.items():
        for target in targets:
            owners_of[target].add(owner)
    here = {(address, len(types) - 1)}
    seen = set(here)
    while here:
        owners = set()
        for at, step in here:
            if step == 0 and at in graph[ROOT]:
                return True
            for owner in owners_of[at]:
                for before in (step, step - 1):
                    if owner != ROOT and before >= 0 and objects[owner][0] == types[before]:
                        owners.add((owner, before))
        here = owners - seen
        seen |= here
    return False


def test_the_leak_of_the_example() -> None:
    """Sessions.cs: 120 users connect, and no session is freed, since the event of the clock has its handler."""
    report = json_of("report", EXAMPLE, "--section", "heap", "--type", "Session")
    [path] = report["paths"]
    assert (path["num_objects"], path["root"]["text"]) == (120, "static field of Clock")
    assert path["types"] == ["System.Action", "System.Delegate[]", "System.Action", "Session"]
    [row] = report["types"]
    assert (row["earlier_objects"], row["num_objects"]) == (20, 120)
    later = json_of("report", EXAMPLE, "--type", "Session", "--since", "1")
    [row] = later["types"]
    assert (row["earlier_objects"], row["num_objects"]) == (120, 120)
    text = command_line("report", EXAMPLE, "--type", "Session", "--section", "heap")
    assert "The 120 Session that retain most: static field of Clock → System.Action" in text


def test_two_logs_by_type(tmp_path: Path) -> None:
    """Of two logs, the last snapshots are compared by the names of types."""
    other = tmp_path / "other.mlpd.gz"
    other.write_bytes(EXAMPLE.read_bytes())
    profile = perfuse.fuse(EXAMPLE, other)
    found = held_objects(profile, "Session")
    assert found.earlier is not None
    assert found.earlier.source_id != found.snapshot.source_id
    assert [(one.earlier_objects, one.num_objects) for one in found.types] == [(120, 120)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--type", "Sesion"), "no object of a type that matches 'Sesion'"),
        (("--type", "Session", "--since", "9"), "no heap snapshot 9"),
        (("--type", "Session", "--section", "gc"), "--type selects objects of section heap"),
    ],
)
def test_errors(words: tuple[str, ...], message: str) -> None:
    done = run("report", EXAMPLE, *words)
    assert done.returncode == 2
    assert message in done.stderr


def test_sums_of_paths_are_those_of_the_class() -> None:
    profile = perfuse.fuse(EXAMPLE)
    heap = profile.heap()
    for one in heap.classes()[:40]:
        if one.type and one.num_unreachable == 0:
            found = held_objects(profile, f"name:{one.type}")
            counts = Counter({one.type: sum(path.num_objects for path in found.paths)})
            assert counts[one.type] == one.num_objects
            assert sum(path.retained_bytes for path in found.paths) == one.retained_bytes
