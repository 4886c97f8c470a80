"""Filters of stacks: which samples count, and which frames their stacks consist of.

Steps are applied in their order, each to the stacks that those before it have made. Their semantics are those of the
Firefox Profiler where it has them: `docs/reference/stack_filters.md`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any, Literal, get_args

from perfuse import _core
from perfuse.errors import UsageError, nearest_hint
from perfuse.filters.names import NO_MODULE, FramePattern, handle_key, is_glob, is_regex, last_part, module_name
from perfuse.table import Columns, Table, TablesOfStacks
from perfuse.value_class import replace, value_class

Step = Literal["only", "drop", "hide", "root", "leaf", "collapse-recursion", "collapse-module", "tier", "jit-only"]
STEPS: tuple[Step, ...] = get_args(Step)
PLAIN_STEPS: tuple[Step, ...] = ("collapse-recursion", "jit-only")
"""Steps without a pattern."""
DuringKind = Literal["slice", "marker"]
FILTERED_TABLES = ("samples", "stacks", "frames", "functions")
"""The tables that a filter changes."""


@value_class
class StackStep:
    """A step of a filter.

    Attributes:
        step: What it does: the name of its option, without the hyphens.
        pattern: The functions, module or tier; None for steps without.
    """

    step: Step
    pattern: str | None = None

    def __str__(self) -> str:
        return f"--{self.step}" if self.pattern is None else f"--{self.step} {_quoted(self.pattern)}"


@value_class
class During:
    """A selection of samples by what went on in their thread.

    Attributes:
        kind: `slice` for calls, collections and other time ranges; `marker` for those that are not calls.
        pattern: Their name.
    """

    kind: DuringKind
    pattern: str

    def __str__(self) -> str:
        return f"--during {self.kind} {_quoted(self.pattern)}"


@value_class
class StackFilter:
    """A filter of stacks; an empty one changes nothing.

    Attributes:
        steps: In the order in which they are applied.
        during: Only samples taken during these, before any step.
        is_lenient: Whether a part that matches nothing selects nothing, instead of being an error: of several runs of a
            program, one may not have a function. `FilteredStacks.unmatched` has these parts.
    """

    steps: tuple[StackStep, ...] = ()
    during: tuple[During, ...] = ()
    is_lenient: bool = False

    def __bool__(self) -> bool:
        return bool(self.steps or self.during)

    def __str__(self) -> str:
        return ", ".join(map(str, (*self.during, *self.steps)))

    def with_step(self, step: Step, pattern: str | None = None) -> "StackFilter":
        """The filter with one more step.

        Raises:
            UsageError: There is no such step, or the pattern is empty, invalid, or missing.
        """
        if step not in STEPS:
            raise UsageError(f"no stack filter {step!r}", hint=nearest_hint(step, STEPS))
        if (pattern is None) != (step in PLAIN_STEPS):
            raise UsageError(f"{step} takes {'no' if pattern else 'a'} pattern")
        if pattern is not None:
            FramePattern.parse(pattern)
        return replace(self, steps=(*self.steps, StackStep(step, pattern)))

    def with_during(self, kind: DuringKind, pattern: str) -> "StackFilter":
        """The filter with one more condition on the time of samples.

        Raises:
            UsageError: `kind` is neither `slice` nor `marker`, or the pattern is invalid.
        """
        if kind not in get_args(DuringKind):
            raise UsageError(f"samples are selected during a slice or a marker, not {kind!r}", field="during")
        FramePattern.parse(pattern)
        return replace(self, during=(*self.during, During(kind, pattern)))

    def apply(self, tables: Mapping[str, Any], append: bool = False) -> "FilteredStacks":
        """The tables with the steps applied.

        Args:
            tables: The common tables by name.
            append: Whether stacks that no sample has any more remain, since rows of other tables refer to them.

        Raises:
            UsageError: A step matches nothing that is left by those before it, and the filter is not lenient.
        """
        return FilteredStacks(self, tables, append)


class FilteredStacks:
    """Tables to which a filter was applied: `samples`, `stacks`, `frames` and `functions`.

    Attributes:
        unmatched: For each step that matches nothing, why; only of a lenient filter.
        partly_named: For each step with a text that is none of the names but part of some, one of these.
    """

    def __init__(self, stack_filter: StackFilter, tables: Mapping[str, Any], append: bool) -> None:
        self._samples = tables["samples"]
        self._tables = tables
        self._append = append
        self._is_lenient = stack_filter.is_lenient
        self._of_stacks = dict(TablesOfStacks(tables))
        self._core = _core.StackTransform(self._of_stacks)
        self.unmatched: dict[StackStep, UsageError] = {}
        self.partly_named: dict[StackStep, str] = {}
        for step in stack_filter.steps:
            self._apply(step)

    def then(self, step: StackStep) -> "FilteredStacks":
        """The tables with one more step applied.

        Raises:
            UsageError: The step matches nothing.
        """
        more = copy(self)
        more._core, more.unmatched = self._core.copy(), dict(self.unmatched)
        more.partly_named = dict(self.partly_named)
        more._apply(step)
        return more

    def table(self, name: str) -> _core.ArrowStream:
        """One of `FILTERED_TABLES` after the steps."""
        if name == "samples":
            return self._core.samples(self._samples, self._append)
        if name == "functions" and self._of_stacks[name] is not self._tables[name]:
            return self._all_functions()
        return self._core.table(name, self._append)

    def functions_of_stacks(self) -> _core.ArrowStream:
        """Table `functions` with at least the rows that frames refer to."""
        return self._core.table("functions", self._append)

    @property
    def tables(self) -> Mapping[str, Table]:
        """The tables by name, each built on first use."""
        of_stacks = Table("functions", self.functions_of_stacks)
        return {
            name: Table(name, partial(self.table, name), of_stacks=of_stacks if name == "functions" else None)
            for name in FILTERED_TABLES
        }

    def _all_functions(self) -> _core.ArrowStream:
        """All functions, then those of frames that steps added."""
        from arro3.core import Table as ArrowTable

        some = ArrowTable.from_arrow(self.functions_of_stacks())
        added = some.slice(len(self._of_stacks["functions"]))
        batches = [*ArrowTable.from_arrow(self._tables["functions"]).to_batches(), *added.to_batches()]
        return ArrowTable.from_batches(batches, schema=some.schema)  # type: ignore[return-value]

    def _apply(self, step: StackStep) -> None:
        reason = self._reason_of_nothing(step, FrameSymbols(Columns(self._core.symbols()), self._of_stacks))
        if reason is None:
            return
        if not self._is_lenient:
            raise reason
        self.unmatched[step] = reason

    def _reason_of_nothing(self, step: StackStep, symbols: "FrameSymbols") -> UsageError | None:
        """Applies a step; returns why it matches nothing, and None where it matches something."""
        if step.step == "collapse-recursion":
            # Without recursion there is nothing to collapse, and stacks are what was requested.
            self._core.collapse_recursion()
            return None
        if step.step == "collapse-module":
            return self._collapse_modules(step, symbols)
        if step.step == "jit-only":
            has_code = self._core.apply("only", symbols.of_kind("jit"))
            self._core.apply("hide", [kind != "jit" for kind in symbols.kinds])
            return None if has_code else UsageError("no sample has JIT-compiled code on its stack", hint=_ORIGINS)
        if step.step == "tier":
            return self._select_tier(step, symbols)
        return self._select_functions(step, symbols)

    def _select_functions(self, step: StackStep, symbols: "FrameSymbols") -> UsageError | None:
        if (stack := symbols.stack_of_handle(step)) is not None:
            if self._core.apply_to_stack(step.step == "only", stack):
                return None
            return UsageError(f"{step} is not a stack of the selected samples", hint="report --stacks lists them")
        assert step.pattern is not None
        marked = symbols.matching(step.pattern)
        if (part_of := symbols.partly_named(step.pattern, marked)) is not None:
            self.partly_named[step] = part_of
        found = self._core.apply(step.step, marked)
        return None if any(marked) and found else self._nothing(step, symbols, any(marked))

    def _collapse_modules(self, step: StackStep, symbols: "FrameSymbols") -> UsageError | None:
        assert step.pattern is not None
        pattern = step.pattern.removeprefix("module:")
        test = FramePattern.parse(f"module:{pattern}").test({name for name in symbols.modules if name})
        names = list(dict.fromkeys(name for name in symbols.modules if name and test(name)))
        numbers = {name: number for number, name in enumerate(names)}
        groups = [numbers.get(name) if name else None for name in symbols.modules]
        if names and self._core.collapse(groups, [last_part(module_name(name)) for name in names]):
            return None
        return UsageError(f"{step} matches no module", hint=nearest_hint(pattern, symbols.module_names()))

    def _select_tier(self, step: StackStep, symbols: "FrameSymbols") -> UsageError | None:
        assert step.pattern is not None
        pattern = step.pattern.removeprefix("tier:")
        test = FramePattern.parse(f"tier:{pattern}").test(set(symbols.tiers))
        if self._core.apply("innermost", [test(tier) for tier in symbols.tiers]):
            return None
        hint = nearest_hint(pattern, symbols.tier_names())
        return UsageError(f"no sample was taken in code of tier {pattern!r}", hint=hint)

    def _nothing(self, step: StackStep, symbols: "FrameSymbols", is_known: bool) -> UsageError:
        """The error for a step that matches nothing, or, where the function is known, none that is left."""
        assert step.pattern is not None
        pattern = FramePattern.parse(step.pattern)
        known = {
            "name": symbols.function_names,
            "module": symbols.module_names,
            "path": symbols.path_names,
            "tier": symbols.tier_names,
        }[pattern.subject]()
        if is_known:
            hint = (
                "samples with it are not among those that --between, --thread, --process and the steps before it leave"
            )
            return UsageError(f"{step} matches nothing on a stack of the selected samples", hint=hint)
        return UsageError(f"{step} matches nothing here", hint=nearest_hint(pattern.pattern.strip("/*"), known))


_ORIGINS = "stacks have JIT-compiled code where the dump of the JIT is given with the samples"


class FrameSymbols:
    """The symbols of frames, by which patterns select them.

    Args:
        columns: The symbols, as the core has them.
        tables: The common tables, which have equal functions too.

    Attributes:
        names: Their names.
        modules: Their modules, as recorded; None where unknown.
        tiers: Their tiers; the kind of code that is not JIT-compiled.
        kinds: Their kinds: `jit`, `native`, `kernel` and so on.
    """

    def __init__(self, columns: Columns, tables: Mapping[str, Any]) -> None:
        self._tables = tables
        self.names: list[str] = [name or "" for name in columns["name"]]
        self.modules: list[str | None] = columns["module"]
        self.kinds: list[str] = columns["kind"]
        self.tiers: list[str] = [tier or kind for tier, kind in zip(columns["tier"], self.kinds, strict=True)]
        self._short_names: list[str] = columns["short_name"]
        self._paths: list[str | None] = columns["path"]
        self._groups: list[int] = columns["group_id"]
        self._function_ids: list[int | None] = columns["function_id"]

    def matching(self, text: str) -> list[bool]:
        """Which symbols match a pattern, or are of the function that a handle such as `f12` stands for."""
        pattern = FramePattern.parse(text)
        if pattern.subject == "name":
            return self._named(pattern)
        if pattern.subject == "module" and pattern.pattern == NO_MODULE:
            return [not module for module in self.modules]
        named: dict[str, Sequence[str | None]]
        named = {"module": self.modules, "path": self._paths, "tier": self.tiers}
        texts = named[pattern.subject]
        test = pattern.test({one for one in texts if one})
        known = {one: test(one) for one in {one for one in texts if one}}
        return [known.get(one, False) if one else False for one in texts]

    def partly_named(self, text: str, marked: Sequence[bool]) -> str | None:
        """The first of the marked names where the pattern that marked them is a text that is only part of names."""
        pattern = FramePattern.parse(text)
        texts: dict[str, Sequence[str | None]]
        texts = {"name": self.names, "module": self.modules, "path": self._paths, "tier": self.tiers}
        found = [name for name, is_marked in zip(texts[pattern.subject], marked, strict=True) if is_marked and name]
        if not found or is_regex(pattern.pattern) or is_glob(pattern.pattern):
            return None
        names = {*found, *self._short_names} if pattern.subject == "name" else found
        return None if pattern.is_one_of(names) else found[0]

    def of_kind(self, kind: str) -> list[bool]:
        """Which symbols are of a kind."""
        return [one == kind for one in self.kinds]

    def _named(self, pattern: FramePattern) -> list[bool]:
        names = {*self.names, *self._short_names}
        key = handle_key(pattern.pattern, "f")
        if key is not None and pattern.pattern not in names:
            return self.of_functions([key])
        test = pattern.test(names)
        known = {name: test(name) for name in names}
        return [known[name] or known[short] for name, short in zip(self.names, self._short_names, strict=True)]

    def stack_of_handle(self, step: StackStep) -> int | None:
        """The stack by which a step selects samples, given as `s345`; None for a step with another pattern."""
        pattern = step.pattern or ""
        key = handle_key(pattern, "s") if step.step in ("only", "drop") else None
        return None if key is None or pattern in {*self.names, *self._short_names} else key

    def of_functions(self, function_ids: Sequence[int]) -> list[bool]:
        """Which symbols are of functions, given by their keys, in any tier."""
        ids = set(function_ids)
        groups = {group for group, key in zip(self._groups, self._function_ids, strict=True) if key in ids}
        if not groups and len(function_ids) == 1:
            # A symbol has the key of the first of several equal functions, such as those of two dumps.
            return self._of_equal_functions(function_ids[0])
        return [group in groups for group in self._groups]

    def _of_equal_functions(self, key: int) -> list[bool]:
        """Which symbols are of functions with the declaration of a function that has frames."""
        if key not in Columns(self._tables["frames"])["function_id"]:
            return [False] * len(self._groups)
        functions, modules = Columns(self._tables["functions"]), Columns(self._tables["modules"])
        names = dict(zip(modules["module_id"], modules["name"], strict=True))
        declared = {
            one: (name, names.get(module), *place)
            for one, name, module, *place in functions.tuples(
                "function_id", "name", "module_id", "path", "line", "column"
            )
        }
        equal = {one for one, found in declared.items() if key in declared and found == declared[key]}
        groups = {group for group, one in zip(self._groups, self._function_ids, strict=True) if one in equal}
        return [group in groups for group in self._groups]

    def function_names(self) -> list[str]:
        """The short names of the functions on stacks, sorted."""
        return sorted(set(self._short_names) - {"", "[no stack]"})

    def module_names(self) -> list[str]:
        """The names of modules as reports have them, the most frequent first."""
        names = Counter(last_part(module_name(name)) for name in self.modules if name)
        return [name for name, _ in names.most_common()]

    def path_names(self) -> list[str]:
        """The last parts of source files, the most frequent first."""
        return [name for name, _ in Counter(last_part(name) for name in self._paths if name).most_common()]

    def tier_names(self) -> list[str]:
        """The tiers of the frames on stacks, sorted."""
        return sorted(set(self.tiers))


def _quoted(text: str) -> str:
    return f"'{text}'" if any(char in text for char in " *?[]()<>|&;$") else text
