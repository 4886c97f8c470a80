"""The tree of names under a profile's stacks."""

from dataclasses import dataclass, field

from perfuse.exporters.frames import FRAMES
from perfuse.exporters.source import Source

PARENTS_FIRST = """
    SELECT stack_id, coalesce(parent_stack_id::BIGINT, -1), frame_id FROM stacks ORDER BY stack_id
"""
"""Every stack, its parent (-1 for none) and its frame; a parent's key is less than its children's."""


@dataclass(slots=True)
class NameTree:
    """Stacks merged by what their frames are called: two addresses in one function are one node.

    Attributes:
        parents: Parent of each node, less than the node; -1 at a root.
        labels: Index in `names` of each node.
        names: Every name once.
        node_of: Node of each `stack_id`.
    """

    parents: list[int] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    node_of: dict[int, int] = field(default_factory=dict)

    def path(self, node: int) -> list[int]:
        """Names on the way to a node, root first, as indexes."""
        path = []
        while node >= 0:
            path.append(self.labels[node])
            node = self.parents[node]
        return path[::-1]


def name_tree(profile: Source, name: str = "label") -> NameTree:
    """The tree of all stacks; `name` is an expression over `exporters.frames.FRAMES`."""
    tree = NameTree()
    labels: dict[str, int] = {}
    rows = profile.sql(f"SELECT frame_id, {name} FROM ({FRAMES}) ORDER BY frame_id").fetchall()
    of_frame = {frame: labels.setdefault(label, len(labels)) for frame, label in rows}
    tree.names = list(labels)
    nodes: dict[tuple[int, int], int] = {}
    for stack, parent, frame in profile.sql(PARENTS_FIRST).fetchall():
        key = (tree.node_of[parent] if parent >= 0 else -1, of_frame[frame])
        node = nodes.setdefault(key, len(nodes))
        if node == len(tree.parents):
            tree.parents.append(key[0])
            tree.labels.append(key[1])
        tree.node_of[stack] = node
    return tree
