"""Heap snapshots: types, the dominator tree level by level, single objects, growth, allocation sites."""

from typing import TYPE_CHECKING, Any

from perfuse.reports.units import hex_text
from perfuse.viewer.answers.parameters import Parameters, RequestError, page_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from perfuse.analysis.heap import Heap
    from perfuse.analysis.heap_rows import ClassGrowth, HeapObject, HeapReference, HeapRoot, PathStep, RootPath
    from perfuse.viewer.session import Session

MOST_OBJECTS = 5000
MOST_STEPS = 60
"""Objects of a path: that of the last link of a list has all links."""
SORTS = ("retained", "size", "count", "name", "growth")


def _heap(session: "Session", parameters: Parameters, name: str = "snapshot") -> "Heap":
    """The snapshot that a parameter names; by default the last one."""
    if not session.profile.has_heap_snapshots:
        raise RequestError(404, "not_recorded", "the recording has no heap snapshots")
    key = parameters.number(name, most=2**32 - 1)
    if key is None:
        from perfuse.analysis.heap import snapshots

        rows = snapshots(session.profile)
        if not rows:
            raise RequestError(404, "not_recorded", "the recording has no heap snapshots")
        key = rows[-1].snapshot_id
    return session.cached(("heap", key), lambda: session.profile.heap(key))


def _command(session: "Session") -> dict[str, str]:
    return {"command": session.command("report", "--section", "heap")}


def types(session: "Session", parameters: Parameters) -> dict[str, Any]:
    """The types of a snapshot, by page; with `since` also what was added since an earlier one."""
    heap = _heap(session, parameters)
    sort = parameters.choice("sort", SORTS)
    order = parameters.choice("order", ("asc", "desc"), "asc" if sort == "name" else "desc")
    pattern = parameters.text("q")
    since = None if parameters.text("since") is None else _heap(session, parameters, "since")
    classes = session.cached(("heap-types", heap.snapshot.snapshot_id), heap.classes)
    earlier: dict[int | None, Any] = {}
    if since is not None:
        earlier = {
            one.type_id: one for one in session.cached(("heap-types", since.snapshot.snapshot_id), since.classes)
        }
    rows: list[dict[str, Any]] = []
    for one in classes:
        before = earlier.get(one.type_id)
        grown = since is not None
        rows.append(
            {
                "type_id": one.type_id,
                "type": one.type,
                "objects": one.num_objects,
                "bytes": one.size_bytes,
                "retained_bytes": one.retained_bytes,
                "unreachable": one.num_unreachable,
                "largest_address": None if one.largest_address is None else hex_text(one.largest_address),
                "largest_retained_bytes": one.largest_retained_bytes,
                "delta_objects": one.num_objects - (before.num_objects if before else 0) if grown else None,
                "delta_bytes": one.size_bytes - (before.size_bytes if before else 0) if grown else None,
            }
        )
    if pattern is not None:
        rows = [row for row in rows if pattern.casefold() in (row["type"] or "").casefold()]
    keys = {
        "retained": lambda row: row["retained_bytes"],
        "size": lambda row: row["bytes"],
        "count": lambda row: row["objects"],
        "name": lambda row: row["type"] or "",
        "growth": lambda row: row["delta_bytes"] or 0,
    }
    rows.sort(key=keys[sort], reverse=order == "desc")
    totals = {
        "objects": heap.num_objects,
        "bytes": heap.size_bytes,
        "references": heap.num_references,
        "roots": heap.num_roots,
        "has_roots": heap.has_roots,
        "unreachable": heap.num_unreachable,
        "unreachable_bytes": heap.unreachable_bytes,
        "is_complete": heap.is_complete,
    }
    return {
        "snapshot": heap.snapshot.snapshot_id,
        "num": len(rows),
        "rows": list(page_of(rows, parameters)),
        "totals": totals,
        **_command(session),
    }


def _object(one: "HeapObject") -> dict[str, Any]:
    return {
        "address": hex_text(one.address),
        "type": one.type,
        "bytes": one.size_bytes,
        "dominator": None if one.dominator_address is None else hex_text(one.dominator_address),
        "retained_bytes": one.retained_bytes,
        "retained_objects": one.num_retained,
        "is_reachable": one.is_reachable,
        "has_children": one.num_retained > 1,
    }


def dominated(session: "Session", parameters: Parameters) -> dict[str, Any]:
    """The next level of the dominator tree: the largest objects that an object retains directly, and the rest."""
    heap = _heap(session, parameters)
    address = parameters.address("address", required=False)
    limit = parameters.count("limit", 100, least=1, most=MOST_OBJECTS)
    rows = heap.dominated(address, limit)
    if address is None:
        whole, objects = heap.size_bytes, heap.num_objects
        if heap.has_roots:
            whole -= heap.unreachable_bytes or 0
            objects -= heap.num_unreachable or 0
    else:
        above = heap.retained(address)
        whole, objects = above.retained_bytes - above.size_bytes, above.num_retained - 1
    rest = {
        "bytes": whole - sum(row.retained_bytes for row in rows),
        "objects": objects - sum(row.num_retained for row in rows),
    }
    return {"rows": [_object(row) for row in rows], "rest": rest, **_command(session)}


def object_at(session: "Session", parameters: Parameters) -> dict[str, Any]:
    """An object, a path from a root to it, and its references in both directions, by page."""
    heap = _heap(session, parameters)
    address = parameters.address("address")
    limit = parameters.count("limit", 100, most=MOST_OBJECTS)
    offset = parameters.count("offset", 0, most=10**6)
    assert address is not None
    found = heap.retained(address)
    num_from, of = heap.references(address, offset + limit)
    num_to, to = heap.references(address, offset + limit, to=True)
    return {
        "object": _object(found),
        **_path(heap.path_to_root(address, MOST_STEPS)),
        "num_refers_to": num_from,
        "refers_to": list(map(_reference, of[offset:])),
        "num_referred_by": num_to,
        "referred_by": list(map(_reference, to[offset:])),
        **_command(session),
    }


