"""Machine code of programs and libraries in a saved profile, with what is known of each address, and source texts.

What annotating a function asks of this machine's files is asked when the profile is saved, for every function on a
stack; a saved profile answers from that.
"""

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from perfuse import _core
from perfuse.analysis.instructions import InstructionRow, address_in_code, decoded_rows
from perfuse.analysis.sampled import events
from perfuse.archive.contents import CodeChoice, Frames, NativeCode, NotSavedError, SourceChoice, SymbolFrames
from perfuse.archive.source import WholeProfile
from perfuse.archive.xz import packed, unpacked
from perfuse.errors import UnreadableInput
from perfuse.programs.machine import machine_of_code
from perfuse.table import Columns

FACTS = "resolved/code.json.xz"
BYTES = "resolved/code.bin.xz"
MAX_BYTES = 1 << 30
"""Most bytes that one of these may become."""

Target = tuple[int | None, str | None, int, str | None]


class _Texts:
    """Texts, each stored once."""

    def __init__(self) -> None:
        self.all: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, text: Any) -> int:
        if text not in self._numbers:
            self._numbers[text] = len(self.all)
            self.all.append(text)
        return self._numbers[text]


class _Recorder:
    """Collects answers about the code of a profile."""

    def __init__(self, profile: WholeProfile) -> None:
        self._profile = profile
        self._texts, self._frames = _Texts(), _Texts()
        self._code = bytearray()
        self.paths: set[str] = set()

    def native(self, *, all_on_stacks: bool) -> list[dict[str, Any]]:
        """Code of the functions of files that samples were taken in, or of all that are on stacks."""
        stacks = Columns(self._profile.tables["stacks"])
        tops = set(Columns(self._profile.tables["samples"])["stack_id"])
        innermost = {frame for stack, frame in stacks.tuples("stack_id", "frame_id") if stack in tops}
        frames = Columns(self._profile.tables["frames"])
        mappings = Columns(self._profile.tables["mappings"])
        files = {row[0]: row[1:] for row in mappings.tuples("mapping_id", "path", "build_id")}
        positions: dict[tuple[str, str | None], set[int]] = {}
        starts: dict[tuple[str, str | None], set[int]] = {}
        columns = ("frame_id", "inline_depth", "mapping_id", "relative_address", "unwound_by", "code_object_id")
        # An inlined call that is innermost has the address of the function that contains it.
        rows = list(frames.tuples(*columns))
        sampled = {row[2:4] for row in rows if row[0] in innermost}
        for _, depth, mapping, address, unwound_by, code in rows:
            path, build_id = files.get(mapping, (None, None))
            if depth != 0 or address is None or code is not None or path is None:
                continue
            if not all_on_stacks and (mapping, address) not in sampled:
                continue
            positions.setdefault((path, build_id), set()).add(address_in_code(address, unwound_by))
            if unwound_by == "sampled":
                starts.setdefault((path, build_id), set()).add(address)
        return [self._module(*file, sorted(found), starts.get(file, set())) for file, found in positions.items()]

    def _module(self, path: str, build_id: str | None, positions: list[int], starts: set[int]) -> dict[str, Any]:
        module = self._profile.native_module(path, build_id)
        functions: list[list[int]] = []
        errors: list[list[int]] = []
        instructions: set[int] = set()
        targets: set[int] = set()
        end = -1
        for position in positions:
            if position < end:
                continue
            try:
                start, code, machine = module.function_code(position)
            except ValueError as error:
                errors.append([position, self._texts.number(str(error))])
                continue
            functions.append([start, len(self._code), len(code), machine])
            self._code += code
            end = start + len(code)
            decoded = decoded_rows(code, start, machine)
            if sampled := [one - start for one in starts if start <= one < end]:
                decoded += decoded_rows(code, start, machine, starts=sampled)
            instructions |= {start + row[0] for row in decoded}
            targets |= _references(decoded, start, end)
        known = self._known(module, instructions)
        return {
            "path": path,
            "build_id": build_id,
            "file": module.file,
            "debug_file": module.debug_file,
            "functions": functions,
            "errors": errors,
            "instructions": [*known[:1], *(row for before, row in pairwise(known) if row[1:] != before[1:])],
            "targets": self._known(module, targets),
        }

    def _known(self, module: NativeCode, addresses: set[int]) -> list[list[Any]]:
        """`[address, number of its frames, start of its symbol]` of each address, in their order."""
        asked = sorted(addresses)
        rows: list[list[Any]] = []
        last: tuple[Frames, int | None] | None = None
        for address, answer in zip(asked, module.frames(asked), strict=True):
            found, symbol = answer
            # Most instructions are of the same line as the one before.
            number = rows[-1][1] if answer == last else self._frames.number(tuple(map(self._frame, found)))
            rows.append([address, number, symbol])
            last = answer
        return rows

    def _frame(self, frame: tuple[str, str | None, int | None, int | None]) -> tuple[Any, ...]:
        name, path, line, column = frame
        if path is not None:
            self.paths.add(path)
        return self._texts.number(name), self._texts.number(path), line, column

    def jit(self, sampled: Sequence[int]) -> list[list[Any]]:
        """What code of sampled code objects refers to in files: `[process, address, [[ts_ns, name, offset, file]]]`."""
        fusion = self._profile._fusion
        lines = Columns(_core.code_rows(fusion, "line_rows", sampled))
        self.paths |= {path for path in lines["path"] if path}
        references = self._references_of_code(sampled)
        # By process and address, then by time.
        asked = sorted(references, key=lambda query: (query[0], query[2], query[1]))
        rows: dict[tuple[int, int], list[list[Any]]] = {}
        for (process, at, to), answer in zip(asked, _core.code_targets_at(fusion, asked), strict=True):
            if answer is None or answer[0] is not None:
                continue
            _, name, offset, file = answer
            new = [self._texts.number(name), offset, self._texts.number(file)]
            known = rows.setdefault((process, to), [])
            if not known or known[-1][1:] != new:
                known.append([at, *new])
        return [[process, address, found] for (process, address), found in rows.items()]

    def _references_of_code(self, sampled: Sequence[int]) -> set[tuple[int, int, int]]:
        """Processes, times and addresses outside of code objects that their instructions refer to.

        The times are those of the code's first state, and of its last, which is annotated.
        """
        profile = self._profile
        measured = [one for one in events(profile) if not one.is_sum] if profile.has_samples else []
        lasts = {one.last_ns for one in measured}
        starts = self._decoded_starts(sampled, [one.name for one in measured])
        columns = ("code_object_id", "process_id", "create_ns", "retire_ns", "start_address", "code", "source_id")
        references: set[tuple[int, int, int]] = set()
        codes = Columns(_core.code_rows(profile._fusion, "code_objects", sampled))
        for key, process, created, retired, address, code, source in codes.tuples(*columns):
            if not code or process is None or created is None:
                continue
            machine = machine_of_code(profile.recordings[source].summary.arch, profile.recordings)
            end = address + len(code)
            found: set[int] = set()
            for some in starts[key]:
                found |= _references(decoded_rows(bytes(code), address, machine, starts=some), address, end)
            times = {created, *(last - 1 for last in ([retired] if retired else lasts) if last > created)}
            references |= {(process, at, to) for at in times for to in found}
        return references

    def _decoded_starts(self, sampled: Sequence[int], event_names: Sequence[str]) -> dict[int, set[frozenset[int]]]:
        """Sets of positions at which code is decoded anew, by code object: none, and those sampled by each event."""
        starts: dict[int, set[frozenset[int]]] = {key: {frozenset()} for key in sampled}
        for name in event_names:
            positions, _, _ = _core.code_samples(self._profile.tables, sampled, [], event=name)
            of_event: dict[int, set[int]] = {}
            for code, _, at, num_samples, *_ in positions:
                if code is not None and num_samples:
                    of_event.setdefault(code, set()).add(at)
            for key in starts.keys() & of_event.keys():
                starts[key].add(frozenset(of_event[key]))
        return starts

    def sources(self, choice: SourceChoice) -> list[dict[str, Any]]:
        """Texts of source files that are found on this machine."""
        if choice == "none":
            return []
        from perfuse.analysis.source_files import SourceFiles

        paths = {path for path in Columns(self._profile.tables["frames"])["path"] if path}
        paths |= self.paths
        if choice == "all":
            paths |= {path for path in Columns(self._profile.tables["line_rows"].stream())["path"] if path}
            paths |= {path for path in Columns(self._profile.tables["functions"])["path"] if path}
        finder = SourceFiles(self._profile, recordings=[one.path for one in self._profile.recordings])
        found = []
        for path in sorted(paths):
            source = finder.get(path)
            if source is not None and source.origin != "recording":
                found.append({"path": path, "origin": source.origin, "text": "\n".join(source.lines)})
        return found

    def facts(self, **parts: Any) -> dict[str, Any]:
        """The document, with the texts that it refers to."""
        return {"texts": self._texts.all, "frames": self._frames.all, **parts}

    @property
    def code(self) -> bytes:
        """The code of all functions."""
        return bytes(self._code)


