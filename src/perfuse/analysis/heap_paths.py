"""Why an object is alive: a shortest way to it from a root, by name."""

from dataclasses import dataclass

ROOTS = {
    "static": "static field of {owner}",
    "thread_static": "thread static of {owner}",
    "context_static": "context static",
    "stack": "stack of {owner}",
    "gc_handle": "GC handle",
    "unknown": "a root that was never described",
    "other": "a root of another kind",
    "misc": "a root of another kind",
}
"""What people call the kinds of roots; any other kind is called what the recording calls it."""


@dataclass(frozen=True, slots=True)
class Root:
    """What keeps an object alive that no object has to refer to.

    Attributes:
        kind: `static`, `stack`, `gc_handle` and so on, as in table `heap_roots`.
        name: What the memory it lies in is called; None where the recording does not say.
        slot_address: Where it lies; None where the recording does not say.
        owner: Type whose static field it is, or thread whose stack or thread static; None where that is not known.
    """

    kind: str
    name: str | None
    slot_address: int | None
    owner: str | None

    def __str__(self) -> str:
        text = ROOTS.get(self.kind, self.kind.replace("_", " ")).format(owner=self.owner or "an unknown owner")
        # The names of statics and stacks say no more than their kind.
        return text if self.name is None or self.owner else f"{text}: {self.name}"


@dataclass(frozen=True, slots=True)
class Step:
    """An object on the way.

    Attributes:
        address: Its address in the shot.
        type: Its type; None where the recording never describes it.
        size_bytes: Its own size.
        retained_bytes: What would go with it.
        field_offset: Where in the object before it the reference lies, in bytes; None at the first, and where that was
            not recorded.
    """

    address: int
    type: str | None
    size_bytes: int
    retained_bytes: int
    field_offset: int | None


@dataclass(frozen=True, slots=True)
class Path:
    """A shortest way from a root to an object.

    Attributes:
        root: Where it begins; None where the recording has no roots: then at an object that nothing refers to.
        steps: The objects on the way, the one it leads to last.
    """

    root: Root | None
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        """`static field of Cache → Entry[] → Entry (at +16)`"""
        begin = "nothing refers to it" if self.root is None else str(self.root)
        return " → ".join([begin, *(_step_text(step) for step in self.steps)])


def _step_text(step: Step) -> str:
    name = step.type or "unknown type"
    return name if step.field_offset is None else f"{name} (at +{step.field_offset})"
