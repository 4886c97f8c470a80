"""What a profiler was asked to record: no event of a kind means that none happened, or that none was asked for."""

from collections.abc import Mapping

from perfuse.summary import Summary
from perfuse.value_class import value_class

_SINCE_OPTIONS = 2
"""Major version since which each kind of event has an option of its own."""
_LEGACY = "legacy"


@value_class
class _Subject:
    """A kind of events.

    Attributes:
        kinds: Names of its records, without `_BT`.
        options: Options of the profiler since version 2 that record it; the first is for it alone.
        is_default: Whether it is recorded without options, except after `nodefaults`.
        was_always: Whether it was recorded in any case before version 2.
    """

    kinds: tuple[str, ...]
    options: tuple[str, ...]
    is_default: bool = False
    was_always: bool = False


_HEAPSHOT = ("heapshot", "heapshot-on-shutdown")
_SUBJECTS = {
    "samples": _Subject(("SAMPLE_HIT",), ("sample", "sample-real")),
    "calls": _Subject(("METHOD_ENTER", "METHOD_LEAVE"), ("calls",)),
    "allocations": _Subject(("ALLOC",), ("alloc", "gcalloc")),
    "gc": _Subject(("GC_EVENT",), ("gc", "alloc", _LEGACY, *_HEAPSHOT), was_always=True),
    "moves": _Subject(("GC_MOVE",), ("gcmove", "alloc", _LEGACY), was_always=True),
    "finalizers": _Subject(("GC_FINALIZE_START", "GC_FINALIZE_OBJECT_START"), ("finalization", _LEGACY)),
    "heap": _Subject(("HEAP_START",), _HEAPSHOT),
    "handles": _Subject(("GC_HANDLE_CREATED", "GC_HANDLE_DESTROYED"), ("gchandle", _LEGACY), was_always=True),
    "locks": _Subject(("MONITOR", "MONITOR_ev1", "MONITOR_ev2", "MONITOR_ev3"), ("monitor", _LEGACY), was_always=True),
    "exceptions": _Subject(("THROW", "CLAUSE"), ("exception", _LEGACY), is_default=True, was_always=True),
    "counters": _Subject(("COUNTERS_DESC",), ("counter", _LEGACY), is_default=True),
}
_COVERAGE = "mono --profile=coverage, which writes XML"


def recorded_subjects(summary: Summary) -> Mapping[str, bool]:
    """Whether each kind of events was recorded, by subject.

    Events in the log prove it. Else the options of the profiler state it, which logs contain since data version 13.
    """
    counted = {kind.removesuffix("_BT") for kind, number in summary.records.items() if number}
    options = str(summary.header.get("args", "")).removeprefix("log:").split(",")
    names = {option.partition("=")[0] for option in options}
    has_options = int(summary.header["major"]) >= _SINCE_OPTIONS
    found = {"coverage": "COVERAGE_METHOD" in counted}
    for subject, one in _SUBJECTS.items():
        if has_options:
            asked = bool(names & set(one.options)) or (one.is_default and "nodefaults" not in names)
            is_recorded = asked and f"no{one.options[0]}" not in names
        else:
            is_recorded = one.was_always
        found[subject] = is_recorded or bool(counted & set(one.kinds))
    return found


def how_to_record(subject: str) -> str:
    """The command that records a subject."""
    return _COVERAGE if subject == "coverage" else f"mono --profile=log:{_SUBJECTS[subject].options[0]}"
