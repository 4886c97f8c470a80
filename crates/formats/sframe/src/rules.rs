//! Every way a section departs from its specification, numbered: 00x-01x the header, 02x-03x functions, 04x-05x rows, 06x what the
//! section is in, 07x where .eh_frame says something else, 08x who would not take it. Section numbers are those of version 1's document, which later ones keep.

use perfuse_wire::rules;

rules! {
    UNREAD = "SF001", Error, "1.1", "a section does not begin with a header",
        "The magic 0xdee2 is not there, or the section ends within its first 28 bytes.",
        "Nothing of that section can be read. Build the file again.";
    VERSION = "SF002", Error, "1.1", "version is not known",
        "There are versions 1, 2 and 3, and sizes of entries differ between them.",
        "Nothing behind the header can be read.";
    FLAGS = "SF003", Error, "1.1", "flags that its version does not have",
        "SFRAME_F_FDE_FUNC_START_PCREL came with version 2, SFRAME_F_FRAME_POINTER went with version 3. Readers refuse what they do not know.",
        "`perfuse repair` clears bits that no version has.";
    ABI = "SF004", Error, "1.2", "ABI is not known",
        "Which registers rows are about depends on it.",
        "Rows are shown as for amd64 and aarch64; FLEX rows, which name registers, say nothing.";
    BYTE_ORDER = "SF005", Error, "1.1", "magic and ABI are of different byte orders",
        "The magic is written in the byte order of the machine, and each ABI has one.",
        "The section was read in the order in which its header fits.";
    AUXILIARY = "SF006", Warning, "1.2", "bytes follow the header",
        "No version defines an auxiliary header. Linux refuses sections that have one.",
        "Nothing has to be done to read it.";
    ENTRIES_PAST_END = "SF007", Error, "1.2", "function entries go past the end of the section",
        "sfh_num_fdes or sfh_fdeoff is larger than the section has room for. readelf crashes on such sections.",
        "Entries that are there were read. `perfuse repair` writes a header that fits.";
    ROWS_PAST_END = "SF008", Error, "1.2", "rows go past the end of the section",
        "sfh_fre_len or sfh_freoff is larger than the section has room for. readelf crashes on such sections.",
        "Rows that are there were read. `perfuse repair` writes a header that fits.";
    ENTRIES_OVER_ROWS = "SF009", Error, "1.2", "function entries and rows overlap",
        "The two sub-sections tile the section: entries end where rows begin.",
        "Build the file again; what was read of either may be of the other.";
    NUM_ROWS = "SF010", Warning, "1.2", "sfh_num_fres is not the number of rows",
        "It is the sum over all functions.",
        "`perfuse repair` writes the sum.";
    EMPTY = "SF011", Info, "1.2", "a header without functions",
        "The section says nothing about any code. Linux refuses it.",
        "Nothing has to be done.";
    GAP = "SF012", Info, "1.2", "bytes between header, function entries and rows",
        "Producers write them without gaps, and readelf 2.40 takes no notice of the offsets that tell of one.",
        "Nothing has to be done to read it.";
    TRAILING = "SF013", Warning, "1.2", "bytes behind the section's content",
        "What the header tells of ends before the section does, and no header follows.",
        "Nothing has to be done to read it.";

    NOT_SORTED = "SF020", Error, "1.3", "functions are not sorted, though the flag says so",
        "Readers search sorted entries by halves and miss functions. `ld -r` of binutils before 2.45 sets the flag in object files wrongly.",
        "`perfuse repair` sorts them. Here they were sorted before any search.";
    UNSORTED = "SF021", Warning, "1.3", "functions are not sorted in a finished file",
        "GNU ld sorts; other linkers copy what assemblers wrote. Linux refuses the section, others search all of it for each address.",
        "`perfuse repair` sorts them.";
    ROWS_OUTSIDE = "SF022", Error, "1.3", "rows of a function begin outside of the section",
        "Its start_fre_off is past the end of rows. readelf crashes on such sections.",
        "The function has no rows. `perfuse repair` leaves it out.";
    FRE_TYPE = "SF023", Error, "1.3.3", "type of row starts is not known",
        "Types 0, 1 and 2 are starts of 1, 2 and 4 bytes.",
        "The function's rows cannot be read. `perfuse repair` leaves it out.";
    FDE_TYPE = "SF024", Error, "1.3", "type of function is not known",
        "Version 3 has DEFAULT (0) and FLEX (1).",
        "The function's rows say nothing. `perfuse repair` leaves it out.";
    UNUSED_BITS = "SF025", Warning, "1.3.1", "unused bits of a function are set",
        "They are 0 in the version the section is of.",
        "Nothing has to be done to read it.";
    NO_BLOCK = "SF026", Error, "1.3.2", "code that repeats, in blocks of no size",
        "A PCMASK function says how large its block is; libsframe and Linux divide by it.",
        "No row of the function can be found. `perfuse repair` leaves it out.";
    NO_SIZE = "SF027", Info, "1.3", "a function of no size",
        "No address is in it. Assemblers write them for empty functions.",
        "Nothing has to be done.";
    NO_ROWS = "SF028", Warning, "1.3", "a function without rows",
        "In versions 1 and 2 that tells nothing about it. (In version 3 it is the outermost, or one entered for a signal that could not be told.)",
        "Nothing has to be done.";
    OVERLAP = "SF029", Warning, "1.3", "functions overlap",
        "An address is in two functions, and it depends on the reader which of them is found.",
        "The function that starts last is taken here.";
    OUTSIDE_CODE = "SF030", Warning, "1.3", "a function is outside of the file's code",
        "Linkers that drop a function leave its entry behind, at address 0 or near it; or starts count from something else than was found out.",
        "Nothing has to be done. No address in use finds it.";
    TOO_MANY_ROWS = "SF031", Error, "1.3", "functions claim more rows than can be walked",
        "Rows overlap so often that reading all of them would not end: the table is damaged, or made to harm.",
        "Functions from this one on have no rows here.";

    ROW_PAST_END = "SF040", Error, "1.4", "a row goes past the end of rows",
        "Its function has fewer rows than it says, or a row before it has a wrong size.",
        "Rows before it were read. `perfuse repair` leaves the function out.";
    WORD_SIZE = "SF041", Error, "1.4.1", "size of a row's words is not known",
        "Codes 0, 1 and 2 are words of 1, 2 and 4 bytes.",
        "Rows before it were read. `perfuse repair` leaves the function out.";
    MEANINGLESS = "SF042", Error, "1.4", "a row says nothing",
        "It has words nobody defined, a control word without an offset, or a CFA counted from itself.",
        "`perfuse repair` leaves its function out.";
    NOT_ASCENDING = "SF043", Error, "1.4", "rows do not ascend",
        "A row's start is not behind that of the row before it. Linux refuses the section.",
        "The last row in file order that starts at or before an address is taken. `perfuse repair` leaves the function out.";
    ROW_PAST_FUNCTION = "SF044", Error, "1.4", "a row starts behind its function",
        "Its start is larger than the function, or than the block that repeats. libsframe stops on an assertion.",
        "No address finds it.";
    LATE_FIRST_ROW = "SF045", Warning, "1.4", "the first row does not start with the function",
        "Nothing is said about the function's first bytes.",
        "Unwinding from there needs another source.";
    SAME_ROW = "SF046", Info, "1.4", "a row says what the row before it says",
        "It takes space and tells nothing. Assemblers write many on aarch64.",
        "Nothing has to be done.";
    OUTERMOST_EARLY = "SF047", Warning, "1.4", "a row without words in version 1",
        "Rows without words are the outermost frame since errata 2 of version 2; before, they are undefined.",
        "It was read as the outermost frame.";
    MANGLED = "SF048", Warning, "1.4.1", "a signed return address on a machine that has none",
        "Only aarch64 signs return addresses.",
        "Nothing has to be done to read it.";

    NOT_MERGED = "SF060", Warning, "1", "several sections one behind the other",
        "lld, gold and mold put sections of object files together without merging them. Other readers see the first, and no function of the rest.",
        "All were read. `perfuse repair` writes one sorted section.";
    SEVERAL_VERSIONS = "SF061", Warning, "1", "sections of several versions or ABIs in one",
        "Object files of different assemblers were linked by a linker that merges nothing.",
        "All were read; they cannot be merged before they are converted to one version.";
    UNSAID_BASE = "SF062", Info, "1.3", "starts count from their fields, and no flag says so",
        "Versions 1 and 2 before errata 1 do not say what start addresses count from: GNU ld counts from the section, relocations as \
         assemblers write them from the field. `perfuse info` shows which it is here, and how that is known.",
        "Nothing has to be done here; other tools show wrong addresses.";
    NOT_RELOCATED = "SF063", Warning, "ELF", "a start field of an object file has no relocation",
        "Where its function is cannot be known. `ld -r` of binutils before 2.45 writes relocations of all but the first section to wrong places.",
        "Link from the object files it was made of.";
    RELOCATION = "SF064", Warning, "ELF", "a relocation that is not one of a start field",
        "It is of another kind, or outside of the function entries; linking would change other bytes of the section.",
        "Link from the object files it was made of.";
    SEGMENT_SIZE = "SF065", Info, "ELF", "PT_GNU_SFRAME is larger than the section",
        "GNU ld rounds it up to what follows in the file.",
        "Nothing has to be done.";

    NOT_COVERED = "SF066", Info, "", "functions of .eh_frame without rows",
        "Unwinding ends there, unless by something else. Assemblers leave a function out as soon as one of its directives has no place \
         in a row; objects assembled without `--gsframe` have none at all. `perfuse report` lists them, and why.",
        "Nothing has to be done. `perfuse sframe from-eh-frame` makes rows for all code that they can be made for.";

    CFA_DIFFERS = "SF070", Error, "1.4", "another CFA than .eh_frame has",
        "Unwinding by this row goes astray, or by .eh_frame: both are from the same directives, and one of them was translated wrongly.",
        "`perfuse sframe from-eh-frame` makes the section anew from .eh_frame.";
    RA_DIFFERS = "SF071", Error, "1.4", "another return address than .eh_frame has",
        "Assemblers of binutils before 2.46 take no notice of `.cfi_register` for the return address, LLVM 22 neither.",
        "`perfuse sframe from-eh-frame` makes the section anew from .eh_frame.";
    FP_DIFFERS = "SF072", Error, "1.4", "another frame pointer than .eh_frame has",
        "The caller's frame pointer will be wrong, and with it frames whose CFA is counted from it. LLVM 22 writes such rows for `.cfi_register`.",
        "`perfuse sframe from-eh-frame` makes the section anew from .eh_frame.";
    OUTERMOST_DIFFERS = "SF073", Error, "1.4", "outermost frame, or not, otherwise than .eh_frame has it",
        "`.cfi_undefined` of the return address says that there is no caller. Versions 1 and 2 before errata 2 cannot say it, and their \
         assemblers write a row as if there were one.",
        "Unwinders go on into what is no frame. Version 3 can say it: `perfuse sframe from-eh-frame`.";
    NESTED_STATES = "SF074", Error, "1.4", "a state remembered within another was lost",
        "Assemblers of binutils 2.40 to 2.47 remember one state: after the outer `.cfi_restore_state` rows say what the inner one left.",
        "`perfuse sframe from-eh-frame` makes the section anew from .eh_frame, where it is right.";
    PLT_DIFFERS = "SF075", Error, "1.4", "rows of a PLT that are another PLT's",
        "Linkers write rows of PLTs themselves. GNU ld 2.44 to 2.47 takes those of a lazy PLT for `.plt.got`, whose stubs push nothing; 2.40 \
         takes them for the PLTs of `-z ibtplt`.",
        "Samples in these stubs are unwound wrongly. `perfuse sframe from-eh-frame` makes the section anew.";
    UNSAYABLE = "SF076", Error, "1.4", "rows for code that rows cannot describe",
        ".eh_frame has a rule there that no row has words for, so what the row says is something else.",
        "`perfuse sframe from-eh-frame` leaves the function out, so that unwinders take .eh_frame.";
    ROWS_MISSING = "SF077", Warning, "1.4", "a function that .eh_frame has rows for, and SFrame none",
        "Its entry is there, but no row holds at these addresses. Assemblers write such entries for signal frames they cannot translate.",
        "Unwinding from there needs .eh_frame.";
    SIGNAL_DIFFERS = "SF078", Info, "1.3.1", "entered for a signal, or not, otherwise than .eh_frame has it",
        "Whether a return address is looked up as it is or one byte before depends on it. Versions 1 and 2 have no word for it.",
        "Nothing has to be done.";
    KEY_DIFFERS = "SF079", Warning, "1.3.1", "signed with another key than .eh_frame has",
        "Which key signed a return address tells how it is authenticated; taking the signature off is the same for both.",
        "Nothing has to be done to unwind by it.";

    LINUX_REFUSES = "SF080", Info, "", "Linux would not unwind by it",
        "By the series for user space unwinding of January 2026, which is not merged: version 3, sorted, starts from their fields, no \
         auxiliary header, functions inside code, rows that ascend.",
        "Link with binutils 2.46 or newer; `perfuse.sframe` converts and merges.";
    GLIBC_REFUSES = "SF081", Info, "", "glibc 2.43 would not unwind by it",
        "Its backtrace() reads version 2 for its own machine, and takes DWARF otherwise.",
        "Nothing has to be done: DWARF is there as a rule.";
    LIBSFRAME_REFUSES = "SF082", Info, "", "libsframe 3 (binutils 2.46 and newer) would not read it, or not rightly",
        "It reads versions 2 and 3, and in version 2 without the flag PCREL finds only part of the functions.",
        "`perfuse.sframe` converts it to version 3.";
}