def record(profile: WholeProfile, sampled: Sequence[int], code: CodeChoice, sources: SourceChoice) -> dict[str, bytes]:
    """The members with code and sources, by name; none where nothing is known."""
    recorder = _Recorder(profile)
    modules = recorder.native(all_on_stacks=code == "all") if code != "none" else []
    saved = Columns(profile.tables["code_objects"])["code_object_id"] if code == "all" else sampled
    targets = recorder.jit(saved) if code != "none" and saved else []
    facts = recorder.facts(modules=modules, targets=targets, sources=recorder.sources(sources))
    if not (modules or targets or facts["sources"]):
        return {}
    text = json.dumps(facts, ensure_ascii=False, separators=(",", ":")).encode()
    return {FACTS: packed(text), BYTES: packed(recorder.code)}


def _references(rows: Iterable[InstructionRow], start: int, end: int) -> set[int]:
    """Addresses outside a function that its instructions refer to."""
    return {to for *_, target, constant in rows for to in (target, constant) if to and not start <= to < end}


@dataclass(frozen=True)
class ResolvedModule:
    """Code of a program or library, as it was when the profile was saved; stands for `_core.NativeModule`."""

    file: str | None
    debug_file: str | None
    _functions: list[tuple[int, bytes, int]]
    _errors: Mapping[int, str]
    _instructions: list[tuple[int, Frames, int | None]]
    """First addresses of instructions in functions that are in the same line, with their frames and symbol."""
    _targets: Mapping[int, tuple[Frames, int | None]]
    """Frames and symbols of single addresses: those that functions refer to."""

    def function_code(self, address: int, /) -> tuple[int, bytes, int]:
        """First address, code and ELF machine of the function that contains an address of the file.

        Raises:
            ValueError: It was not available, or not saved.
        """
        if address in self._errors:
            raise ValueError(self._errors[address])
        function = self._function(address)
        if function is None:
            raise NotSavedError
        return function

    def _function(self, address: int) -> tuple[int, bytes, int] | None:
        at = bisect_right(self._functions, address, key=lambda one: one[0]) - 1
        if at < 0:
            return None
        start, code, _ = self._functions[at]
        return self._functions[at] if address < start + len(code) else None

    def frames(self, addresses: Sequence[int], /) -> SymbolFrames:
        """For each address the function and the calls inlined there, the outermost first; none where not saved."""
        return [self._known(address) for address in addresses]

    def _known(self, address: int) -> tuple[Frames, int | None]:
        if address in self._targets:
            return self._targets[address]
        at = bisect_right(self._instructions, address, key=lambda one: one[0]) - 1
        if at < 0 or self._function(address) is None:
            return [], None
        _, frames, symbol = self._instructions[at]
        return frames, symbol


