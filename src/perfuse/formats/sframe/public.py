"""SFrame: address lookup, unwinding, and conversion, optimisation, merging and writing of sections.

import perfuse as pf

program = pf.sframe.open("a.out")
program.find([0x401136, 0x401160]).to_arrow()       # function, row and rules for each address
program.unwind({"pc": 0x401136, "sp": 0x7ffd3000, "fp": 0}, stack).frames
section = program.sections[0].convert(3).section.optimise()
program.replace(section, "a.out.new")
made = pf.sframe.from_eh_frame("/usr/bin/git")      # for a program without SFrame; made.unsupported lists omissions
made.section.write_into("/usr/bin/git", "git.sframe")
"""

from perfuse.formats.sframe.file import STYLES, LookupTable, SFrame, UnwoundFrame, UnwoundStack, open
from perfuse.formats.sframe.section import (
    ConvertedSection,
    Section,
    UnsupportedItem,
    UnwindRow,
    UnwindRule,
    from_eh_frame,
)
from perfuse.programs.unwind_tables import SectionHeader

__all__ = [
    "STYLES",
    "ConvertedSection",
    "LookupTable",
    "SFrame",
    "Section",
    "SectionHeader",
    "UnsupportedItem",
    "UnwindRow",
    "UnwindRule",
    "UnwoundFrame",
    "UnwoundStack",
    "from_eh_frame",
    "open",
]
