//! Every way a section departs from its specification, numbered: 00x-01x the header, 02x-03x functions, 04x-05x rows, 06x what the
//! section is in, 07x where .eh_frame says something else, 08x who would not take it. Section numbers are those of version 1's document, which later ones keep.

use perfuse_wire::rules;

rules! {
    UNREAD = "SF001", Error, "1.1";
    VERSION = "SF002", Error, "1.1";
    FLAGS = "SF003", Error, "1.1";
    ABI = "SF004", Error, "1.2";
    BYTE_ORDER = "SF005", Error, "1.1";
    AUXILIARY = "SF006", Warning, "1.2";
    ENTRIES_PAST_END = "SF007", Error, "1.2";
    ROWS_PAST_END = "SF008", Error, "1.2";
    ENTRIES_OVER_ROWS = "SF009", Error, "1.2";
    NUM_ROWS = "SF010", Warning, "1.2";
    EMPTY = "SF011", Info, "1.2";
    GAP = "SF012", Info, "1.2";
    TRAILING = "SF013", Warning, "1.2";

    NOT_SORTED = "SF020", Error, "1.3";
    UNSORTED = "SF021", Warning, "1.3";
    ROWS_OUTSIDE = "SF022", Error, "1.3";
    FRE_TYPE = "SF023", Error, "1.3.3";
    FDE_TYPE = "SF024", Error, "1.3";
    UNUSED_BITS = "SF025", Warning, "1.3.1";
    NO_BLOCK = "SF026", Error, "1.3.2";
    NO_SIZE = "SF027", Info, "1.3";
    NO_ROWS = "SF028", Warning, "1.3";
    OVERLAP = "SF029", Warning, "1.3";
    OUTSIDE_CODE = "SF030", Warning, "1.3";
    TOO_MANY_ROWS = "SF031", Error, "1.3";

    ROW_PAST_END = "SF040", Error, "1.4";
    WORD_SIZE = "SF041", Error, "1.4.1";
    MEANINGLESS = "SF042", Error, "1.4";
    NOT_ASCENDING = "SF043", Error, "1.4";
    ROW_PAST_FUNCTION = "SF044", Error, "1.4";
    LATE_FIRST_ROW = "SF045", Warning, "1.4";
    SAME_ROW = "SF046", Info, "1.4";
    OUTERMOST_EARLY = "SF047", Warning, "1.4";
    MANGLED = "SF048", Warning, "1.4.1";

    NOT_MERGED = "SF060", Warning, "1";
    SEVERAL_VERSIONS = "SF061", Warning, "1";
    UNSAID_BASE = "SF062", Info, "1.3";
    NOT_RELOCATED = "SF063", Warning, "ELF";
    RELOCATION = "SF064", Warning, "ELF";
    SEGMENT_SIZE = "SF065", Info, "ELF";

    NOT_COVERED = "SF066", Info, "";
    CUT = "SF067", DataLoss, "ELF";

    CFA_DIFFERS = "SF070", Error, "1.4";
    RA_DIFFERS = "SF071", Error, "1.4";
    FP_DIFFERS = "SF072", Error, "1.4";
    OUTERMOST_DIFFERS = "SF073", Error, "1.4";
    NESTED_STATES = "SF074", Error, "1.4";
    PLT_DIFFERS = "SF075", Error, "1.4";
    UNREPRESENTABLE = "SF076", Error, "1.4";
    ROWS_MISSING = "SF077", Warning, "1.4";
    SIGNAL_DIFFERS = "SF078", Info, "1.3.1";
    KEY_DIFFERS = "SF079", Warning, "1.3.1";

    LINUX_REFUSES = "SF080", Info, "";
    GLIBC_REFUSES = "SF081", Info, "";
    LIBSFRAME_REFUSES = "SF082", Info, "";
}
