"""What each rule about SFrame sections means, and what to do."""

from perfuse.diagnostics import Explanation

RULES: dict[str, Explanation] = {
    "SF001": Explanation(
        title="a section does not begin with a header",
        meaning="The magic 0xdee2 is not there, or the section ends within its first 28 bytes.",
        action="Nothing of that section can be read. Build the file again.",
    ),
    "SF002": Explanation(
        title="unknown version",
        meaning="There are versions 1, 2 and 3, and sizes of entries differ between them.",
        action="Nothing after the header can be read.",
    ),
    "SF003": Explanation(
        title="flags that its version does not have",
        meaning=(
            "SFRAME_F_FDE_FUNC_START_PCREL was added in version 2, SFRAME_F_FRAME_POINTER was removed in version 3. "
            "Readers refuse unknown flags."
        ),
        action="`perfuse repair` clears bits that no version has.",
    ),
    "SF004": Explanation(
        title="unknown ABI",
        meaning="The registers that rows refer to depend on it.",
        action="Rows are shown as for amd64 and aarch64; FLEX rows, which name registers, cannot be interpreted.",
    ),
    "SF005": Explanation(
        title="magic and ABI are of different byte orders",
        meaning="The magic is written in the byte order of the machine, and each ABI has one.",
        action="The section was read in the order in which its header fits. `perfuse repair` writes the magic in it.",
    ),
    "SF006": Explanation(
        title="bytes follow the header",
        meaning="No version defines an auxiliary header. Linux refuses sections that have one.",
        action="No action is needed to read it.",
    ),
    "SF007": Explanation(
        title="function entries extend past the end of the section",
        meaning="sfh_num_fdes or sfh_fdeoff is larger than the section allows. readelf crashes on such sections.",
        action="Entries that are present were read. `perfuse repair` writes a header that fits.",
    ),
    "SF008": Explanation(
        title="rows extend past the end of the section",
        meaning="sfh_fre_len or sfh_freoff is larger than the section allows. readelf crashes on such sections.",
        action="Rows that are present were read. `perfuse repair` writes a header that fits.",
    ),
    "SF009": Explanation(
        title="function entries and rows overlap",
        meaning="The two sub-sections tile the section: entries end where rows begin.",
        action="Build the file again; some of what was read as one may belong to the other.",
    ),
    "SF010": Explanation(
        title="sfh_num_fres is not the number of rows",
        meaning="It is the sum over all functions.",
        action="`perfuse repair` writes the sum.",
    ),
    "SF011": Explanation(
        title="a header without functions",
        meaning="The section describes no code. Linux refuses it.",
        action="No action is needed.",
    ),
    "SF012": Explanation(
        title="bytes between header, function entries and rows",
        meaning="Producers write them without gaps, and readelf 2.40 ignores the offsets that reveal one.",
        action="No action is needed to read it.",
    ),
    "SF013": Explanation(
        title="bytes after the section's content",
        meaning="The content that the header describes ends before the section does, and no further header follows.",
        action="No action is needed to read it. `perfuse repair` omits the bytes.",
    ),
    "SF020": Explanation(
        title="functions are not sorted, though the flag says so",
        meaning=(
            "Readers use binary search on sorted entries and miss functions. `ld -r` of binutils before 2.45 sets the "
            "flag in object files wrongly."
        ),
        action="`perfuse repair` sorts them. perfuse sorted them before searching.",
    ),
    "SF021": Explanation(
        title="functions are not sorted in a finished file",
        meaning=(
            "GNU ld sorts; other linkers copy the assembler's order. Linux refuses the section, others use a linear "
            "search for each address."
        ),
        action="`perfuse repair` sorts them.",
    ),
    "SF022": Explanation(
        title="rows of a function begin outside the section",
        meaning="Its start_fre_off is past the end of rows. readelf crashes on such sections.",
        action="The function has no rows. `perfuse repair` omits it.",
    ),
    "SF023": Explanation(
        title="unknown type of row starts",
        meaning="Types 0, 1 and 2 are starts of 1, 2 and 4 bytes.",
        action="The function's rows cannot be read. `perfuse repair` omits it.",
    ),
    "SF024": Explanation(
        title="unknown function type",
        meaning="Version 3 has DEFAULT (0) and FLEX (1).",
        action="The function's rows cannot be interpreted. `perfuse repair` omits it.",
    ),
    "SF025": Explanation(
        title="unused bits of a function are set",
        meaning="They are 0 in the version the section is of.",
        action="No action is needed to read it.",
    ),
    "SF026": Explanation(
        title="repeating code with a block size of 0",
        meaning="A PCMASK function states the size of its block; libsframe and Linux divide by it.",
        action="No row of the function can be found. `perfuse repair` omits it.",
    ),
    "SF027": Explanation(
        title="a function of size 0",
        meaning="No address is in it. Assemblers write them for empty functions.",
        action="No action is needed.",
    ),
    "SF028": Explanation(
        title="a function without rows",
        meaning=(
            "In versions 1 and 2 this gives no information about it. (In version 3 it is the outermost frame, or a "
            "signal frame that could not be described.)"
        ),
        action="No action is needed.",
    ),
    "SF029": Explanation(
        title="functions overlap",
        meaning="An address is in two functions; which one is found depends on the reader.",
        action="perfuse uses the function that starts last.",
    ),
    "SF030": Explanation(
        title="a function is outside the file's code",
        meaning=(
            "Linkers that discard a function leave its entry, at or near address 0; or the starts have another base "
            "than was detected."
        ),
        action="No action is needed. No lookup of a used address finds it.",
    ),
    "SF031": Explanation(
        title="functions claim too many rows",
        meaning=(
            "Rows overlap so often that reading all of them would take unbounded time: the table is damaged or "
            "malicious."
        ),
        action="Functions from this one on have no rows here.",
    ),
    "SF040": Explanation(
        title="a row extends past the end of the rows",
        meaning="Its function has fewer rows than stated, or an earlier row has a wrong size.",
        action="Rows before it were read. `perfuse repair` omits the function.",
    ),
    "SF041": Explanation(
        title="unknown size of a row's words",
        meaning="Codes 0, 1 and 2 are words of 1, 2 and 4 bytes.",
        action="Rows before it were read. `perfuse repair` omits the function.",
    ),
    "SF042": Explanation(
        title="a row cannot be interpreted",
        meaning="It has undefined words, a control word without an offset, or a CFA relative to itself.",
        action="`perfuse repair` omits its function.",
    ),
    "SF043": Explanation(
        title="rows are not in ascending order",
        meaning="A row does not start after the previous row. Linux refuses the section.",
        action=(
            "The last row in file order that starts at or before an address is used. `perfuse repair` omits the "
            "function."
        ),
    ),
    "SF044": Explanation(
        title="a row starts after the end of its function",
        meaning=(
            "Its start offset is larger than the function or the repeating block. libsframe stops on an assertion."
        ),
        action="No lookup finds it.",
    ),
    "SF045": Explanation(
        title="the first row does not start at the function's start",
        meaning="No row covers the function's first bytes.",
        action="Unwinding from there needs another source.",
    ),
    "SF046": Explanation(
        title="a row repeats the previous row",
        meaning="It takes space and adds no information. Assemblers write many on aarch64.",
        action="No action is needed.",
    ),
    "SF047": Explanation(
        title="a row without words in version 1",
        meaning="Rows without words are the outermost frame since errata 2 of version 2; before, they are undefined.",
        action="It was read as the outermost frame.",
    ),
    "SF048": Explanation(
        title="a signed return address on a machine without signing",
        meaning="Only aarch64 signs return addresses.",
        action="No action is needed to read it.",
    ),
    "SF060": Explanation(
        title="several concatenated sections",
        meaning=(
            "lld, gold and mold put sections of object files together without merging them. Other readers see only "
            "the first one's functions."
        ),
        action="All were read. `perfuse repair` writes one sorted section.",
    ),
    "SF061": Explanation(
        title="sections of several versions or ABIs in one",
        meaning="Object files of different assemblers were linked by a linker that merges nothing.",
        action="All were read; convert them to one version before merging.",
    ),
    "SF062": Explanation(
        title="start addresses are relative to their fields without the flag",
        meaning=(
            "Versions 1 and 2 before errata 1 do not define the base of start addresses: GNU ld uses the section, the "
            "relocations that assemblers write use the field. `perfuse info` shows which base was detected and how."
        ),
        action="No action is needed in perfuse; other tools show wrong addresses.",
    ),
    "SF063": Explanation(
        title="a start field of an object file has no relocation",
        meaning=(
            "The address of its function is unknown. `ld -r` of binutils before 2.45 writes relocations of all but "
            "the first section to wrong places."
        ),
        action="Link from the object files it was made of.",
    ),
    "SF064": Explanation(
        title="a relocation that is not one of a start field",
        meaning=(
            "It has another type, or is outside the function entries; linking would change other bytes of the section."
        ),
        action="Link from the object files it was made of.",
    ),
    "SF065": Explanation(
        title="PT_GNU_SFRAME is larger than the section",
        meaning="GNU ld rounds it up to what follows in the file.",
        action="No action is needed.",
    ),
    "SF066": Explanation(
        title="functions in .eh_frame without SFrame rows",
        meaning=(
            "Unwinding by SFrame ends there. Assemblers omit a function if one of its directives is not representable "
            "in a row; objects assembled without `--gsframe` have none at all. `perfuse report` lists them with the "
            "reason."
        ),
        action=(
            "No action is needed. `perfuse sframe from-eh-frame` makes rows for all code for which rows are possible."
        ),
    ),
    "SF067": Explanation(
        title="the file ends before its content",
        meaning=(
            "The headers of the ELF file, or the size of a member of the archive, state more bytes than there are: the "
            "file was cut. Sections, symbols and members after the end are missing from everything that is reported."
        ),
        action="Copy or build the file again.",
    ),
    "SF070": Explanation(
        title="CFA differs from .eh_frame",
        meaning=(
            "Unwinding by this row or by .eh_frame fails: both come from the same directives, and one was translated "
            "wrongly."
        ),
        action="`perfuse sframe from-eh-frame` rebuilds the section from .eh_frame.",
    ),
    "SF071": Explanation(
        title="return address differs from .eh_frame",
        meaning="Assemblers of binutils before 2.46 ignore `.cfi_register` for the return address, as does LLVM 22.",
        action="`perfuse sframe from-eh-frame` rebuilds the section from .eh_frame.",
    ),
    "SF072": Explanation(
        title="frame pointer differs from .eh_frame",
        meaning=(
            "The caller's frame pointer will be wrong, and so will frames whose CFA is relative to it. LLVM 22 writes "
            "such rows for `.cfi_register`."
        ),
        action="`perfuse sframe from-eh-frame` rebuilds the section from .eh_frame.",
    ),
    "SF073": Explanation(
        title="outermost frame differs from .eh_frame",
        meaning=(
            "`.cfi_undefined` of the return address states that there is no caller. Versions 1 and 2 before errata 2 "
            "cannot express this, and their assemblers write a row as if there were one."
        ),
        action="Unwinders continue past the last frame. Version 3 can express it: `perfuse sframe from-eh-frame`.",
    ),
    "SF074": Explanation(
        title="a nested remembered state was lost",
        meaning=(
            "Assemblers of binutils 2.40 to 2.47 remember one state: after the outer `.cfi_restore_state`, rows "
            "describe the inner state."
        ),
        action="`perfuse sframe from-eh-frame` rebuilds the section from .eh_frame, where it is right.",
    ),
    "SF075": Explanation(
        title="rows of another PLT's layout",
        meaning=(
            "Linkers write rows of PLTs themselves. GNU ld 2.44 to 2.47 uses those of a lazy PLT for `.plt.got`, "
            "whose stubs push nothing; 2.40 uses them for the PLTs of `-z ibtplt`."
        ),
        action="Samples in these stubs are unwound wrongly. `perfuse sframe from-eh-frame` rebuilds the section.",
    ),
    "SF076": Explanation(
        title="rows for code that SFrame cannot describe",
        meaning=".eh_frame has a rule there that SFrame cannot represent, so the row states something else.",
        action="`perfuse sframe from-eh-frame` omits the function, so that unwinders use .eh_frame.",
    ),
    "SF077": Explanation(
        title="a function with rows in .eh_frame but not in SFrame",
        meaning=(
            "It has an entry, but no row covers these addresses. Assemblers write such entries for signal frames that "
            "they cannot translate."
        ),
        action="Unwinding from there needs .eh_frame.",
    ),
    "SF078": Explanation(
        title="signal frame differs from .eh_frame",
        meaning=(
            "It decides whether a return address is looked up as it is or one byte before. Versions 1 and 2 cannot "
            "express it."
        ),
        action="No action is needed.",
    ),
    "SF079": Explanation(
        title="return address key differs from .eh_frame",
        meaning="The key decides how a return address is authenticated; removing the signature is the same for both.",
        action="No action is needed to unwind by it.",
    ),
    "SF080": Explanation(
        title="Linux would not accept it",
        meaning=(
            "According to patch series 13 for user space unwinding, of 2026-01-27, which Linux 7.2 does not contain "
            "(as of 2026-11-21). It needs version 3, sorted, field-relative starts, no auxiliary header, functions "
            "inside code, and ascending rows."
        ),
        action="Link with binutils 2.46 or newer; `perfuse.sframe` converts and merges.",
    ),
    "SF081": Explanation(
        title="glibc 2.43 would not use it",
        meaning=(
            "Its backtrace() reads version 2 for its own machine, and uses DWARF otherwise (as of 2026-11-21; a patch "
            "of April 2026 for version 3 is not released)."
        ),
        action="No action is needed: DWARF is usually present.",
    ),
    "SF082": Explanation(
        title="libsframe 3 (binutils 2.46 and newer) would not read it correctly",
        meaning=(
            "It reads versions 2 and 3, and in version 2 without the flag PCREL finds only part of the functions "
            "(binutils 2.46 and 2.47, as of 2026-11-21)."
        ),
        action="`perfuse.sframe` converts it to version 3.",
    ),
}
