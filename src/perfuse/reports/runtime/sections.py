"""What the sections of the runtime report share: the request, data made once, backtraces, JSON values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from perfuse.analysis.objects import Objects
from perfuse.analysis.thread_lifetimes import ThreadLifetime, thread_lifetimes
from perfuse.reports.json_text import address_value, is_address
from perfuse.reports.text import ELLIPSIS, Role, Style, cell_width, cut, printable
from perfuse.reports.units import count_text
from perfuse.value_class import as_dict, has_fields, value_class

if TYPE_CHECKING:
    from perfuse.analysis.orders import Order as CallOrder
    from perfuse.profile import Profile


@value_class
class RuntimeRequest:
    """What a report contains; the options of `perfuse report`.

    Attributes:
        sections: Names of the sections to report; empty for an overview of all that have data.
        limit: Rows per list; None for all.
        order: The sort order of allocations.
        call_order: The sort order of functions with calls.
        stacks: Whether whole backtraces are shown, below the row they belong to.
        frames: How many innermost functions of a whole backtrace are shown; None for all.
        track: Addresses of objects whose history is listed.
        find_bytes: List the history of objects of that size or more.
        find_type: List the history of objects whose type name contains this.
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
        """Whether all sections are reported, in brief."""
        return not self.sections

    def rows(self, in_overview: int) -> int | None:
        """The number of rows of a list: at most `in_overview` in an overview."""
        if self.is_overview and self.limit is not None:
            return min(self.limit, in_overview)
        return self.limit


class SectionContext:
    """A profile with data that several sections need, each computed once.

    Attributes:
        profile: The profile.
        request: What the report contains.
    """

    def __init__(self, profile: Profile, request: RuntimeRequest | None = None) -> None:
        self.profile, self.request = profile, request or RuntimeRequest()

    @cached_property
    def objects(self) -> Objects:
        """Objects that exceptions, locks and finalizers refer to."""
        return Objects(self.profile)

    @cached_property
    def thread_labels(self) -> dict[int, str]:
        """The label of each thread, by `thread_id`."""
        return {one.thread_id: one.label for one in self.thread_lifetimes}

    @cached_property
    def thread_lifetimes(self) -> list[ThreadLifetime]:
        """The selected threads."""
        return thread_lifetimes(self.profile)

    @cached_property
    def start_ns(self) -> int:
        """Start of the whole recording, whatever is selected, on the profile's clock."""
        span = self.profile._whole().span_ns
        return span[0] if span else 0


def as_plain(value: Any) -> Any:
    """Objects with fields as dictionaries, addresses as `"0x…"`."""
    if has_fields(value):
        value = as_dict(value)
    if isinstance(value, dict):
        return {name: address_value(item) if is_address(name) else as_plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(item) for item in value]
    return value


_PARAMETERS = re.compile(r" \(.*\)$")
_WRAPPER = re.compile(r"^\(wrapper ([\w-]+)\) ")
_NAMESPACES = re.compile(r"(?<![\w.])(?:\w+\.)+(?=[^\s:]*:)")
ARROW = " → "
NOTHING = "(no backtrace)"


def short_name(name: str) -> str:
    """A method without namespaces and parameters.

    >>> short_name("(wrapper managed-to-native) System.Threading.Thread:SleepInternal (int)")
    'Thread:SleepInternal'
    """
    return _NAMESPACES.sub("", _PARAMETERS.sub("", _WRAPPER.sub("", name))) or name


def backtrace_text(backtrace: Sequence[str], width: int | None) -> str:
    """`… → Main → Domains`: the innermost functions that fit in `width`."""
    text = ARROW.join(printable(short_name(name)) for name in backtrace) or NOTHING
    return text if width is None else cut_outermost(text, width)


def cut_outermost(text: str, width: int) -> str:
    """A text of `backtrace_text` in at most `width` columns: without the outermost functions where it is longer."""
    if cell_width(text) <= width:
        return text
    *callers, shown = [name for name in text.split(ARROW) if name != ELLIPSIS]
    for name in reversed(callers):
        longer = f"{name}{ARROW}{shown}"
        if cell_width(ELLIPSIS + ARROW + longer) > width:
            break
        shown = longer
    return cut(f"{ELLIPSIS}{ARROW}{shown}" if ARROW in text else shown, width)


def site_lines(
    backtrace: Sequence[str], request: RuntimeRequest, style: Style, indent: str = "      "
) -> Iterator[str]:
    """Where something happened: one line, or one for each function with `--stacks`."""
    if request.stacks:
        yield from backtrace_lines(backtrace, request.frames, style, indent)
    else:
        width = None if style.width is None else style.width - len(indent)
        yield style.paint(indent + backtrace_text(backtrace, width), Role.FAINT)


def backtrace_lines(
    backtrace: Sequence[str], frames: int | None, style: Style, indent: str = "      "
) -> Iterator[str]:
    """One line per function, innermost first as in a debugger, and the number of those left out."""
    names = list(reversed(backtrace))
    shown = names if frames is None else names[:frames]
    for name in shown:
        text = indent + printable(name)
        yield style.paint(text if style.width is None else cut(text, style.width), Role.FAINT)
    if len(names) > len(shown):
        yield style.paint(f"{indent}… {len(names) - len(shown)} more", Role.FAINT)
    if not names:
        yield style.paint(indent + NOTHING, Role.FAINT)


def more_rows_line(count: int, section: str, request: RuntimeRequest, style: Style) -> Iterator[str]:
    """`… 12 more (--section gc shows them)`; nothing where there are none."""
    if count > 0:
        hint = f"--section {section} shows more" if request.is_overview else "--limit 0 shows all"
        yield style.paint(f"  … {count_text(count)} more ({hint})", Role.FAINT)
