"""The parts of a program: code, images, assemblies, domains, contexts, types."""

from heapq import nlargest

from perfuse.analysis.distribution import sum_by_bin
from perfuse.analysis.functions import FunctionNames
from perfuse.analysis.profiles import UNSELECTED, RuntimeProfile, read_selected, sort_by_time
from perfuse.table import Columns, smallest_rows
from perfuse.value_class import value_class

BINS = 60
_KINDS = ("domain", "context", "image", "assembly")
_EVENTS = [f"{kind}_{what}" for kind in _KINDS for what in ("load", "unload", "name")]


@value_class
class CompiledMethod:
    """A method's code."""

    name: str
    bytes: int


@value_class
class Compilation:
    """The output of the JIT compiler.

    Attributes:
        num_methods: Code objects of methods.
        bytes: Sum of their sizes.
        num_helpers: Code objects of the runtime itself.
        helper_bytes: Sum of their sizes.
        timeline_bytes: Bytes of code of methods, in `BINS` parts of the recorded time.
        biggest: The methods with the most code.
    """

    num_methods: int
    bytes: int
    num_helpers: int
    helper_bytes: int
    timeline_bytes: list[int]
    biggest: list[CompiledMethod]


@value_class
class LoadedItem:
    """A domain, a context, an image or an assembly.

    Attributes:
        kind: `domain`, `context`, `image` or `assembly`.
        native_address: Its id or address in the runtime, which the runtime may reuse.
        name: Its name; None where that was not recorded.
        loaded_ns: Time of loading; None where that was before the recording.
        unloaded_ns: Time of unloading; None where it was not unloaded.
    """

    kind: str
    native_address: int | None
    name: str | None
    loaded_ns: int | None
    unloaded_ns: int | None


@value_class
class Program:
    """What a program loaded.

    Attributes:
        num_types: Types that were described.
        num_functions: Functions that were described.
        loaded: Domains, contexts, images and assemblies, each kind in time order.
    """

    num_types: int
    num_functions: int
    loaded: list[LoadedItem]


def compilation(profile: RuntimeProfile, limit: int | None = 5) -> Compilation:
    """Code that was compiled in the selected time, and the `limit` methods with the most code."""
    columns = Columns(
        profile.selected_rows(
            "code_objects", ("kind", "create_ns", "size_bytes", "function_id"), time="create_ns", thread="process_id"
        )
    )
    kinds, sizes = columns["kind"], columns["size_bytes"]
    rows: dict[str, list[int]] = {"jit": [], "helper": []}
    for row, kind in enumerate(kinds):
        rows.setdefault("helper" if kind == "unnamed" else kind, []).append(row)
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
    """What the program loaded, at any time."""
    rows = sort_by_time(
        read_selected(profile, "instants", "ts_ns", "kind", "native_id", "name", kinds=_EVENTS, **UNSELECTED)
    )
    alive: dict[tuple[str, int | None], LoadedItem] = {}
    loaded: list[LoadedItem] = []
    for ts_ns, event, native, name in rows:
        kind, what = event.split("_")
        item = alive.get((kind, native))
        if what == "load" or item is None:
            if item is not None:
                loaded.append(item)
            item = LoadedItem(kind, native, name, ts_ns if what == "load" else None, None)
        item = LoadedItem(kind, native, name or item.name, item.loaded_ns, ts_ns if what == "unload" else None)
        if what == "unload":
            loaded.append(item)
            alive.pop((kind, native), None)
        else:
            alive[kind, native] = item
    loaded += alive.values()
    loaded.sort(key=lambda one: (_KINDS.index(one.kind), one.loaded_ns or 0, one.native_address or 0))
    described = read_selected(profile, "functions", "native_id", **UNSELECTED)
    num_functions = sum(native_id is not None for (native_id,) in described)
    return Program(len(profile.tables["types"]), num_functions, loaded)
