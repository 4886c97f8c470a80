"""What the sections of a report share while they are gathered."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, is_dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from perfuse.analysis.objects import Objects
from perfuse.analysis.thread_lifetimes import ThreadLifetime, thread_lifetimes
from perfuse.reports.json_text import address_value, is_address

if TYPE_CHECKING:
    from perfuse.analysis.orders import Order as CallOrder
    from perfuse.profile import Profile


@dataclass(frozen=True, slots=True)
class RuntimeRequest:
    """What is to be reported; the options of `perfuse report`.

    Attributes:
        sections: Names of sections; empty for an overview of all that have data.
        limit: Rows a list; None for all.
        order: What allocations are sorted by.
        call_order: What functions with calls are sorted by.
        stacks: Whether backtraces are shown whole, below what they belong to.
        frames: Innermost functions of a backtrace that are shown then; None for all.
        track: Addresses of objects whose lives are told.
        find_bytes: Objects of that size or more, whose lives are told.
        find_type: Objects of types with that in their name.
    """

    sections: tuple[str, ...] = ()
    limit: int | None = 10
    order: Literal["bytes", "count"] = "bytes"
    call_order: CallOrder = "self"
    stacks: bool = False
    frames: int | None = None
    track: tuple[int, ...] = ()
    find_bytes: int | None = None
    find_type: str | None = None

    @property
    def is_overview(self) -> bool:
        """Whether no section was asked for by itself."""
        return not self.sections

    def rows(self, in_overview: int) -> int | None:
        """How many rows a list has: fewer in an overview, where no other number was asked for."""
        if self.is_overview and self.limit is not None:
            return min(self.limit, in_overview)
        return self.limit


@dataclass(frozen=True)
class Gathering:
    """A profile while it is looked at: what several sections need is made once.

    Attributes:
        profile: The profile.
        request: What is to be reported.
    """

    profile: Profile
    request: RuntimeRequest = field(default_factory=RuntimeRequest)

    @cached_property
    def objects(self) -> Objects:
        """Objects of throws, locks and finalizers."""
        return Objects(self.profile)

    @cached_property
    def thread_labels(self) -> dict[int, str]:
        """What to call each thread."""
        return {one.thread_id: one.label for one in self.thread_lifetimes}

    @cached_property
    def thread_lifetimes(self) -> list[ThreadLifetime]:
        """Threads of the selection."""
        return thread_lifetimes(self.profile)

    @cached_property
    def start_ns(self) -> int:
        """When the recording begins."""
        span = self.profile.span_ns
        return span[0] if span else 0


def plain(value: Any) -> Any:
    """Dataclasses as dictionaries, addresses as `"0x…"`."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, dict):
        return {name: address_value(item) if is_address(name) else plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
