//! Every way a dump departs from its specification, numbered: 00x the header, 01x the sequence of records, 02x-03x
//! JIT_CODE_LOAD, 04x JIT_CODE_MOVE, 05x-06x JIT_CODE_DEBUG_INFO, 07x JIT_CODE_UNWINDING_INFO, 08x samply's records.

use perfuse_wire::rules;

rules! {
    VERSION = "JD001", Warning, "III";
    HEADER_SIZE = "JD002", Warning, "III";
    RESERVED_FLAGS = "JD003", Warning, "III";
    ARCH_TIMESTAMP = "JD004", Info, "III";
    MACHINE = "JD006", Info, "III";
    HEADER_CLOCK = "JD007", Info, "III";
    PAD = "JD008", Info, "III";
    SECOND_HEADER = "JD009", Warning, "III";
    TRUNCATED = "JD010", DataLoss, "IV", marks_end;
    LOST = "JD011", Error, "IV";
    RECORD_SIZE = "JD012", Error, "IV";
    UNKNOWN_RECORD = "JD013", Info, "IV";
    TIME_BACK = "JD014", Info, "IV";
    TIME_ZERO = "JD015", Warning, "IV";
    AFTER_CLOSE = "JD016", Warning, "VIII";
    SHORT_RECORD = "JD017", Error, "IV";
    NO_RECORDS = "JD018", Warning, "IV";
    NAME_END = "JD021", Error, "V";
    CODE_SIZE = "JD022", Error, "V";
    LOAD_PADDING = "JD023", Info, "V";
    VMA = "JD024", Info, "V";
    NAME_ENCODING = "JD025", Info, "V";
    NAME_NOT_TEXT = "JD026", Warning, "V";
    LONG_NAME = "JD027", Info, "V";
    CODE_INDEX = "JD028", Warning, "V";
    REUSED = "JD029", Info, "V";
    WIDE_TID = "JD030", Info, "V";
    FOREIGN_PID = "JD031", Warning, "V";
    EMPTY_CODE = "JD032", Info, "V";
    STRANGE_TID = "JD034", Info, "V";
    MOVE_OF_NOTHING = "JD040", Error, "VI";
    MOVE_CONTRADICTS = "JD041", Error, "VI";
    MOVE_VMA = "JD042", Info, "VI";
    ENTRIES_MISSING = "JD051", DataLoss, "VII";
    SKEW = "JD052", Warning, "VII";
    CORRUPT_NAMES = "JD053", Warning, "VII";
    LOST_NAMES = "JD054", DataLoss, "VII";
    BATCHED = "JD055", Warning, "VII";
    DEBUG_AFTER = "JD056", Warning, "VII";
    DEBUG_ORPHAN = "JD057", Warning, "VII";
    REPEATED_NAME = "JD058", Info, "VII";
    LINE_ZERO = "JD059", Info, "VII";
    TERMINATOR = "JD060", Info, "VII";
    UNSORTED = "JD061", Info, "VII";
    DUPLICATE_ADDRESS = "JD062", Info, "VII";
    BEFORE_CODE = "JD063", Info, "VII";
    PAST_CODE = "JD064", Warning, "VII";
    DEBUG_PADDING = "JD065", Warning, "VII";
    DEBUG_REPLACED = "JD066", Warning, "VII";
    BYTECODE_OFFSETS = "JD067", Warning, "VII";
    UNWIND_SIZE = "JD070", Error, "IX";
    FRAME_FIRST = "JD071", Info, "IX";
    HEADER_FIRST = "JD072", Warning, "IX";
    HEADER_ONLY = "JD073", Info, "IX";
    MAPPED_SIZE = "JD074", Info, "IX";
    UNWIND_UNREADABLE = "JD075", Warning, "IX";
    UNWIND_SHARED = "JD076", Info, "IX";
    INLINE_INVALID = "JD080", Error, "samply";
    INLINE_DIALECT = "JD081", Info, "samply";
    FOREIGN_PAYLOAD = "JD082", Info, "samply";
}
