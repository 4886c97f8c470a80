"""The stacks of many recordings as one profile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from perfuse.fleet.questions import FleetEvent
from perfuse.fleet.selecting import Recordings

if TYPE_CHECKING:
    from perfuse.fleet.dataset import Fleet
    from perfuse.profile import Profile


def collapsed_stacks(fleet: Fleet, which: Recordings, event: FleetEvent) -> bytes:
    """The sums of the selected recordings by stack, as collapsed stacks: `main;render 1234`.

    Several functions of one name have their files after it: `helper (a.c)`.
    """
    sums = fleet.only(which).rows(
        f"""SELECT stack_hash, sum(weight)::BIGINT FROM stack_totals SEMI JOIN ({which.query}) AS r USING (recording_id)
        WHERE event = ? GROUP BY stack_hash HAVING sum(weight) > 0 ORDER BY stack_hash""",
        [*which.parameters, event.name],
    )
    stacks = {own: (parent, function) for own, parent, function in fleet.head.rows("FROM stacks")}
    functions = fleet.head.rows("SELECT function_hash, name, coalesce(path, module) FROM functions")
    names = _distinct_names({own: (_plain(name), place or "-") for own, name, place in functions})
    texts: dict[bytes, str] = {}

    def text_of(stack: bytes) -> str:
        todo = [stack]
        while todo:
            at = todo[-1]
            parent, function = stacks[at]
            if parent is not None and parent not in texts:
                todo.append(parent)
                continue
            texts[at] = names[function] if parent is None else f"{texts[parent]};{names[function]}"
            todo.pop()
        return texts[stack]

    return "".join(f"{text_of(stack)} {weight}\n" for stack, weight in sums).encode()


def collapsed_profile(fleet: Fleet, which: Recordings, event: FleetEvent) -> Profile:
    """The sums of the selected recordings as a profile: reports, flame graphs and exporters take it."""
    import perfuse
    from perfuse.reports.units import counted

    profile = perfuse.fuse(collapsed_stacks(fleet, which, event))
    number = counted(event.num_recordings, "recording")
    profile.title = f"{event.name} of {number}{f' ({which.text})' if which.text else ''}"
    return profile


def _distinct_names(functions: Mapping[bytes, tuple[str, str]]) -> dict[bytes, str]:
    """The name of each function, given with its file: with the file where others have the name."""
    from perfuse.reports.names import distinct_texts

    places: dict[str, set[str]] = {}
    for name, place in functions.values():
        places.setdefault(name, set()).add(place)
    shown = {name: distinct_texts(of_name) for name, of_name in places.items() if len(of_name) > 1}
    return {
        own: f"{name} ({_plain(shown[name][place])})" if name in shown else name
        for own, (name, place) in functions.items()
    }


def _plain(name: str) -> str:
    """A name without the characters that separate functions and lines."""
    return name.replace(";", ":").replace("\n", " ").replace("\r", " ") or "[unnamed]"
