"""Machine code of a function with its samples: each compilation, instruction by instruction."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

from perfuse import _core
from perfuse.analysis.function_search import CodeFunction, Search, find_function
from perfuse.analysis.instructions import Callee, InlinedCall, Instruction, Loop, address_in_code, decode, loops
from perfuse.analysis.sampled import Event, events, recorded_span_ns, select_event
from perfuse.archive.contents import NativeCode, NotSavedError
from perfuse.errors import UsageError
from perfuse.filters.names import last_part, module_name
from perfuse.filters.stacks import StackFilter
from perfuse.programs.machine import machine_of_code
from perfuse.table import Columns


class CodeProfile(Protocol):
    """A profile with machine code; `perfuse.Profile` is one."""

    @property
    def _code(self) -> _core.Profile:
        """What has the machine code of its recordings."""
        ...

    @property
    def tables(self) -> Mapping[str, Any]:
        """The common tables by name, each an Arrow stream."""
        ...

    @property
    def title(self) -> str:
        """What was recorded."""
        ...

    @property
    def recordings(self) -> Sequence[Any]:
        """The open files."""
        ...

    @property
    def has_samples(self) -> bool:
        """Whether it has samples."""
        ...

    @property
    def stack_filter(self) -> StackFilter:
        """The filter of its stacks."""
        ...

    def filtered(self, stack_filter: StackFilter, /) -> "CodeProfile":
        """The profile with another filter."""
        ...

    def sql(self, query: str, /) -> Any:
        """Runs SQL over the common tables."""
        ...

    def omits_code_of(self, source_id: int, /) -> bool:
        """Whether machine code that a recording has was not saved with it."""
        ...

    def native_module(self, path: str, build_id: str | None, /) -> NativeCode:
        """Code of a program or library that was mapped."""
        ...

    def code_targets(
        self, process_id: int, at_ns: int, addresses: Sequence[int], /
    ) -> list[tuple[int | None, str | None, int, str | None] | None]:
        """What addresses of a process referred to at a time."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """Where code was for a time.

    Attributes:
        address: Its first address.
        from_ns: Time since which it was there, on the profile's clock.
        until_ns: Time when it was moved or overwritten; None where it stayed.
        self_samples: Samples taken in it there.
    """

    address: int
    from_ns: int
    until_ns: int | None
    self_samples: int


@dataclass(slots=True)
class Compilation:
    """One piece of machine code of a function.

    Attributes:
        number: Its number among those of the function, from 1, by time.
        code_object_id: Its key; None for code of a file.
        tier: Compiler tier, in the runtime's terms.
        kind: `jit`, `stub`, `helper`, `aot`, or `native`.
        process_id: Key of the process that contains it; None for code of a file.
        create_ns: Time from which it could run; None for code of a file.
        retire_ns: Time when other code overwrote it; None where none did.
        address: Its first address: when it was created, or in its file.
        size_bytes: Its size.
        machine: ELF `e_machine`.
        source: The file that contains the bytes; None where none does.
        self_samples: Samples taken in it.
        self_weight: Their weight, in the unit of the event.
        total_samples: Samples with it on the stack.
        total_weight: Their weight.
        places: Where it was, in time order; several where it was moved.
    """

    number: int
    code_object_id: int | None
    tier: str | None
    kind: str
    process_id: int | None
    create_ns: int | None
    retire_ns: int | None
    address: int
    size_bytes: int
    machine: int
    source: str | None
    self_samples: int = 0
    self_weight: int = 0
    total_samples: int = 0
    total_weight: int = 0
    places: list[Place] = field(default_factory=list)

    @property
    def handle(self) -> str | None:
        """A name for it: `c34`."""
        return None if self.code_object_id is None else f"c{self.code_object_id}"


@dataclass(frozen=True, slots=True)
class Listing:
    """The instructions of a compilation.

    Attributes:
        compilation: The compilation.
        instructions: Its instructions; empty where its bytes were not recorded.
        loops: Its loops that have samples.
        missing: Why there are no instructions; None where there are.
        outside_samples: Samples whose position is not within the bytes.
        num_bad_bytes: Bytes that are no instructions.
    """

    compilation: Compilation
    instructions: list[Instruction]
    loops: list[Loop]
    missing: str | None
    outside_samples: int
    num_bad_bytes: int


_SAVES_CODE = "`perfuse pack --code sampled` saves that of functions with samples, `--code all` that of all on stacks"

_Position = tuple[int, int, int, int]
"""Base, position, samples and weight there."""


@dataclass(frozen=True, slots=True)
class _Symbol:
    """Code of one symbol of a file: its module and build id, its bytes, and the keys of the file's mappings."""

    module: NativeCode
    build_id: str | None
    code: bytes
    mapping_ids: list[int]


