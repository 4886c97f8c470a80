"""The kinds of report: the recordings each is made for, the options it takes, and the module that builds it.

Entries are plain data, in order of precedence. `perfuse report` needs all options before it opens a recording; it
imports the module of the one kind that it builds.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import IO, TYPE_CHECKING, Any, Protocol

from perfuse import _core
from perfuse.analysis.orders import ORDERS
from perfuse.errors import UsageError, require_known

if TYPE_CHECKING:
    from perfuse.diagnostics import Diagnostic
    from perfuse.profile import Profile
    from perfuse.reports.text import Style

Options = Mapping[str, Any]
"""Values of the options that were given, by flag: `{"--by": "thread"}`; and `--limit`, 0 for all rows."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a kind of report.

    Attributes:
        flag: Its name on the command line.
        help: One sentence for `--help`.
        metavar: What its value is called in `--help`; None where it takes no value.
        choices: The values it may have; empty for any.
        parse: Turns the text of a value into the value; raises `ValueError` with a message.
        repeats: Whether it may be given several times: its value is a tuple.
    """

    flag: str
    help: str
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    parse: Callable[[str], Any] | None = None
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """A report that was built.

    Attributes:
        as_json: Returns its JSON document.
        lines: Returns its text, line by line.
        diagnostics: Diagnostics of the files it was built from; they decide the exit code.
        write_csv: Writes it as comma-separated values; None where that was not asked for.
    """

    as_json: Callable[[], dict[str, Any]]
    lines: Callable[[Style], Iterator[str]]
    diagnostics: Sequence[Diagnostic]
    write_csv: Callable[[IO[bytes]], None] | None = None


class ReportModule(Protocol):
    """What the module of a kind of report defines."""

    def build(self, profile: Profile, options: Options) -> Report:
        """Builds the report of a profile; raises `UsageError` for values of options that the profile cannot serve."""
        ...


@dataclass(frozen=True, slots=True)
class ReportKind:
    """A kind of report.

    Attributes:
        name: The name by which a format declares its report.
        title: The recordings it is made for, as a heading.
        description: What it reports, for `--help`; empty for a combination of kinds, which is not listed.
        module: The module that builds it.
        is_available: Whether it can be built from a profile.
        options: The options it takes, besides those of every report.
        takes_selection: Whether it can be limited to a thread and a time (`--thread`, `--between`).
        open_with: Arguments of `perfuse.fuse` that its options imply.
        prefetch: Modules to import while the core still reads a large file.
    """

    name: str
    title: str
    description: str
    module: str
    is_available: Callable[[Profile], bool]
    options: tuple[Option, ...] = ()
    takes_selection: bool = True
    open_with: Callable[[Options], dict[str, Any]] = lambda _options: {}
    prefetch: tuple[str, ...] = ()

    def takes(self, flags: Collection[str]) -> bool:
        """Whether it takes all of these options."""
        return set(flags) <= {option.flag for option in self.options}

    def build(self, profile: Profile, options: Options) -> Report:
        """Imports its module and builds the report.

        Raises:
            UsageError: A value is not among the choices that this kind declares.
        """
        for option in self.options:
            if option.choices and option.flag in options:
                require_known(
                    options[option.flag], option.choices, option.metavar.lower() if option.metavar else "value"
                )
        module: Any = importlib.import_module(self.module)
        return module.build(profile, options)  # type: ignore[no-any-return]


def choose_kind(profile: Profile, flags: Sequence[str]) -> ReportKind:
    """The first kind that can be built from the profile and takes all of the options that were given.

    Raises:
        UsageError: There is none; the message names the kinds that an option belongs to.
    """
    first: ReportKind | None = None
    for kind in REPORTS:
        if kind.is_available(profile):
            if kind.takes(flags):
                return kind
            first = first or kind
    assert first is not None, "the last kind is available for every profile"
    flag = next(flag for flag in flags if not first.takes([flag]))
    titles = dict.fromkeys(kind.title for kind in REPORTS if kind.description and kind.takes([flag]))
    message = f"{flag} is an option for {_in_sentence(titles)}, and this is a report of {_in_sentence([first.title])}"
    raise UsageError(message, hint="`perfuse report --help` lists options by kind of recording")


def kind_of_file_name(name: str) -> ReportKind | None:
    """The kind of report that a file of this name usually gets; None for a name that matches no format."""
    for row in _core.formats():
        if any(fnmatch(name, pattern) for pattern in row["patterns"]):
            return next(kind for kind in REPORTS if kind.name == row["report"])
    return None


def _in_sentence(titles: Collection[str]) -> str:
    return " and ".join(title[:1].lower() + title[1:] for title in titles)


def _roles(profile: Profile) -> set[str]:
    return {recording.role for recording in profile.recordings}


def _parse_addresses(text: str) -> tuple[int, ...]:
    """`0x7f144f000568,0x7f144f8b8290`"""
    try:
        addresses = tuple(int(part, 0) for part in text.split(","))
    except ValueError:
        addresses = ()
    if not addresses or not all(0 <= address < 2**64 for address in addresses):
        raise ValueError(f"{text!r} is not an address: write 0x7f144f000568")
    return addresses


def _parse_object_filter(text: str) -> tuple[str, str]:
    """`S:4096` or `T:Node`: the letter, and the text after the colon."""
    if match := re.fullmatch(r"S:(\d+)", text):
        return "S", match[1]
    if not text.startswith("T:") or len(text) < 3:
        raise ValueError(f"{text!r} is neither S:SIZE, such as S:4096, nor T:NAME, such as T:Node")
    return "T", text[2:]


def _parse_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None


def _has_events(profile: Profile) -> bool:
    from perfuse.analysis.sampled import events

    return bool(events(profile))


def _open_call_trace(options: Options) -> dict[str, Any]:
    """`llvm-xray account` uses the rate in the header; its CSV has durations in ticks."""
    if "--llvm-compat" not in options:
        return {}
    return {"tsc_hz": 1_000_000_000 if options.get("--format") == "csv" else "header"}


GROUPINGS = ("function", "thread", "cpu")
_CALL_OPTIONS = (
    Option("--by", f"Group calls by {', '.join(GROUPINGS)}. [function]", "GROUPING", GROUPINGS),
    Option("--sort", f"Sort by {', '.join(ORDERS)}. [self]", "ORDER", ORDERS),
    Option("--function", "Only functions whose name matches: a part of it, a glob or /regex/.", "PATTERN"),
    Option("--stacks", "Whole call stacks, by time and by number of calls."),
    Option("--graph", "The call graph: who calls whom."),
    Option("--tree", "The call tree."),
    Option("--per-thread", "Each thread by itself."),
    Option("--recursive-only", "Only calls of functions that are already on the stack."),
    Option("--llvm-compat", "Count as llvm-xray account does, to compare."),
)
_CSV = Option("--format", "text, or csv with one line per function. [text]", "FORMAT", ("text", "csv"))

REPORTS = (
    ReportKind(
        name="unwind_tables",
        title="Unwind tables (SFrame)",
        description="how much code the tables cover, which functions are missing and why, whether they agree with"
        " .eh_frame, and which unwinders accept them.",
        module="perfuse.reports.unwind_tables",
        is_available=lambda profile: _roles(profile) == {"unwind_tables"},
        takes_selection=False,
    ),
    ReportKind(
        name="runtime",
        title="Runtime logs (Mono)",
        description="allocations, garbage collections and their pauses, heap snapshots, locks, exceptions, counters,"
        " samples, calls.",
        module="perfuse.reports.runtime.report",
        is_available=lambda profile: "runtime_log" in _roles(profile),
        options=(
            Option("--section", "One section in full, such as allocations, gc, locks; repeats.", "NAME", repeats=True),
            Option(
                "--sort",
                f"Sort allocations by bytes, count [bytes]; calls by {', '.join(ORDERS)} [self].",
                "ORDER",
                (*ORDERS, "bytes"),
            ),
            Option("--stacks", "Whole backtraces of allocations, exceptions and the like."),
            Option("--frames", "At most N innermost functions per backtrace.", "N", parse=_parse_number),
            Option("--track", "The history of the objects at these addresses.", "ADDRESS,...", parse=_parse_addresses),
            Option(
                "--find",
                "The history of objects of at least that size, or whose type name contains NAME.",
                "S:SIZE|T:NAME",
                parse=_parse_object_filter,
            ),
        ),
        prefetch=(
            "perfuse.records",
            "perfuse.reports.runtime.report",
            "perfuse.reports.runtime.calls",
            "perfuse.reports.runtime.jit",
            "perfuse.reports.runtime.threads",
            "perfuse.reports.calls",
            "perfuse.analysis.program",
            "arro3.core",
        ),
    ),
    ReportKind(
        name="profile_with_calls",
        title="Samples with call traces",
        description="",
        module="perfuse.reports.profile",
        is_available=lambda profile: profile.has_samples and profile.has_traces,
        options=_CALL_OPTIONS,
        open_with=_open_call_trace,
    ),
    ReportKind(
        name="calls",
        title="Call traces (XRay)",
        description="how often functions were called and how long they took, up to the 99th percentile; threads,"
        " stacks, the call graph.",
        module="perfuse.reports.calls",
        is_available=lambda profile: profile.has_traces,
        options=(*_CALL_OPTIONS, _CSV),
        open_with=_open_call_trace,
    ),
    ReportKind(
        name="profile",
        title="Samples (perf.data)",
        description="the most expensive functions; shares of threads, modules and tiers; what could not be named.",
        module="perfuse.reports.profile",
        is_available=_has_events,
        options=(Option("--event", "Event to report, where several were sampled.", "NAME"),),
    ),
    ReportKind(
        name="code",
        title="Code dumps (JITDUMP)",
        description="what was compiled, when, how often, how big.",
        module="perfuse.reports.code",
        is_available=lambda _profile: True,
        takes_selection=False,
    ),
)
"""Every kind of report of recordings. The first that is available, and takes the options given, is built."""
