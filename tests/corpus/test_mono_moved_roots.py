"""Heap snapshots before data version 15, whose roots and moves are recorded outside of the snapshot.

The expected values are from another decoder and a plain walk over the object graph.
"""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import perfuse
from mlpd_events import Event, read_events
from perfuse.analysis.heap import snapshots

from .mono_logs import CORPUS, logs, stem

if not CORPUS.is_dir():
    pytest.skip(f"no corpus at {CORPUS}", allow_module_level=True)

OLD = [path for path in logs("tiny") if "heapshot" in stem(path) and path.name < "v15"]
ROOTED = [path for path in OLD if path.name >= "v03"]
GC_EVENT, GC_MOVE, HEAP_START, HEAP_OBJECT, HEAP_ROOT = 0x11, 0x31, 0x06, 0x26, 0x36
WEAK = 0x200


@dataclass
class Shot:
    """A snapshot, with the roots and moves of its collection."""

    roots: list[int] = field(default_factory=list)
    sizes: dict[int, int] = field(default_factory=dict)
    references: dict[int, list[int]] = field(default_factory=dict)
    moves: list[tuple[int, int]] = field(default_factory=list)

    def add(self, event: Event, version: int) -> None:
        """Adds an event of the collection."""
        if event.byte == HEAP_ROOT:
            self.roots += [root for root, kind, _ in event.pairs if version == 13 or not kind & WEAK]
        elif event.byte == HEAP_OBJECT:
            address, _, size = event.values
            self.sizes[address] = self.sizes.get(address, 0) + size
            self.references.setdefault(address, []).extend(target for _, target in event.pairs)
        elif event.byte == GC_MOVE:
            self.moves += event.pairs

    def final(self, address: int) -> int:
        """Address after the collection."""
        for old, new in self.moves:
            address = new if address == old else address
        return address

    def around(self, address: int) -> int | None:
        """The object that contains an address."""
        return next((start for start, size in self.sizes.items() if start <= address < start + size), None)

    def reached(self, without: int | None = None) -> set[int]:
        """Objects that a path from a root reaches that does not go through one object."""
        reached: set[int] = set()
        pending = [self.around(self.final(root)) for root in self.roots]
        while pending:
            object_ = pending.pop()
            if object_ is not None and object_ != without and object_ in self.sizes and object_ not in reached:
                reached.add(object_)
                pending += self.references[object_]
        return reached


def shots_of(path: Path) -> list[Shot]:
    """The snapshots of a log with one collecting thread at a time: each is of the collection that it ends."""
    version = int(stem(path)[1:3])
    shots: list[Shot] = []
    by_thread: dict[int, Shot] = {}
    for event in read_events(path):
        if event.byte == GC_EVENT and event.values[0] == 0:
            by_thread[event.thread] = Shot()
        shot = by_thread.setdefault(event.thread, Shot())
        if event.byte == HEAP_START:
            shots.append(shot)
        shot.add(event, version)
    return shots


@pytest.mark.truth(
    recording=["mono_heap", "mono_before_15"],
    path=["api:Profile.heap", "report:heap"],
    source="another decoder and a walk over the graph in the test",
)
@pytest.mark.parametrize("path", ROOTED, ids=stem)
def test_roots_of_moved_objects_keep_them_alive(path: Path) -> None:
    profile = perfuse.fuse(path)
    expected = shots_of(path)
    assert any(shot.final(root) != root for shot in expected for root in shot.roots)
    for snapshot, shot in zip(snapshots(profile), expected, strict=True):
        heap = profile.heap(snapshot.snapshot_id)
        reached = shot.reached()
        assert (heap.num_objects, heap.num_unreachable) == (len(shot.sizes), len(shot.sizes) - len(reached))
        for address in reached:
            kept = reached - shot.reached(without=address)
            found = heap.retained(address)
            assert (found.num_retained, found.retained_bytes) == (len(kept), sum(shot.sizes[one] for one in kept))


@pytest.mark.truth(
    recording=["mono_heap", "mono_before_15"],
    path="api:Profile.heap",
    source="another decoder and a replay of the moves in the test",
)
@pytest.mark.parametrize("path", OLD, ids=stem)
def test_objects_moved_after_the_end_of_a_snapshot_are_followed(path: Path) -> None:
    """The moves of the first collection precede the addresses of its snapshot; those of the second follow them."""
    profile = perfuse.fuse(path)
    shots = shots_of(path)
    found = [profile.heap(one.snapshot_id) for one in snapshots(profile)]
    if len(shots) < 2:
        return
    first, second = shots
    origins = {address: address for address in first.sizes}
    for old, new in second.moves:
        if old in origins:
            origins[new] = origins.pop(old)
    kept = {address for address in second.sizes if address in origins}
    growth = found[1].growth(found[0].snapshot)
    assert sum(one.num_new for one in growth) == len(second.sizes) - len(kept)
    assert sum(one.num_gone for one in growth) == len(first.sizes) - len(kept)
    assert Counter(second.moves) != Counter()