class Annotation:
    """The machine code of a function, with its samples.

    Args:
        profile: The profile.
        wanted: The function: see `find_function`.
        tier: Only compilations of this tier.
        event: Name of an event; by default the one with the most samples.
        intel: Whether x86 instructions are written in Intel's syntax.

    Attributes:
        function: The function.
        event: The event of its samples; None where the profile has no samples.
        requested: The compilation that the request named; None where it named none.

    Raises:
        UsageError: No function, or several, are meant; or it has no compilation of the tier.
    """

    def __init__(
        self,
        profile: CodeProfile,
        wanted: str,
        *,
        tier: str | None = None,
        event: str | None = None,
        intel: bool = False,
    ) -> None:
        self._profile = profile
        # Code does not depend on which samples are selected.
        self._whole = profile.filtered(StackFilter()) if profile.stack_filter else profile
        self._intel = intel
        search: Search = find_function(self._whole, wanted)
        self.function: CodeFunction = search.function
        self.event: Event | None = self._event(event)
        self.all_compilations: list[Compilation] = (
            self._jit_compilations() if self.function.code_object_ids else self._native_compilations()
        )
        self._count_samples()
        self.compilations: list[Compilation] = self._of_tier(tier)
        self.requested: Compilation | None = next(
            (one for one in self.compilations if one.code_object_id == search.code_object_id is not None), None
        )

    def __repr__(self) -> str:
        num, samples = len(self.compilations), sum(one.self_samples for one in self.compilations)
        return f"<perfuse annotation of {self.function.name}: {num:,} compilations, {samples:,} samples>"

    @property
    def hottest(self) -> Compilation:
        """The compilation that was requested, else the one with the most samples, else the last one."""
        if self.requested is not None:
            return self.requested
        return max(self.compilations, key=lambda one: (one.self_weight, one.total_weight, one.number))

    def compilation(self, wanted: str | int) -> Compilation:
        """A compilation by its number or handle.

        Raises:
            UsageError: There is none.
        """
        for one in self.compilations:
            if str(wanted) in (str(one.number), one.handle):
                return one
        known = ", ".join(f"{one.number}{f' ({one.handle})' if one.handle else ''}" for one in self.compilations[:12])
        more = ", …" if len(self.compilations) > 12 else ""
        raise UsageError(f"{self.function.name} has no compilation {wanted}", hint=f"it has {known}{more}")

    def listing(self, compilation: Compilation) -> Listing:
        """The instructions of a compilation with everything that is known of each."""
        code, missing = self._bytes(compilation)
        first = 0 if self.function.code_object_ids else compilation.address
        starts = [row[1] - first for row in self._positions[compilation.number] if row[2]]
        address, machine = compilation.address, compilation.machine
        instructions = [] if code is None else decode(code, address, machine, intel=self._intel, starts=starts)
        outside = self._place_samples(compilation, instructions)
        if self.function.code_object_ids:
            self._place_jit_lines(compilation, instructions)
        else:
            self._place_native_lines(compilation, instructions)
        self._name_targets(compilation, instructions)
        bad = sum(one.size for one in instructions if one.flow == "bad")
        size = len(code or b"")
        found = loops(instructions, compilation.address, size)
        return Listing(compilation, instructions, found, missing, outside, bad)

    @cached_property
    def span_ns(self) -> tuple[int, int] | None:
        """The recorded time, on the profile's clock; without samples that of the first and last code."""
        if (recorded := recorded_span_ns(self._profile)) is not None:
            return recorded
        times = [one.create_ns for one in self.all_compilations if one.create_ns is not None]
        return (min(times), max(times)) if times else None

    @property
    def build_id(self) -> str | None:
        """Build id of the file of native code."""
        return None if self.function.code_object_ids else self._symbols[self.hottest.number].build_id

    # ---- compilations

    def _event(self, name: str | None) -> Event | None:
        """The event of the samples; a filter may leave more of another one, or none."""
        sampled = self._whole.has_samples and [one for one in events(self._whole) if not one.is_sum]
        found = select_event(self._whole, name) if sampled or name is not None else None
        if self._whole is self._profile:
            return found if sampled else None
        if not sampled or found is None:
            raise UsageError(f"there are no samples here that {self._profile.stack_filter} could select")
        left = {one.name: one for one in events(self._profile)}
        return left.get(found.name) or replace(found, num_samples=0, weight=0)

    @property
    def selected_samples(self) -> tuple[int, int] | None:
        """Number of samples that a filter of stacks leaves, and of all; None without a filter."""
        if self.event is None or self._whole is self._profile:
            return None
        return self.event.num_samples, select_event(self._whole, self.event.name).num_samples

    @property
    def selection(self) -> str:
        """The filter of stacks, as options; empty without one."""
        return str(self._profile.stack_filter)

    def _jit_compilations(self) -> list[Compilation]:
        codes = Columns(_core.code_rows(self._profile._code, "code_objects", self.function.code_object_ids))
        self._code_of: dict[int, int] = {key: row for row, key in enumerate(codes["code_object_id"])}
        self._codes = codes
        if not any(codes["code"]) and any(map(self._profile.omits_code_of, codes["source_id"])):
            raise UsageError(f"the machine code of {self.function.name} was not saved", hint=_SAVES_CODE)
        columns = ("code_object_id", "tier", "kind", "process_id", "create_ns", "retire_ns", "start_address")
        rows = sorted(codes.tuples(*columns, "size_bytes", "source_id"), key=lambda row: (row[4], row[0]))
        found = []
        for number, row in enumerate(rows, 1):
            key, tier, kind, process, created, retired, address, size, source = row
            recording = self._profile.recordings[source]
            machine = machine_of_code(recording.summary.arch, self._profile.recordings)
            one = Compilation(
                number, key, tier, kind, process, created, retired, address, size, machine, recording.path
            )
            one.places = [Place(address, created, retired, 0)]
            found.append(one)
        self._place_moves(found)
        return found

    def _place_moves(self, compilations: Sequence[Compilation]) -> None:
        moves = Columns(self._profile.tables["code_moves"])
        of = {one.code_object_id: one for one in compilations}
        rows = [row for row in moves.tuples("code_object_id", "ts_ns", "new_address") if row[0] in of]
        for key, at, address in sorted(rows, key=lambda row: row[1]):
            places = of[key].places
            places[-1] = replace(places[-1], until_ns=at)
            places.append(Place(address, at, of[key].retire_ns, 0))

    def _native_compilations(self) -> list[Compilation]:
        """Code of each symbol of that name: a file may have several, such as static functions of two sources."""
        mappings = Columns(self._profile.tables["mappings"])
        files = {row[0]: row[1:] for row in mappings.tuples("mapping_id", "path", "build_id")}
        positions: dict[tuple[str | None, str | None], set[int]] = defaultdict(set)
        keys = set(self.function.function_ids)
        frames = Columns(self._whole.tables["frames"])
        columns = ("function_id", "inline_depth", "mapping_id", "relative_address", "unwound_by")
        for function, depth, mapping, address, unwound_by in frames.tuples(*columns):
            if function in keys and depth == 0 and address is not None:
                positions[files.get(mapping, (None, None))].add(address_in_code(address, unwound_by))
        self._symbols: dict[int, _Symbol] = {}
        found: list[Compilation] = []
        failures: list[tuple[str, ValueError]] = []
        for (recorded, build_id), wanted in positions.items():
            path = recorded or self.function.module or ""
            module = self._profile.native_module(path, build_id)
            same = [key for key, one in files.items() if one == (recorded, build_id)]
            end = 0
            for position in sorted(wanted):
                if position < end:
                    continue
                try:
                    address, code, machine = module.function_code(position)
                except ValueError as error:
                    failures.append((path, error))
                    continue
                end = address + len(code)
                number, source = len(found) + 1, module.file or path
                self._symbols[number] = _Symbol(module, build_id, code, same)
                found.append(
                    Compilation(number, None, None, "native", None, None, None, address, len(code), machine, source)
                )
        if not found:
            path, failure = failures[0]
            raise UsageError(
                f"the machine code of {self.function.name} is not available: {failure}",
                hint=_SAVES_CODE
                if isinstance(failure, NotSavedError)
                else f"give the directory of {_file_with_code(path)} with --symbols (symbol_dirs=)",
            ) from failure
        return found

    def _of_tier(self, tier: str | None) -> list[Compilation]:
        # As in lists and in `report --by tier`: code without a tier is of its kind.
        found = [one for one in self.all_compilations if tier is None or (one.tier or one.kind) == tier]
        if not found:
            tiers = ", ".join(dict.fromkeys(one.tier or one.kind for one in self.all_compilations))
            raise UsageError(f"{self.function.name} has no code of tier {tier!r}", hint=f"its tiers: {tiers}")
        return found

    # ---- samples

    def samples_of_other_events(self) -> dict[str, int]:
        """Number of samples in the function by event, of those that are not shown."""
        shown = self.event.name if self.event is not None else None
        found: dict[str, int] = {}
        for one in events(self._profile):
            if one.name != shown and not one.is_sum:
                rows = [row for group in self._groups for row in self._code_samples(group, event=one.name)[0]]
                found[one.name] = sum(row[3] for row in rows)
        return {name: number for name, number in found.items() if number}

    @property
    def _groups(self) -> list[list[Compilation]]:
        """What is asked for at once: samples have no symbol of a file, so that each of these is asked for alone."""
        every = self.all_compilations
        return [every] if self.function.code_object_ids else [[one] for one in every]

    def _code_samples(
        self, compilations: Sequence[Compilation], starts: Sequence[int] | None = None, event: str | None = None
    ) -> Any:
        """Samples of compilations, or of one symbol of a file; the only place that reads samples."""
        assert self.event is not None
        ids = [one.code_object_id for one in compilations if one.code_object_id is not None]
        ranges = [
            (key, one.address, one.address + one.size_bytes)
            for one in compilations
            if one.code_object_id is None
            for key in self._symbols[one.number].mapping_ids
        ]
        return _core.code_samples(self._profile.tables, ids, ranges, event=event or self.event.name, starts=starts)

    def _count_samples(self) -> None:
        self._positions: dict[int, list[_Position]] = defaultdict(list)
        if self.event is None:
            return
        every = self.all_compilations
        for group in self._groups:
            of = {one.code_object_id: one for one in group}
            positions, _, totals = self._code_samples(group)
            for code, base, at, samples, weight, *_ in positions:
                self._positions[of[code].number].append((base, at, samples, weight))
            for code, samples, weight in totals:
                of[code].total_samples, of[code].total_weight = samples, weight
        for one in every:
            rows = self._positions[one.number]
            one.self_samples = sum(row[2] for row in rows)
            one.self_weight = sum(row[3] for row in rows)
            by_base: dict[int, int] = defaultdict(int)
            for row in rows:
                by_base[row[0]] += row[2]
            if len({place.address for place in one.places}) < len(one.places):
                one.places = self._by_time(one)
            else:
                one.places = [replace(place, self_samples=by_base.get(place.address, 0)) for place in one.places]

    def _by_time(self, one: Compilation) -> list[Place]:
        """Places of code that returned to an address where it was, with the samples of each."""
        assert self.event is not None
        columns = ("frame_id", "code_object_id", "address", "relative_address")
        frames = Columns(self._profile.tables["frames"]).tuples(*columns)
        base = {frame: address - at for frame, code, address, at in frames if code == one.code_object_id}
        stacks = Columns(self._profile.tables["stacks"]).tuples("stack_id", "frame_id")
        base_of_stack = {stack: base[frame] for stack, frame in stacks if frame in base}
        times: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for number, place in enumerate(one.places):
            times[place.address].append((place.from_ns, number))
        counts = [0] * len(one.places)
        for at, stack, event in Columns(self._profile.tables["samples"]).tuples("ts_ns", "stack_id", "event"):
            since = times.get(base_of_stack.get(stack, -1))
            if since and event == self.event.name:
                # A sample may precede the record of a move, by the uncertainty of clocks.
                counts[since[max(bisect_right(since, (at, len(counts))) - 1, 0)][1]] += 1
        return [replace(place, self_samples=count) for place, count in zip(one.places, counts, strict=True)]

    def _place_samples(self, compilation: Compilation, instructions: Sequence[Instruction]) -> int:
        """Adds samples to instructions; returns the number of those that are at none."""
        if self.event is None or not instructions:
            return compilation.self_samples
        first = 0 if compilation.code_object_id is not None else compilation.address
        # The end of the code stands for all that is after it.
        end = instructions[-1].offset + instructions[-1].size
        at = {first + one.offset: one for one in instructions}
        positions, callees, _ = self._code_samples([compilation], [*at, first + end])
        outside = 0
        for _, _, position, samples, weight, total, total_weight in positions:
            one = at.get(position)
            if one is None:
                outside += samples
                continue
            one.self_samples += samples
            one.self_weight += weight
            one.total_samples += total
            one.total_weight += total_weight
        for _, _, position, function, code, samples in callees:
            one = at.get(position)
            if one is not None:
                name = None if function is None else self._function_names.get(function)
                one.callees.append(Callee(name, code, samples))
        for one in instructions:
            one.callees.sort(key=lambda callee: (-callee.num_samples, callee.name or ""))
        return outside

    @cached_property
    def _function_names(self) -> dict[int, str]:
        functions = Columns(self._profile.tables["functions"])
        return dict(functions.tuples("function_id", "name"))

    # ---- code, lines, targets

    def _bytes(self, compilation: Compilation) -> tuple[bytes | None, str | None]:
        if compilation.code_object_id is None:
            return self._symbols[compilation.number].code, None
        row = self._code_of[compilation.code_object_id]
        code = self._codes.value("code", row)
        if not code:
            omitted = self._profile.omits_code_of(self._codes.value("source_id", row))
            return None, "its bytes were not saved" if omitted else "the recording does not contain its bytes"
        if len(code) < compilation.size_bytes:
            return bytes(code), f"only {len(code):,} of its {compilation.size_bytes:,} bytes are in the recording"
        return bytes(code), None

    def _place_jit_lines(self, compilation: Compilation, instructions: Sequence[Instruction]) -> None:
        assert compilation.code_object_id is not None
        keys = [compilation.code_object_id]
        lines = Columns(_core.code_rows(self._profile._code, "line_rows", keys))
        starts, rows = lines["code_offset"], list(lines.tuples("path", "line", "column"))
        for one in instructions:
            number = bisect_right(starts, one.offset) - 1
            if number >= 0 and rows[number][1]:
                path, one.line, one.column = rows[number]
                one.path = path or None
        inlined = Columns(_core.code_rows(self._profile._code, "inline_calls", keys))
        columns = ("start_offset", "size_bytes", "depth", "function_id", "call_path", "call_line")
        calls = sorted(inlined.tuples(*columns), key=lambda row: row[2])
        if not calls:
            return
        for one in instructions:
            covering = {row[2]: row for row in reversed(calls) if 0 <= one.offset - row[0] < row[1]}
            one.inlined = tuple(
                InlinedCall(self._function_names.get(function, f"f{function}"), call_path, call_line)
                for _, (_, _, _, function, call_path, call_line) in sorted(covering.items())
            )

    def _place_native_lines(self, compilation: Compilation, instructions: Sequence[Instruction]) -> None:
        addresses = [compilation.address + one.offset for one in instructions]
        module = self._symbols[compilation.number].module
        for one, (frames, _) in zip(instructions, module.frames(addresses), strict=True):
            if frames:
                _, one.path, one.line, one.column = frames[-1]
                # The position of a frame is that of its call of the next inner one.
                pairs = pairwise(frames)
                one.inlined = tuple(InlinedCall(inner[0], outer[1], outer[2]) for outer, inner in pairs)

    def _name_targets(self, compilation: Compilation, instructions: Sequence[Instruction]) -> None:
        end = compilation.address + compilation.size_bytes
        named: dict[int, list[Instruction]] = defaultdict(list)
        for one in instructions:
            for address in (one.target_address, one.constant):
                if address and not compilation.address <= address < end:
                    named[address].append(one)
        if not named:
            return
        addresses = sorted(named)
        for address, name in zip(addresses, self._target_names(compilation, addresses), strict=True):
            for one in named[address]:
                one.target_name = name

    def _target_names(self, compilation: Compilation, addresses: list[int]) -> Iterator[str | None]:
        if compilation.process_id is None or compilation.create_ns is None:
            module = self._symbols[compilation.number].module
            for address, (frames, start) in zip(addresses, module.frames(addresses), strict=True):
                # The name of a symbol is that of the outermost function.
                yield _with_offset(frames[0][0], address - start) if frames and start is not None else None
            return
        process = compilation.process_id
        targets = self._profile.code_targets(process, compilation.create_ns, addresses)
        last = compilation.retire_ns or (self.span_ns or (0, 0))[1]
        if None in targets and last > compilation.create_ns:
            later = self._profile.code_targets(process, last - 1, addresses)
            targets = [first or then for first, then in zip(targets, later, strict=True)]
        for found in targets:
            if found is None:
                yield None
                continue
            code, name, offset, _ = found
            yield _with_offset(self._code_name(code) if code is not None else name or "?", offset)

    def _code_name(self, code_object_id: int) -> str:
        """Name and tier of JIT code."""
        rows = Columns(_core.code_rows(self._profile._code, "code_objects", [code_object_id]))
        [(function, tier)] = rows.tuples("function_id", "tier")
        name = self._function_names.get(function, f"f{function}")
        return f"{name} [{tier}]" if tier else name


def _file_with_code(path: str) -> str:
    """The name of the file that a module's code is in."""
    return "the kernel's vmlinux" if module_name(path) == "[kernel]" else last_part(path)


def _with_offset(name: str, offset: int) -> str:
    return f"{name}+{offset:#x}" if offset else name
