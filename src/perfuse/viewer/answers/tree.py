"""The call tree of a selection, in the bytes that the flame graph's page reads."""

import json
import struct
from typing import TYPE_CHECKING

from arro3.core import Table

from perfuse.analysis.flame import FlameTree
from perfuse.errors import UsageError
from perfuse.viewer.answers.parameters import Parameters, RequestError
from perfuse.viewer.answers.selected import Selected, selected

if TYPE_CHECKING:
    from perfuse.viewer.session import Session


def tree(session: "Session", parameters: Parameters) -> bytes:
    """The call tree; with `inverted=1` it opens with callers below callees; `recording=base` is the other recording."""
    session = recording_of(session, parameters)
    part = selected(session, parameters, takes_filters=True)
    inverted = parameters.flag("inverted")
    min_share = parameters.share("min_share", 0.0)
    if not session.events():
        raise RequestError(404, "not_recorded", "the recording has no samples, calls or allocations")
    options = ["--inverted"] if inverted else []
    command = part.command_of_weights("flame", "-o", "flame.html", *options)
    return tree_bytes(flame_of(part, inverted=inverted), min_share, {**command})


def recording_of(session: "Session", parameters: Parameters) -> "Session":
    """The session, or that of the recording it is compared with."""
    return session.base if parameters.choice("recording", ("own", "base")) == "base" else session


def flame_of(part: Selected, *, inverted: bool = False) -> FlameTree:
    """The flame graph of a selection: of its event, or of the default event of the whole profile."""
    event = part.event or part.session.events()[0].name
    try:
        return FlameTree.of(part.profile, inverted=inverted, event=event)
    except UsageError:
        # The selected part has no sample of the event: an empty tree.
        return FlameTree.of(part.session.profile, inverted=inverted, event=event, threads=())


def tree_bytes(flame: FlameTree, min_share: float, extra: dict[str, object]) -> bytes:
    """Length of a JSON text, the text, padding to 8 bytes, the nodes of the tree."""
    from perfuse.exporters.html import description

    found = flame.tree(split_threads=True, min_share=min_share)
    shown = {
        **description(flame, Table.from_arrow(found.symbols())),
        **extra,
        "empty": found.total_samples == 0,
        "total_weight": found.total_weight,
        "total_samples": found.total_samples,
    }
    text = json.dumps(shown, separators=(",", ":")).encode()
    head = struct.pack("<I", len(text)) + text
    return head + bytes(-len(head) % 8) + found.to_bytes()
