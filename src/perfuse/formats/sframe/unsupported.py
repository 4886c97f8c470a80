"""Texts for what a version of SFrame cannot represent, and for why a function has no rows."""

TEXTS = {
    "frame_pointer_flag": "the flag SFRAME_F_FRAME_POINTER",
    "shared_rows": "rows shared with a function that is left out",
    "signal_frame": "the mark of a signal frame, which only version 3 has",
    "machine": "s390x, which version 1 does not support",
    "repeat_size": "a repeating block whose size is not 16 bytes",
    "repeat_field": "the size of a repeating block; version 1 readers take it as 16 bytes",
    "too_many_rows": "more than 65535 rows",
    "no_rows": "a function without rows, which version 3 reads as the outermost frame",
    "outermost": "the outermost frame is not representable in version 1",
    "unreadable_row": "a row that cannot be read",
    "invalid_row": "a row that cannot be interpreted",
    "offset_size": "an offset of more than 32 bits",
    "cfa_scale": "a CFA offset that is not a multiple of 8",
    "cfa_base": "a CFA that is not relative to stack or frame pointer",
    "cfa_of_itself": "a CFA that is relative to itself",
    "register_of_cfa": "a register whose value is the CFA",
    "register_place": "a register that is not saved at an offset from the CFA",
    "fixed_offset": "a register that is not at the fixed offset in the header",
    "fp_without_ra": "a frame pointer that is saved while the return address is not",
    "unknown_registers": "an ABI whose registers are unknown",
    "ra_on_stack": "a return address that is an address of the stack",
    "repeat_power": "a block that repeats and whose size is not a power of two",
    "repeat_start": "a block that repeats and begins within another",
    "eh_frame_rule": "{}",
    "plt_expression": "an expression of a PLT",
    "unreadable_entry": "an entry that cannot be read: {}",
    "linker": "left out by the linker, which writes PLTs",
    "assembler": "left out by the assembler, or assembled without --gsframe",
    "no_eh_frame": "not in .eh_frame either",
    "unreadable_eh_frame": "its .eh_frame cannot be read: {}",
}
"""Texts by the codes of the core; `{}` stands for what was found."""


def unsupported_text(code: str, detail: str = "") -> str:
    """The text for a code, with what was found."""
    return TEXTS[code].format(detail)
