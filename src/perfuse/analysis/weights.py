"""Weights of samples by function, module, tier, thread and process."""

from typing import TYPE_CHECKING, Literal

from perfuse.analysis.profiles import SampleProfile
from perfuse.analysis.sampled import SampleFilter, call_tree, select_event, task_names
from perfuse.table import Columns
from perfuse.value_class import value_class

if TYPE_CHECKING:
    from perfuse.analysis.function_matching import FunctionIdentity

WeightOrder = Literal["self", "total"]
Dimension = Literal["module", "tier", "thread", "process"]


@value_class
class FunctionWeight:
    """The weight of a function.

    Attributes:
        name: Its name; `[unknown] module` for addresses without one.
        function_id: Its key; None for addresses without a name, which are grouped by module and reason.
        module: File or pseudo-module that contains it.
        kind: `jit`, `native`, `kernel`, `hypervisor`, `traced`, `type` (of allocated objects) or `unknown`.
        tiers: Its tiers, the heaviest first; none for code that is not JIT-compiled.
        origin: Origin of the code: `interpreter`, `baseline`, `mid_tier`, `optimised`, `ahead_of_time`, `jit`,
            `stub`, `inlined`, `native`, `kernel`, `type` or `unknown`.
        path: Source file.
        line: Line in it, from 1.
        column: Column of the declaration, from 1.
        is_declaration: Whether path and line are those of the declaration; else they are of a sample.
        unnamed_because: Why it has no name; None where it has one.
        self_weight: Weight of the samples taken in it, in the unit of the event (`ns` for clocks).
        total_weight: Weight of the samples that have it anywhere in their stack, each counted once.
        self_samples: Number of samples taken in it.
        total_samples: Number of samples that have it in their stack.
    """

    name: str
    function_id: int | None
    module: str | None
    kind: str
    tiers: tuple[str, ...]
    origin: str
    path: str | None
    line: int | None
    column: int | None
    is_declaration: bool
    unnamed_because: str | None
    self_weight: int
    total_weight: int
    self_samples: int
    total_samples: int

    @property
    def identity(self) -> "FunctionIdentity":
        """What it is recognised by in another selection or recording."""
        from perfuse.analysis.function_matching import FunctionIdentity

        place = (self.path, self.line, self.column) if self.is_declaration else ()
        return FunctionIdentity(self.name, self.module, *place)


@value_class
class GroupWeight:
    """The weight of samples grouped by their innermost frame: groups add up to the total.

    Attributes:
        name: Name of the group; the kind of code for code without a tier or, in brackets, without a module.
        kind: Kind of code with the most weight in it; empty for threads and processes.
        self_weight: Weight of the samples, in the unit of the event.
        self_samples: Number of samples.
    """

    name: str
    kind: str
    self_weight: int
    self_samples: int


@value_class
class UnnamedFrames:
    """Frames without a name, by reason and module; `leaf_samples` have one as their innermost frame."""

    reason: str
    module: str
    frames: int
    leaf_samples: int


_FIELDS = tuple(field for field in FunctionWeight.__annotations__ if field != "tiers")


class Weights:
    """The weights of a profile's samples, from one call tree.

    Args:
        profile: The profile.
        selection: A filter of samples; by default all of the event with the most samples.

    Raises:
        UsageError: The profile has no such event.
    """

    def __init__(self, profile: SampleProfile, selection: SampleFilter | None = None) -> None:
        selected = selection or SampleFilter()
        self.event = select_event(profile, selected.event)
        self._profile = profile
        self._tree = call_tree(profile, selected.with_event(self.event), split_threads=True)

    def functions(self, limit: int | None = None, *, order: WeightOrder = "self") -> list[FunctionWeight]:
        """The heaviest functions.

        Args:
            limit: Largest number of rows; None for all.
            order: Sort by self or by total weight.
        """
        columns = Columns(self._tree.heaviest_functions(order, limit))
        rows = columns.tuples("tiers", *_FIELDS)
        return [FunctionWeight(tiers=tuple(tiers), **dict(zip(_FIELDS, row, strict=True))) for tiers, *row in rows]

    @property
    def num_functions(self) -> int:
        """Number of functions, addresses without a name grouped by module and reason."""
        return self._tree.num_functions()

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds of code on the stacks."""
        return frozenset(Columns(self._tree.symbols())["kind"])

    def groups(self, by: Dimension) -> list[GroupWeight]:
        """Weight by module, tier, thread (`name tid`) or process (`name pid`), the heaviest first."""
        if by in {"module", "tier"}:
            groups = Columns(self._tree.group_weights(by == "module"))
            return [GroupWeight(*row) for row in groups.tuples("name", "kind", "self_weight", "self_samples")]
        names = task_names(self._profile, "threads" if by == "thread" else "processes")
        sums: dict[str, list[int]] = {}
        for thread_id, weight, num_samples in self.threads():
            if num_samples:
                group = sums.setdefault(names[thread_id], [0, 0])
                group[0] += weight
                group[1] += num_samples
        tasks = [GroupWeight(name, "", *sums_of_task) for name, sums_of_task in sums.items()]
        return sorted(tasks, key=lambda task: (-task.self_weight, task.name))

    def threads(self) -> list[tuple[int, int, int]]:
        """Key, weight and number of samples of each thread."""
        sums: dict[int, list[int]] = {}
        rows = Columns(self._tree.weights("thread"))
        for thread_id, weight, num_samples in rows.tuples("thread_id", "self_weight", "self_samples"):
            of_thread = sums.setdefault(thread_id, [0, 0])
            of_thread[0] += weight
            of_thread[1] += num_samples
        return [(thread_id, weight, num_samples) for thread_id, (weight, num_samples) in sums.items()]

    def unnamed(self) -> list[UnnamedFrames]:
        """Frames without a name, by reason and module; those of the most samples first."""
        return [UnnamedFrames(*row) for row in self._tree.unnamed()]
