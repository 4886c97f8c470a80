"""Heap snapshots of real logs: retained sizes known by hand and from another program, roots, paths, sites."""

import json
from pathlib import Path
from typing import Any

import pytest

import perfuse
from perfuse import Profile
from perfuse.analysis.handles import leaked_handles
from perfuse.analysis.heap import snapshots

from .mono_logs import CORPUS, logs, stem

if not CORPUS.is_dir():
    pytest.skip(f"no corpus at {CORPUS}", allow_module_level=True)

GRAPH = json.loads((CORPUS / "expected" / "graph.retained.json").read_text(encoding="utf-8"))
SNAPSHOT_LOGS = [
    path for path in logs("tiny", "v17", "versions") if "heapshot" in stem(path) or stem(path) == "everything"
]


@pytest.fixture(scope="module")
def graph() -> Profile:
    """A log of src/Graph.cs, whose object graph is small enough to be computed by hand."""
    return perfuse.fuse(CORPUS / "v17" / "graph.mlpd")


@pytest.mark.parametrize("expected", GRAPH, ids=lambda snapshot: f"snapshot {snapshot['shot']}")
def test_retained_sizes(graph: Profile, expected: dict[str, Any]) -> None:
    heap = graph.heap(expected["shot"])
    assert (heap.num_objects, heap.size_bytes, heap.num_roots, heap.num_unreachable) == (
        expected["objects"],
        expected["bytes"],
        expected["roots"],
        expected["objects"] - expected["reachable_from_roots"],
    )
    classes = {one.type: one for one in heap.classes()}
    counted = {name: [classes[name].num_objects, classes[name].size_bytes] for name in expected["by_class"]}
    assert counted == expected["by_class"]
    for name, known in expected["retained"].items():
        found = heap.retained(int(known["address"], 16))
        above = "ROOT" if found.dominator_address is None else heap.retained(found.dominator_address).type
        assert (found.type, found.size_bytes, found.retained_bytes, above) == (
            name,
            known["shallow"],
            known["retained"],
            known["idom"],
        )
    assert classes["Chain"].largest_retained_bytes == expected["longest_chain_head_retained"]


def test_tables_agree_with_the_heap(graph: Profile) -> None:
    # Dominators in SQL: an object retains its own size and what the objects below it retain.
    wrong = graph.sql("""
        WITH below AS (
            SELECT snapshot_id, dominator_address, sum(retained_bytes) AS bytes, sum(num_retained) AS num
            FROM heap_dominators GROUP BY 1, 2)
        SELECT count(*) FROM heap_dominators d LEFT JOIN below
            ON below.snapshot_id = d.snapshot_id AND below.dominator_address = d.object_address
        WHERE d.retained_bytes != d.size_bytes + coalesce(below.bytes, 0) OR d.num_retained != 1 + coalesce(num, 0)
        """)
    assert wrong.fetchall() == [(0,)]
    tops = (
        "SELECT sum(retained_bytes)::BIGINT FROM heap_dominators WHERE dominator_address IS NULL GROUP BY snapshot_id"
    )
    assert sorted(graph.sql(tops).fetchall()) == sorted((snapshot["bytes"],) for snapshot in GRAPH)
    # Every reference of a path exists, and leads one step nearer to the root.
    far = """
        SELECT count(*) FROM heap_dominators d
        JOIN heap_dominators n ON n.snapshot_id = d.snapshot_id AND n.object_address = d.nearer_address
        LEFT JOIN heap_references r ON r.snapshot_id = d.snapshot_id AND r.owner_address = d.nearer_address
            AND r.target_address = d.object_address
        WHERE d.root_distance != n.root_distance + 1 OR r.owner_address IS NULL"""
    assert graph.sql(far).fetchall() == [(0,)]


def test_paths_have_names(graph: Profile) -> None:
    heap = graph.heap(0)
    paths = {one.type: str(heap.path_to_root(one.largest_address)) for one in heap.classes()}
    assert paths["Box"] == "static field of Graph → OwnerA → Box[] (at +16) → Box (at +32)"
    assert paths["OwnerB"] == "static field of Graph → OwnerB"
    # The handle's object has a field with the only reference to another object.
    query = "SELECT object_address FROM heap_roots WHERE snapshot_id = 0 AND kind = 'gc_handle'"
    paths_to_roots = [heap.path_to_root(address) for (address,) in graph.sql(query).fetchall()]
    assert "GC handle: GC Handle Bucket (SGen, Normal) → Box" in map(str, paths_to_roots)
    stacks = [path for path in map(str, paths_to_roots) if path.startswith("stack of thread")]
    assert all("unknown" not in path for path in stacks)