class ResolvedCode:
    """The code and source texts of a saved profile.

    Args:
        path: The saved profile, for messages.
        members: The members by name, of those that it has.

    Raises:
        UnreadableInput: They are damaged.
    """

    def __init__(self, path: str, members: Mapping[str, bytes]) -> None:
        self._path, self._members = path, members
        self._modules: dict[tuple[str, str | None], ResolvedModule] = {}
        self.sources: dict[str, tuple[str, str]] = {}
        self._facts: Mapping[str, Any] = {"modules": [], "targets": []}
        if not members:
            return
        with self._readable():
            self._facts = json.loads(unpacked(members[FACTS], MAX_BYTES))
            self.sources = {one["path"]: (one["origin"], one["text"]) for one in self._facts["sources"]}

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """An error about what the members contain is one of the file."""
        try:
            yield
        except (KeyError, IndexError, TypeError, ValueError, RecursionError) as error:
            raise UnreadableInput(
                f"{self._path}: the saved machine code cannot be read: {error}",
                path=self._path,
                hint="copy the file again, or save the profile again with `perfuse pack`",
            ) from error

    @cached_property
    def _code(self) -> bytes:
        return unpacked(self._members[BYTES], MAX_BYTES)

    @cached_property
    def _module_facts(self) -> dict[tuple[str, str | None], Mapping[str, Any]]:
        return {(one["path"], one["build_id"]): one for one in self._facts["modules"]}

    @cached_property
    def _targets(self) -> dict[tuple[int, int], list[Any]]:
        return {(process, address): answers for process, address, answers in self._facts["targets"]}

    def _read_module(self, module: Mapping[str, Any]) -> ResolvedModule:
        texts, frames = self._facts["texts"], self._facts["frames"]

        def named(number: int) -> Frames:
            return [(texts[name], texts[path], line, column) for name, path, line, column in frames[number]]

        functions = [
            (start, self._code[offset : offset + size], machine) for start, offset, size, machine in module["functions"]
        ]
        return ResolvedModule(
            module["file"],
            module["debug_file"],
            sorted(functions),
            {position: texts[message] for position, message in module["errors"]},
            sorted((address, named(number), symbol) for address, number, symbol in module.get("instructions", [])),
            # Before version 1.6, instructions are among the single addresses.
            {
                address: (named(number), symbol)
                for address, number, symbol in module["targets" if "targets" in module else "addresses"]
            },
        )

    def module(self, path: str, build_id: str | None) -> ResolvedModule:
        """Code of a program or library; without any where none was saved.

        Raises:
            UnreadableInput: It is damaged.
        """
        key = (path, build_id)
        if key not in self._modules:
            with self._readable():
                known = self._module_facts.get(key)
                empty = ResolvedModule(None, None, [], {}, [], {})
                self._modules[key] = empty if known is None else self._read_module(known)
        return self._modules[key]

    def targets(
        self, process_id: int, at_ns: int, addresses: Iterable[int], of_code: Sequence[Target | None]
    ) -> list[Target | None]:
        """What addresses referred to: JIT code as given, else what was saved."""
        return [
            one if one is not None and one[0] is not None else self._target(process_id, at_ns, address)
            for address, one in zip(addresses, of_code, strict=True)
        ]

    def _target(self, process_id: int, at_ns: int, address: int) -> Target | None:
        with self._readable():
            answers = self._targets.get((process_id, address))
            if not answers:
                return None
            _, name, offset, file = answers[max(bisect_right(answers, at_ns, key=lambda one: one[0]) - 1, 0)]
            texts = self._facts["texts"]
            return None, texts[name], offset, texts[file]
