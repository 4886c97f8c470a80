"""Heap snapshots in the files of other heap viewers, read by these: Chrome's DevTools and VisualVM."""

import subprocess
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest
from devtools import loaded

import perfuse as pf
from needs import need
from perfuse.errors import ExportError, ExportWarning
from perfuse.profile import Profile

from .kinds import Kind

HEAP_LIBRARY = Path("/usr/share/visualvm/visualvm/modules/org-graalvm-visualvm-lib-jfluid-heap.jar")
READER = Path(__file__).parents[1] / "exporters" / "peers" / "ReadHprof.java"

LAST = {"mono_heap": 2, "mono_before_15": 1}
"""Key of the last snapshot of a recording: src/Graph.cs and src/Tiny.cs take so many more."""

Row = tuple[int, str, int, int | None, int, bool | None]
"""Address, type, size, dominator, retained size of an object, and whether a root keeps it alive."""


def rows_of(profile: Profile) -> list[Row]:
    """The objects of the last snapshot, in the order of their addresses."""
    return profile.sql("""
        SELECT object_address, coalesce(t.name::VARCHAR, 'unknown type'), size_bytes, dominator_address, retained_bytes,
            is_reachable
        FROM heap_dominators LEFT JOIN types t USING (type_id)
        WHERE snapshot_id = (SELECT max(snapshot_id) FROM heap_snapshots) ORDER BY object_address
    """).fetchall()


@pytest.mark.truth(
    recording=["mono_heap", "mono_before_15"],
    path="convert:heapsnapshot",
    source="dominators, retained sizes and classes of the DevTools in Chromium",
)
def test_devtools_find_the_same_dominators(kind: Kind, profile: Profile, tmp_path: Path) -> None:
    with pytest.warns(
        ExportWarning, match=rf"only heap snapshot {LAST[kind.name]} is written, not {LAST[kind.name]} earl"
    ):
        profile.export(tmp_path / "one.heapsnapshot")
    heap = loaded(tmp_path / "one.heapsnapshot", tmp_path / "chromium")
    rows = rows_of(profile)
    first = len(heap.nodes) - len(rows)
    objects = heap.nodes[first:]
    assert {node.type for node in heap.nodes[:first]} == {"synthetic"}
    found = [
        (
            node.name,
            node.size_bytes,
            node.retained_bytes,
            rows[node.dominator - first][0] if node.dominator >= first else None,
        )
        for node in objects
    ]
    assert found == [(name, size, retained, above) for _, name, size, above, retained, _ in rows]
    assert heap.size_bytes == sum(row[2] for row in rows)
    classes: dict[str, list[int]] = defaultdict(list)
    for _, name, size, *_ in rows:
        classes[name].append(size)
    counted = {name: (len(sizes), sum(sizes)) for name, sizes in classes.items()}
    assert {name: heap.classes[name] for name in counted} == counted
    references = profile.sql("""
        SELECT owner_address, coalesce('+' || field_offset, ''), target_address FROM heap_references
        WHERE snapshot_id = (SELECT max(snapshot_id) FROM heap_snapshots)
    """).fetchall()
    edges = [
        (address, name if name.startswith("+") else "", rows[to - first][0])
        for (address, *_), node in zip(rows, objects, strict=True)
        for name, to, _ in node.edges
    ]
    assert sorted(edges) == sorted(references)
    # A path from a root in DevTools begins with what perfuse calls the root.
    roots = {(name, rows[to - first][0]) for node in heap.nodes[:first] for name, to, _ in node.edges if to >= first}
    whole = profile.heap()
    for address, *_ in rows[:50]:
        root = whole.root_of(address)
        assert root is None or (str(root), address) in roots


class Dump(NamedTuple):
    """What VisualVM reads: type, size and retained size by address, references, roots with kinds, static fields."""

    summary: tuple[int, int]
    objects: dict[int, tuple[str, int, int]]
    references: set[tuple[int, str, int]]
    roots: set[tuple[str, int]]
    statics: set[tuple[str, int]]


