"""Chrome's DevTools, as Chromium brings them: their loader of heap snapshots, dominators and retained sizes."""

import json
import shutil
import time
from pathlib import Path
from typing import NamedTuple

from needs import need, need_module

_LOAD = """
async text => {
    const { HeapSnapshot, HeapSnapshotLoader } =
        await import("/devtools/entrypoints/heap_snapshot_worker/heap_snapshot_worker.js");
    const loader = new HeapSnapshotLoader.HeapSnapshotLoader({ sendEvent() {} });
    for (let at = 0; at < text.length; at += 1 << 20) loader.write(text.slice(at, at + (1 << 20)));
    loader.close();
    const { port1, port2 } = new MessageChannel();
    new HeapSnapshot.SecondaryInitManager(port2);
    const snapshot = await loader.buildSnapshot(port1);
    const nodes = [];
    for (const all = snapshot.allNodes(); all.hasNext(); all.next()) {
        const node = all.node, edges = [];
        for (const each = node.edges(); each.hasNext(); each.next()) {
            const edge = each.edge;
            edges.push([edge.name(), edge.node().ordinal(), edge.isWeak()]);
        }
        const ordinal = node.ordinal();
        nodes.push([node.name(), node.type(), node.selfSize(), snapshot.retainedSizes[ordinal],
            snapshot.dominatorsTree[ordinal], node.distance(), edges]);
    }
    const classes = snapshot.aggregatesWithFilter({});
    const counted = Object.values(classes).map(of => [of.name, [of.count, of.self]]);
    return JSON.stringify([nodes, snapshot.totalSize, counted]);
}
"""


class Node(NamedTuple):
    """A node with its edges: name, target and whether it is weak."""

    name: str
    type: str
    size_bytes: int
    retained_bytes: int
    dominator: int
    distance: int
    edges: list[tuple[str, int, bool]]


class LoadedHeap(NamedTuple):
    """A heap snapshot in DevTools: nodes, bytes, and number and bytes by class."""

    nodes: list[Node]
    size_bytes: int
    classes: dict[str, tuple[int, int]]


def loaded(path: Path, directory: Path) -> LoadedHeap:
    """What DevTools make of a `.heapsnapshot`; `directory` is for the browser's own files."""
    need("chromium")
    playwright = need_module("playwright.sync_api")
    with playwright.sync_playwright() as started:
        context = started.chromium.launch_persistent_context(
            directory,
            executable_path=shutil.which("chromium"),
            args=["--remote-debugging-port=0", "--no-sandbox"],
        )
        try:
            port_file = directory / "DevToolsActivePort"
            deadline = time.monotonic() + 60
            while not port_file.exists() or not port_file.read_text():
                assert time.monotonic() < deadline
                time.sleep(0.05)
            page = context.new_page()
            page.goto(f"http://127.0.0.1:{port_file.read_text().split()[0]}/json/version")
            nodes, size_bytes, classes = json.loads(page.evaluate(_LOAD, path.read_text()))
        finally:
            context.close()
    return LoadedHeap(
        [Node(*node[:-1], [tuple(edge) for edge in node[-1]]) for node in nodes],
        size_bytes,
        {name: tuple(counted) for name, counted in classes},
    )
