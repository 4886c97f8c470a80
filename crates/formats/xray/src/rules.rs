//! Every way a log or profile departs from its specification, numbered: 00x the header, 01x buffers, 02x records, 03x order and
//! time, 04x events, 05x calls, 06x Basic mode, 07x Profiling mode.
//!
//! Sections are those of the specification of version 1, by their titles; what came later is called by its version.

use perfuse_wire::rules;

rules! {
    VERSION = "XR001", Error, "Header Section";
    FREQUENCY_ZERO = "XR002", Warning, "Header Section";
    FREQUENCY_WRONG = "XR003", Warning, "Header Section";
    HEADER_GARBAGE = "XR004", Info, "Header Section";
    NOTHING = "XR005", Warning, "Header Section";
    LOST = "XR010", DataLoss, "Format Grammar and Invariants";
    TRUNCATED = "XR011", DataLoss, "version 2", marks_end;
    EXTENTS_LONG = "XR012", Error, "version 2";
    EXTENTS_SHORT = "XR013", Error, "version 2";
    NO_EXTENTS = "XR014", Error, "version 2";
    STRIDE = "XR015", Warning, "Header Section";
    COPY = "XR016", DataLoss, "version 2";
    EMPTY_BUFFER = "XR017", Info, "version 2";
    STALE = "XR018", Info, "EndOfBuffer Records";
    HALF_EMPTY = "XR019", Info, "version 2";
    UNKNOWN_KIND = "XR020", Error, "Metadata Records";
    UNKNOWN_ACTION = "XR021", Error, "Function Records";
    CUT_RECORD = "XR022", Error, "Format Grammar and Invariants";
    RESERVED = "XR023", Info, "Metadata Records";
    NO_END = "XR024", Error, "EndOfBuffer Records";
    END_OF_BUFFER = "XR025", Warning, "version 2";
    LATER_KIND = "XR026", Error, "version 3";
    NEGATIVE_TID = "XR027", Warning, "NewBuffer Records";
    FORKED = "XR028", Warning, "version 3";
    ORDER = "XR030", Error, "Format Grammar and Invariants";
    NO_NEW_BUFFER = "XR031", Error, "NewBuffer Records";
    NO_WALL_TIME = "XR032", Error, "WallClockTime Records";
    NO_PID = "XR033", Error, "version 3";
    NO_CPU = "XR034", Error, "NewCpuId Records";
    CARRIED = "XR035", Warning, "NewCpuId Records";
    SECOND_NEW_BUFFER = "XR036", Error, "NewBuffer Records";
    TIME_BACK = "XR037", Warning, "TSCWrap Records";
    ROTATED = "XR038", DataLoss, "version 2";
    UNORDERED = "XR039", Warning, "Format Grammar and Invariants";
    OVERWRITTEN = "XR040", DataLoss, "CustomEventMarker Records";
    TYPED_CUT = "XR041", DataLoss, "version 5";
    EMPTY_EVENT = "XR042", Info, "CustomEventMarker Records";
    EVENT_SIZE = "XR043", Error, "CustomEventMarker Records";
    NO_ENTRY = "XR050", Info, "Function Record Order";
    NO_EXIT = "XR051", Info, "Function Record Order";
    UNWOUND = "XR052", Info, "Function Record Order";
    ORPHAN_ARGUMENT = "XR053", Error, "CallArgument Records";
    PLAIN_ENTRY = "XR054", Info, "CallArgument Records";
    ALIASES = "XR055", Warning, "Function Records";
    BASIC_TAIL = "XR060", DataLoss, "Basic mode", marks_end;
    BASIC_TYPE = "XR061", Error, "Basic mode";
    BASIC_KIND = "XR062", Error, "Basic mode";
    BASIC_ORPHAN = "XR063", Warning, "Basic mode";
    BASIC_COPIES = "XR064", Warning, "Basic mode";
    BASIC_BACK = "XR065", Info, "Basic mode";
    BASIC_UNWRITTEN = "XR066", DataLoss, "Basic mode";
    PROFILE_CUT = "XR070", DataLoss, "Profiling mode";
    PROFILE_BLOCK = "XR071", Error, "Profiling mode";
    PROFILE_SHORT = "XR072", Warning, "Profiling mode";
}