def test_growth_between_snapshots(graph: Profile) -> None:
    first, second = graph.heap(0), graph.heap(1)
    growth = {one.type: one for one in second.growth(first)}
    chain = growth["Chain"]
    assert (chain.num_objects, chain.size_bytes) == ((1002, 2), (24048, 48))
    assert (chain.num_new, chain.num_gone, chain.gone_bytes) == (0, 1000, 24000)
    assert growth["OwnerB"].retained_bytes == (24088, 88)
    assert "OwnerA" not in growth
    assert growth == {one.type: one for one in second.growth(first.snapshot)}
    new = second.new_objects(first, limit=None)
    assert len(new) == sum(one.num_new for one in growth.values())


def test_every_live_object_has_its_allocation_site() -> None:
    profile = perfuse.fuse(CORPUS / "v17" / "graph-alloc.mlpd")
    found = profile.sql("""
        SELECT count(*), count(s.object_address), count(a.ts_ns) FROM heap_objects o
        LEFT JOIN heap_sites s ON s.snapshot_id = o.snapshot_id AND s.object_address = o.object_address
        LEFT JOIN allocations a ON a.ts_ns = s.allocated_ns AND a.object_address = s.allocated_address
            -- In a snapshot the size of an object is the space that the collector reserved for it.
            AND a.type_id = o.type_id AND a.size_bytes <= o.size_bytes""").fetchall()
    num_objects = sum(heap.num_objects for heap in map(profile.heap, range(3)))
    assert found == [(num_objects, num_objects, num_objects)]
    # The fast and the slow path of an allocation have different stacks.
    built = [one for one in profile.heap(0).sites(limit=None) if "Graph:Build ()" in one.stack]
    made = {name: sum(one.num_objects for one in built if one.type == name) for name in ("Chain", "Box", "OwnerA")}
    assert made == {"Chain": 1002, "Box": 101, "OwnerA": 1}


def test_two_logs_have_nothing_in_common() -> None:
    paths = [CORPUS / "v17" / f"{name}.mlpd" for name in ("graph-alloc", "everything")]
    both = perfuse.fuse(*paths)
    sites = "SELECT count(*), sum(num_moves)::BIGINT FROM heap_sites"
    alone = [perfuse.fuse(path).sql(sites).fetchall()[0] for path in paths]
    assert both.sql(sites).fetchall() == [tuple(sum(pair) for pair in zip(*alone, strict=True))]
    all_snapshots = snapshots(both)
    for snapshot in (all_snapshots[0], all_snapshots[-1]):
        heap = both.heap(snapshot.snapshot_id)
        assert heap.num_dangling == heap.num_unreachable == 0
        others = next(other for other in all_snapshots if other.source_id != snapshot.source_id)
        assert len(heap.new_objects(others, limit=None)) == heap.num_objects


def test_leaked_handles_and_what_they_retain(graph: Profile) -> None:
    profile = perfuse.fuse(CORPUS / "v17" / "everything.mlpd")
    handles = leaked_handles(profile, profile.heap())
    # src/Kitchen.cs frees all of its handles but one, of a Node.
    kitchen = {one.stack[-2]: one for one in handles if any("Kitchen:Handles" in name for name in one.stack)}
    ((_, leaked),) = kitchen.items()
    assert (leaked.kind, leaked.num_handles, leaked.types) == ("normal", 1, ("Node",))
    assert leaked.retained_bytes
    assert leaked_handles(graph, graph.heap()) == []


@pytest.mark.parametrize("path", SNAPSHOT_LOGS, ids=stem)
def test_snapshots_of_every_data_version(path: Path) -> None:
    profile = perfuse.fuse(path)
    all_snapshots = snapshots(profile)
    assert all_snapshots
    version = int(str(profile.recordings[0].version).split()[0])
    for snapshot in all_snapshots:
        heap = profile.heap(snapshot.snapshot_id)
        assert (heap.is_complete, heap.num_dangling, heap.num_repeated) == (True, 0, 0)
        assert heap.has_roots is (version >= 3)
        classes = heap.classes()
        assert sum(one.num_objects for one in classes) == heap.num_objects
        assert sum(one.size_bytes for one in classes) == heap.size_bytes
        if version >= 15:
            assert (heap.num_unreachable, heap.num_missed_roots) == (0, 0)
        paths = [heap.path_to_root(one.largest_address) for one in classes]
        assert all(path is None or (path.root is None) is (version < 3) for path in paths)


def test_a_moved_object_is_not_new() -> None:
    profile = perfuse.fuse(CORPUS / "v17" / "everything.mlpd")
    all_snapshots = snapshots(profile)
    retained_query = """
        SELECT l.snapshot_id, count(*) FROM heap_sites e JOIN heap_sites l
            ON l.allocated_ns = e.allocated_ns AND l.allocated_address = e.allocated_address
        WHERE e.snapshot_id = 0 GROUP BY 1 ORDER BY 1"""
    same = dict(profile.sql(retained_query).fetchall())
    for snapshot in all_snapshots[1:]:
        heap = profile.heap(snapshot.snapshot_id)
        new = sum(one.num_new for one in heap.growth(all_snapshots[0]))
        assert heap.num_objects - new == same[snapshot.snapshot_id]