def read_hprof(path: Path) -> Dump:
    need("java")
    if not HEAP_LIBRARY.exists():
        pytest.skip("visualvm is not installed")
    command = ["java", "-Xmx512m", "-cp", HEAP_LIBRARY, READER, path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    by_tag: dict[str, list[list[str]]] = defaultdict(list)
    for tag, *values in lines:
        by_tag[tag].append(values)
    ((num, size, _),) = by_tag["summary"]
    return Dump(
        (int(num), int(size)),
        {int(at): (name, int(size), int(retained)) for at, name, size, retained in by_tag["object"]},
        {(int(at), name, int(to)) for at, name, to in (*by_tag["field"], *by_tag["element"])},
        {(kind, int(at)) for kind, at in by_tag["root"]},
        {(name, int(at)) for name, _, at in by_tag["static"]},
    )


@pytest.mark.truth(
    recording=["mono_heap", "mono_before_15"],
    path="convert:hprof",
    source="sizes, references, roots and retained sizes of VisualVM's heap library",
)
def test_visualvm_reads_the_same_heap(kind: Kind, profile: Profile, tmp_path: Path) -> None:
    last = LAST[kind.name]
    profile.export(tmp_path / "one.hprof", snapshot=last)
    dump = read_hprof(tmp_path / "one.hprof")
    rows = rows_of(profile)
    assert dump.summary == (len(rows), sum(row[2] for row in rows))
    assert {at: of[:2] for at, of in dump.objects.items()} == {at: (name, size) for at, name, size, *_ in rows}
    retained = {at: of[2] for at, of in dump.objects.items()}
    assert all(retained[at] == bytes_ for at, _, _, _, bytes_, is_reachable in rows if is_reachable)
    references = profile.sql(
        f"SELECT owner_address, target_address FROM heap_references WHERE snapshot_id = {last}"
    ).fetchall()
    assert {(at, to) for at, _, to in dump.references} == set(references)
    query = f"SELECT owner_address, field_offset, target_address FROM heap_references WHERE snapshot_id = {last}"
    offsets = set(profile.sql(query).fetchall())
    for at, name, to in dump.references:
        assert name.isdigit() or (at, int(name[1:]), to) in offsets
    roots = profile.sql(f"""
        SELECT r.kind::VARCHAR, t.name::VARCHAR, object_address
        FROM heap_roots r LEFT JOIN types t ON t.type_id = owner_type_id
        WHERE snapshot_id = {last} AND NOT coalesce(weak, false)
    """).fetchall()
    rooted = {at for _, at in dump.roots} | {at for _, at in dump.statics}
    assert {at for _, _, at in roots if at in dump.objects} == rooted & dump.objects.keys()
    assert {(owner, at) for kind, owner, at in roots if kind == "static" and owner} == dump.statics
    handles = {at for kind, _, at in roots if kind == "gc_handle"}
    assert handles == {at for kind, at in dump.roots if kind == "JNI global"}


@pytest.mark.truth(
    recording="mono_heap", path=["convert:heapsnapshot", "convert:hprof"], source="names of the recorded snapshots"
)
def test_a_directory_gets_every_snapshot(profile: Profile, path: str, tmp_path: Path) -> None:
    target = path.removeprefix("convert:")
    (tmp_path / "all").mkdir()
    written = profile.export(tmp_path / "all", to=target)
    assert [Path(name).name for name in written] == [f"snapshot-{key}.{target}" for key in range(3)]
    with pytest.raises(ExportError, match="there is no heap snapshot 7"):
        profile.export(tmp_path / "one", to=target, snapshot=7)


def test_a_time_without_a_snapshot_is_stated(tmp_path: Path) -> None:
    """Not that Mono can record snapshots: the log has some."""
    log = Path(__file__).parents[2] / "examples" / "mono_sessions" / "sessions.mlpd.gz"
    out = tmp_path / "out.hprof"
    with pf.fuse(log) as profile, pytest.raises(ExportError, match="no heap snapshot is in the selected") as raised:
        profile.between(0, 0.01).export(out)
    assert "the log has 3" in (raised.value.hint or "")
    assert not out.exists()
