"""Instructions of machine code with what is known of each: samples, source position, inlined calls, target."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from perfuse import _core

CALLS = frozenset({"call", "indirect_call"})
JUMPS = frozenset({"jump", "branch"})

InstructionRow = tuple[int, int, str, str, int | None, int | None]
"""Offset, size, text, flow, target and constant of an instruction."""


def address_in_code(frame_address: int, unwound_by: str) -> int:
    """An address in the instruction that ran: that of a frame, or one less where it is that to which a call returns.

    `is_after_call` in `exporters/queries.py` is the same in SQL.

    Args:
        frame_address: `address` or `relative_address` of a row of table `frames`.
        unwound_by: How the frame was found, as in this table.
    """
    return frame_address if unwound_by == "sampled" else max(frame_address - 1, 0)


@dataclass(frozen=True, slots=True)
class Callee:
    """A function that was called at an instruction, as sampled stacks have it.

    Attributes:
        name: Its name; None where it has none.
        code_object_id: Its compilation, for JIT code.
        num_samples: Samples in it and in what it called.
    """

    name: str | None
    code_object_id: int | None
    num_samples: int


@dataclass(frozen=True, slots=True)
class InlinedCall:
    """A call that the compiler replaced by the code of the called function.

    Attributes:
        name: The called function.
        call_path: Source file of the call.
        call_line: Line of the call.
    """

    name: str
    call_path: str | None
    call_line: int | None


@dataclass(slots=True)
class Instruction:
    """An instruction.

    Attributes:
        offset: Offset from the start of the function's code, in bytes.
        size: Size in bytes.
        text: As `objdump -d` writes it, without the name of a target.
        flow: What follows: `next`, `jump`, `branch`, `indirect_jump`, `call`, `indirect_call`, `return`, `trap`, `bad`
            (the bytes are no instruction).
        target_address: Address that it jumps to, calls, or refers to relative to itself.
        constant: A 64-bit constant that may be an address.
        target_name: Name of what is at the target or the constant; None where unknown, and within the function.
        self_samples: Samples taken there.
        self_weight: Their weight, in the unit of the event.
        total_samples: Samples with this instruction anywhere on the stack: those there and in what it called.
        total_weight: Their weight.
        path: Source file.
        line: Line, from 1.
        column: Column, from 1.
        inlined: The inlined calls that it belongs to, the outermost first.
        callees: Functions that it called, those with the most samples first.
    """

    offset: int
    size: int
    text: str
    flow: str
    target_address: int | None
    constant: int | None
    target_name: str | None = None
    self_samples: int = 0
    self_weight: int = 0
    total_samples: int = 0
    total_weight: int = 0
    path: str | None = None
    line: int | None = None
    column: int | None = None
    inlined: tuple[InlinedCall, ...] = ()
    callees: list[Callee] = field(default_factory=list)

    @property
    def is_direct(self) -> bool:
        """Whether its text ends with its target."""
        return self.flow in ("jump", "branch", "call") and self.target_address is not None


def decode(
    code: bytes, address: int, machine: int, *, intel: bool = False, starts: Iterable[int] = ()
) -> list[Instruction]:
    """The instructions of code that is, or was, at an address.

    Args:
        code: The bytes.
        address: Address of the first one.
        machine: ELF `e_machine`. Code other than that of x86 and AArch64 is listed as bytes.
        intel: Whether x86 instructions are written in Intel's syntax.
        starts: Offsets at which instructions are known to start. After constants between instructions, decoding may
            continue in the middle of one; it begins again at these.
    """
    return [Instruction(*row) for row in decoded_rows(code, address, machine, intel=intel, starts=starts)]


def decoded_rows(
    code: bytes, address: int, machine: int, *, intel: bool = False, starts: Iterable[int] = ()
) -> list[InstructionRow]:
    """What `decode` makes instructions of: offset, size, text, flow, target and constant of each."""
    rows = _core.disassemble(code, address, machine, intel)
    inside = {start for start in starts if 0 < start < len(code)}
    if inside:
        inside -= {row[0] for row in rows}
    if not inside or _core.instruction_set(machine) == "bytes":
        return rows
    return [
        (start + offset, size, text, flow, target, constant)
        for start, end in pairwise([0, *sorted(inside), len(code)])
        for offset, size, text, flow, target, constant in _core.disassemble(
            code[start:end], address + start, machine, intel
        )
    ]


@dataclass(frozen=True, slots=True)
class Loop:
    """Instructions from the target of a backward jump to the jump.

    Attributes:
        first: Offset of the first instruction.
        last: Offset of the jump.
        self_samples: Samples in it.
        self_weight: Their weight.
    """

    first: int
    last: int
    self_samples: int
    self_weight: int


def inner_target(one: Instruction, address: int, size: int) -> int | None:
    """The offset that an instruction jumps to, where that is within its function."""
    if one.flow not in JUMPS or one.target_address is None:
        return None
    offset = one.target_address - address
    return offset if 0 <= offset < size else None


def loops(instructions: Sequence[Instruction], address: int, size: int) -> list[Loop]:
    """The loops of a function that have samples, the outermost of those that start together first."""
    offsets = [one.offset for one in instructions]
    ends: dict[int, int] = {}
    for one in instructions:
        target = inner_target(one, address, size)
        if target is not None and target <= one.offset:
            ends[target] = max(one.offset, ends.get(target, 0))
    found = []
    for first, last in sorted(ends.items()):
        inside = instructions[bisect_right(offsets, first - 1) : bisect_right(offsets, last)]
        samples, weight = (sum(getattr(one, name) for one in inside) for name in ("self_samples", "self_weight"))
        if samples:
            found.append(Loop(first, last, samples, weight))
    return found
