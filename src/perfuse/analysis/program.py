"""What a program consists of: code, images, assemblies, domains, contexts, types."""

from dataclasses import dataclass
from heapq import nlargest

from perfuse.analysis.distribution import sum_by_bin
from perfuse.analysis.functions import FunctionNames
from perfuse.analysis.profiles import UNSELECTED, RuntimeProfile, read_selected, sort_by_time
from perfuse.table import Columns, smallest_rows

BINS = 60
_KINDS = ("domain", "context", "image", "assembly")
_EVENTS = [f"{kind}_{what}" for kind in _KINDS for what in ("load", "unload", "name")]


@dataclass(frozen=True, slots=True)
class CompiledMethod:
    """A method's code."""

    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Compilation:
    """What the compiler made.

    Attributes:
        num_methods: Pieces of code of methods.
        bytes: Their sizes.
        num_helpers: Pieces of code the runtime made for itself.
        helper_bytes: Their sizes.
        timeline_bytes: Code of methods, in `BINS` parts of the recorded time.
        biggest: The methods with the most code.
    """

    num_methods: int
    bytes: int
    num_helpers: int
    helper_bytes: int
    timeline_bytes: list[int]
    biggest: list[CompiledMethod]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A domain, a context, an image or an assembly.

    Attributes:
        kind: `domain`, `context`, `image` or `assembly`.
        native_address: The runtime's id or address of it, which it may use again.
        name: What it is called; None where that was not recorded.
        loaded_ns: When it was loaded; None where that was before the recording.
        unloaded_ns: When it was unloaded; None where it never was.
    """

    kind: str
    native_address: int | None
    name: str | None
    loaded_ns: int | None
    unloaded_ns: int | None


@dataclass(frozen=True, slots=True)
class Program:
    """What was loaded, and how much of it.

    Attributes:
        num_types: Types that were described.
        num_functions: Functions that were described.
        loaded: Domains, contexts, images and assemblies, each kind in the order of time.
    """

    num_types: int
    num_functions: int
    loaded: list[Loaded]


def compilation(profile: RuntimeProfile, limit: int | None = 5) -> Compilation:
    """Code of the selected time; the `limit` methods with the most of it."""
    columns = Columns(
        profile.selected_rows(
            "code_objects", ("kind", "create_ns", "size_bytes", "function_id"), time="create_ns", thread=None
        )
    )
    kinds, sizes = columns["kind"], columns["size_bytes"]
    rows: dict[str, list[int]] = {"jit": [], "helper": []}
    for row, kind in enumerate(kinds):
        rows.setdefault(kind, []).append(row)
    counts = {kind: (len(some), sum(sizes[row] for row in some)) for kind, some in rows.items()}
    times, functions = columns["create_ns"], columns["function_id"]
    made = [(times[row], sizes[row]) for row in rows["jit"]]
    names = FunctionNames(profile.tables)
    least = min(nlargest(limit, (size for _, size in made)), default=0) if limit else 0
    large = (row for row in rows["jit"] if sizes[row] >= least)
    biggest = smallest_rows(large, limit, lambda row: (-sizes[row], names.name(functions[row])))
    (methods, size), (helpers, helper_size) = counts["jit"], counts["helper"]
    timeline = sum_by_bin(made, profile.span_ns or (0, 0), BINS)
    return Compilation(
        methods,
        size,
        helpers,
        helper_size,
        timeline,
        [CompiledMethod(names.name(functions[row]), sizes[row]) for row in biggest],
    )


def program(profile: RuntimeProfile) -> Program:
    """What was loaded, whenever."""
    rows = sort_by_time(
        read_selected(profile, "instants", "ts_ns", "kind", "native_id", "name", kinds=_EVENTS, **UNSELECTED)
    )
    alive: dict[tuple[str, int | None], Loaded] = {}
    loaded: list[Loaded] = []
    for ts_ns, event, native, name in rows:
        kind, what = event.split("_")
        known = alive.get((kind, native))
        if what == "load" or known is None:
            if known is not None:
                loaded.append(known)
            known = Loaded(kind, native, name, ts_ns if what == "load" else None, None)
        known = Loaded(kind, native, name or known.name, known.loaded_ns, ts_ns if what == "unload" else None)
        if what == "unload":
            loaded.append(known)
            alive.pop((kind, native), None)
        else:
            alive[kind, native] = known
    loaded += alive.values()
    loaded.sort(key=lambda one: (_KINDS.index(one.kind), one.loaded_ns or 0, one.native_address or 0))
    return Program(len(profile.tables["types"]), len(profile.tables["functions"]), loaded)