def _reference(one: "HeapReference") -> dict[str, Any]:
    return {
        "address": hex_text(one.address),
        "type": one.type,
        "bytes": one.size_bytes,
        "field_offset": one.field_offset,
    }


def _path(path: "RootPath | None") -> dict[str, Any]:
    if path is None:
        return {"root": None, "path": []}

    def steps(of: "Iterable[PathStep]") -> list[dict[str, Any]]:
        return [
            {
                "address": hex_text(step.address),
                "type": step.type,
                "bytes": step.size_bytes,
                "retained_bytes": step.retained_bytes,
                "field_offset": step.field_offset,
            }
            for step in of
        ]

    end = {"num_left_out": path.num_left_out, "path_end": steps(path.last_steps)} if path.num_left_out else {}
    return {"root": _root(path.root), "path": steps(path.first_steps), **end}


def _root(root: "HeapRoot | None") -> dict[str, Any] | None:
    if root is None:
        return None
    slot = None if root.slot_address is None else hex_text(root.slot_address)
    return {"kind": root.kind, "name": root.name, "slot_address": slot, "owner": root.owner, "text": str(root)}


def instances(session: "Session", parameters: Parameters) -> dict[str, Any]:
    """Objects of a type, by page, those that retain most first."""
    heap = _heap(session, parameters)
    type_id = parameters.required("type_id", most=2**32 - 1)
    offset, limit = parameters.count("offset", 0, most=10**6), parameters.count("limit", 100, most=MOST_OBJECTS)
    classes = session.cached(("heap-types", heap.snapshot.snapshot_id), heap.classes)
    num = next((one.num_objects for one in classes if one.type_id == type_id), 0)
    rows = heap.instances(type_id, limit, offset=offset)
    return {"num": num, "rows": [_object(one) for one in rows], **_command(session)}


def paths(session: "Session", parameters: Parameters) -> dict[str, Any]:
    """What holds the objects of a type: paths from roots, merged by type, those that retain most first."""
    from perfuse.analysis.held_objects import holding_paths

    heap = _heap(session, parameters)
    type_id = parameters.required("type_id", most=2**32 - 1)
    limit = parameters.count("limit", 50, most=MOST_OBJECTS)
    snapshot = heap.snapshot.snapshot_id
    found = session.cached(("heap-paths", snapshot, type_id), lambda: holding_paths(heap, [type_id]))
    rows = [
        {
            "root": _root(one.root),
            "is_reachable": one.is_reachable,
            "types": list(one.types),
            "objects": one.num_objects,
            "bytes": one.size_bytes,
            "retained_bytes": one.retained_bytes,
            "address": hex_text(one.address),
        }
        for one in found[:limit]
    ]
    name = found[0].types[-1] if found else ""
    command = session.command("report", "--section", "heap", "--type", name, "--snapshot", str(snapshot))
    return {"num": len(found), "rows": rows, "command": command}


def growth(session: "Session", parameters: Parameters) -> dict[str, Any]:
    """Changes of each type since an earlier snapshot, and the largest new objects."""
    heap, since = _heap(session, parameters), _heap(session, parameters, "since")
    if since.snapshot.ts_ns >= heap.snapshot.ts_ns:
        raise RequestError(400, "bad_parameter", "since is an earlier snapshot")
    limit = parameters.count("limit", 100, most=MOST_OBJECTS)
    key = heap.snapshot.snapshot_id, since.snapshot.snapshot_id
    changes = session.cached(("heap-growth", *key), lambda: heap.growth(since))
    classes = session.cached(("heap-types", heap.snapshot.snapshot_id), heap.classes)
    type_ids = {one.type: one.type_id for one in classes}
    return {
        "num": len(changes),
        "rows": [{**_growth(one), "type_id": type_ids.get(one.type)} for one in changes[:limit]],
        "new_objects": [_object(one) for one in heap.new_objects(since, 20)],
        **_command(session),
    }


def _growth(one: "ClassGrowth") -> dict[str, Any]:
    pairs = {"objects": one.num_objects, "bytes": one.size_bytes, "retained_bytes": one.retained_bytes}
    changes = {f"delta_{name}": after - before for name, (before, after) in pairs.items()}
    new = {"new_objects": one.num_new, "new_bytes": one.new_bytes}
    return {"type": one.type, **changes, **new, "gone_objects": one.num_gone, "gone_bytes": one.gone_bytes}


def sites(session: "Session", parameters: Parameters) -> dict[str, Any]:
    """Where live objects were allocated."""
    heap = _heap(session, parameters)
    limit = parameters.count("limit", 100, most=MOST_OBJECTS)
    return {
        "rows": [
            {"type": one.type, "objects": one.num_objects, "bytes": one.size_bytes, "stack": list(one.stack)}
            for one in heap.sites(limit)
        ],
        "num_sited": heap.num_sited,
        **_command(session),
    }


def tree(session: "Session", parameters: Parameters) -> bytes:
    """Retained sizes by type and root, as the bytes of a call tree."""
    from perfuse.analysis.flame import FlameTree
    from perfuse.viewer.answers.tree import tree_bytes

    heap = _heap(session, parameters)
    min_share = parameters.share("min_share", 0.0)
    make = lambda: FlameTree.of(heap.retained_sizes)  # noqa: E731 - one line
    flame = session.cached(("heap-tree", heap.snapshot.snapshot_id), make)
    command = session.command("flame", "--weight", "retained", "-o", "heap.html")
    return tree_bytes(flame, min_share, {"command": command})
