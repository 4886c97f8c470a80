"""The kinds of report: the recordings each is made for, the options it takes, and the module that builds it.

Entries are plain data, in order of precedence. `perfuse report` needs all options before it opens a recording; it
imports the module of the one kind that it builds.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from typing import IO, TYPE_CHECKING, Any

from perfuse import _core
from perfuse.analysis.orders import GROUPINGS, ORDERS, STACK_GROUPINGS, STACK_VIEW_ORDERS
from perfuse.errors import UsageError, require_known
from perfuse.table import RETAINED, WEIGHTS
from perfuse.value_class import value_class

if TYPE_CHECKING:
    from perfuse.diagnostics import Diagnostic
    from perfuse.profile import Profile
    from perfuse.reports.text import Style

Options = Mapping[str, Any]
"""Values of the options that were given, by flag: `{"--by": "thread"}`; and `--limit`, 0 for all rows."""

LIMIT_IS_DEFAULT = "--limit is the default"
"""Key of `Options`: true where no `--limit` was given."""


@value_class
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


@value_class
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


@value_class
class ReportKind:
    """What `perfuse report` can print: the recordings and the options decide which.

    Attributes:
        name: The name by which a format declares its report.
        title: The recordings it is made for, as a heading.
        description: What it reports, for `--help`; empty for a combination of kinds, which is not listed.
        module: The module that builds it, with its function `build(profile, options) -> Report`.
        is_available: Whether it can be built from a profile.
        options: The options it takes, besides those of every report.
        takes_selection: Whether it can be limited to a thread and a time (`--thread`, `--between`).
        open_with: Arguments of `perfuse.fuse` that its options imply.
        serves: Whether it is the kind for these options of a profile it can be built from.
        prefetch: Modules to import while the core reads a large file, or joins samples.
    """

    name: str
    title: str
    description: str
    module: str
    is_available: Callable[[Profile], bool]
    options: tuple[Option, ...] = ()
    takes_selection: bool = True
    open_with: Callable[[Options], dict[str, Any]] = lambda _options: {}
    serves: Callable[[Profile, Options], bool] = lambda _profile, _options: True
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


def choose_kind(profile: Profile, given: Options | Sequence[str]) -> ReportKind:
    """The first kind that can be built from the profile and takes all of the options that were given.

    Raises:
        UsageError: There is none; the message names the kinds that an option belongs to.
    """
    first: ReportKind | None = None
    options: Options = given if isinstance(given, Mapping) else dict.fromkeys(given)
    flags = list(options)
    for kind in REPORTS:
        if kind.is_available(profile):
            serves = kind.serves(profile, options)
            if serves and kind.takes(flags):
                return kind
            first = first or (kind if serves else None)
    from perfuse.analysis.sampled import nothing_selected

    if (left := nothing_selected(profile)) is not None:
        raise left
    assert first is not None, "the last kind is available for every profile"
    flag = next(flag for flag in flags if not first.takes([flag]))
    kinds = [kind for kind in REPORTS if kind.description and kind.takes([flag])]
    if not kinds:
        raise UsageError(f"no report has an option {flag}", hint="`perfuse report --help` lists options")
    # Kinds that other options lead to have options of the kinds that recordings have, too.
    by_recording = [kind for kind in kinds if kind.name not in {"stacks", "held_objects"}]
    titles = dict.fromkeys(kind.title for kind in by_recording or kinds)
    message = f"{flag} is an option for {_in_sentence(titles)}, and this is a report of {_in_sentence([first.title])}"
    raise UsageError(message, hint="`perfuse report --help` lists options by kind of recording")


def kind_of_file_name(name: str) -> ReportKind | None:
    """The kind of report that a file of this name usually gets; None for a name that matches no format."""
    for row in _core.formats():
        if any(fnmatch(name, pattern) for pattern in row["patterns"]):
            return kind_named(row["report"])
    return None


def kind_named(name: str) -> ReportKind:
    """The kind of report of a name that a format declares."""
    return next(kind for kind in REPORTS if kind.name == name)


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


def _has_stacks(profile: Profile) -> bool:
    return profile.has_samples or profile.has_traces or profile.has("allocations") or profile.has_heap_snapshots


def _is_view_of_stacks(profile: Profile, options: Options) -> bool:
    """Whether options ask for a view of stacks that no other kind of report has."""
    if profile.stack_filter and (profile.has_traces or not profile.has_samples):
        return True
    if "--section" in options:
        return False
    event = options.get("--event")
    if event == RETAINED or (event in _EVENTS_OF_STACKS and options.keys() & {*_VIEWS, "--by", "--sort"}):
        return True
    # The report of calls has these, with statistics of single calls.
    is_of_calls = profile.has_traces and event is None
    of_calls = {"--function"} if is_of_calls else set()
    grouped = set() if is_of_calls and options.get("--by") in GROUPINGS else {"--by"}
    return bool(options.keys() & ((_VIEWS | grouped) - of_calls))


def _selects_calls(profile: Profile, options: Options) -> bool:
    """Whether options ask for statistics of selected calls; a depth alone does, but not that of a tree."""
    if options.keys() & {"--longer-than", "--caller"}:
        return True
    is_of_stacks = profile.has_samples or bool(profile.stack_filter)
    return options.keys() & {*_VIEWS, "--by", "--event"} == {"--depth"} and not is_of_stacks


_EVENTS_OF_STACKS = {*WEIGHTS.values(), RETAINED}
"""Events of which only stacks are known: sums of calls and of allocations, and sizes of a heap."""

_VIEWS = {"--tree", "--stacks", "--function", "--callers", "--callees", "--inverted", "--percent-limit", "--depth"}


def _parse_percent(text: str) -> float:
    """`0.5` or `0.5%`"""
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise ValueError(f"{text!r} is not a percentage: write 0.5")
    return value


def _parse_duration(text: str) -> int:
    """`1ms`, `250us`, `1.5s`, `800ns`"""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s)", text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration: write 1ms, 250us or 1.5s")
    return round(float(match[1]) * {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}[match[2]])


def _parse_positive(text: str) -> int:
    value = _parse_number(text)
    if value < 1:
        raise ValueError(f"{text} is less than 1")
    return value


_STACK_OPTIONS = (
    Option("--tree", "The call tree, the heaviest branches first."),
    Option("--inverted", "Start trees from the innermost functions, callers above."),
    Option("--callers", "The callers of matching functions, and theirs.", "PATTERN"),
    Option("--callees", "What matching functions call, and these.", "PATTERN"),
    Option("--function", "Matching functions with callers and callees.", "PATTERN"),
    Option("--stacks", "Whole stacks."),
    Option("--by", f"Group by {', '.join(STACK_GROUPINGS)}.", "GROUPING", STACK_GROUPINGS),
    Option("--sort", f"Sort by {', '.join(STACK_VIEW_ORDERS)}. [self; trees: total]", "ORDER", STACK_VIEW_ORDERS),
    Option("--percent-limit", "Leave out nodes of trees below P percent.", "P", parse=_parse_percent),
    Option("--depth", "At most N levels of trees.", "N", parse=_parse_positive),
    Option("--event", "Event to report, where there are several; retained is the last heap snapshot.", "NAME"),
)
_CALL_OPTIONS = (
    Option("--by", f"Group calls by {', '.join(GROUPINGS)}. [function]", "GROUPING", GROUPINGS),
    Option("--sort", f"Sort by {', '.join(ORDERS)}. [self]", "ORDER", ORDERS),
    Option("--function", "Only functions whose name matches: a part of it, a glob or /regex/.", "PATTERN"),
    Option("--graph", "The call graph: who calls whom."),
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
        name="slow_calls",
        title="Slowest calls (XRay, Mono)",
        description="the slowest calls of a function: what happened in each, what took longer than in a median one.",
        module="perfuse.reports.slow_calls",
        is_available=lambda profile: profile.has_traces,
        options=(
            Option("--slowest", "The slowest calls of matching functions, each as a timeline.", "PATTERN"),
            Option("-n", "At most N calls. [5]", "N", parse=_parse_positive),
        ),
        serves=lambda _profile, options: "--slowest" in options,
    ),
    ReportKind(
        name="selected_calls",
        title="Selected calls (XRay, Mono)",
        description="statistics of the calls that are longer than a time, or made by a function.",
        module="perfuse.reports.selected_calls",
        is_available=lambda profile: profile.has_traces,
        options=(
            Option(
                "--longer-than", "Only calls of at least that duration, such as 1ms.", "TIME", parse=_parse_duration
            ),
            Option("--caller", "Only calls made by matching functions.", "PATTERN"),
            Option("--depth", "Only calls with fewer than N around them.", "N", parse=_parse_positive),
            Option("--function", "Only calls of matching functions.", "PATTERN"),
        ),
        serves=_selects_calls,
    ),
    ReportKind(
        name="stacks",
        title="Stacks of samples, calls, allocations, retained heap",
        description="call trees, callers and callees, whole stacks, sums by thread, module, tier and line.",
        module="perfuse.reports.stack_views",
        is_available=_has_stacks,
        options=_STACK_OPTIONS,
        open_with=_open_call_trace,
        serves=_is_view_of_stacks,
    ),
    ReportKind(
        name="held_objects",
        title="What holds objects (Mono)",
        description="every path from roots to the objects of a type, with counts and retained bytes; how types differ"
        " between snapshots, or logs.",
        module="perfuse.reports.held_objects",
        is_available=lambda profile: profile.has_heap_snapshots,
        options=(
            Option("--section", "heap, as in reports of runtime logs.", "NAME", repeats=True),
            Option("--type", "The objects of matching types.", "PATTERN"),
            Option("--snapshot", "The heap snapshot with that number. [the last]", "N", parse=_parse_number),
            Option(
                "--since",
                "The snapshot to compare with. [the first; of two logs, the other's last]",
                "N",
                parse=_parse_number,
            ),
        ),
        takes_selection=False,
        serves=lambda _profile, options: "--type" in options,
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
        prefetch=("perfuse.reports.profile", "arro3.core"),
        is_available=_has_events,
        options=(
            Option("--event", "Event to report, where several were sampled.", "NAME"),
            Option("--group", "Every event by function, with ratios of events such as IPC."),
        ),
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
