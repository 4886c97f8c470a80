//! Every way a log departs from what its data version says, numbered: 00x the header, 01x buffers, 02x-03x events, 04x names,
//! 05x calls and threads, 06x heap shots.

use perfuse_wire::rules;

rules! {
    HEADER_FLAGS = "ML001", Warning, "header format";
    NO_START = "ML002", Info, "header format";
    HEADER_TEXT = "ML003", Warning, "header format";
    FOREIGN = "ML004", Warning, "header format";
    EARLY_LAYOUT = "ML005", Info, "event format";
    CUT = "ML010", DataLoss, "buffer format", marks_end;
    HEADER_CUT = "ML011", DataLoss, "buffer header format", marks_end;
    BUFFER_LENGTH = "ML012", DataLoss, "buffer header format";
    NO_BUFFER = "ML013", DataLoss, "buffer header format";
    EVENT = "ML014", DataLoss, "event format";
    NO_EVENTS = "ML015", Warning, "buffer format";
    EMPTY_BUFFER = "ML016", Info, "buffer format";
    BUFFER_ORDER = "ML017", Info, "buffer format";
    UNFINISHED = "ML018", DataLoss, "buffer format", marks_end;
    NEGATIVE_TIME = "ML020", Info, "event format";
    EVENT_FLAGS = "ML021", Warning, "event format";
    GENERATION = "ML022", Warning, "type GC format";
    GC_PHASE = "ML023", Warning, "type GC format";
    ODD_MOVES = "ML024", Error, "type GC format";
    HANDLE_TYPE = "ML025", Warning, "type GC format";
    CLAUSE_TYPE = "ML026", Warning, "type exception format";
    UNKNOWN_COUNTER = "ML027", Warning, "type sample format";
    NO_CODE = "ML030", Info, "type method format";
    IMAGE_UNLOAD = "ML031", Info, "type metadata format";
    COVERAGE = "ML032", Info, "type coverage format";
    LATE_NAMES = "ML040", Info, "type metadata format";
    UNKNOWN_CLASS = "ML041", Warning, "type metadata format";
    UNKNOWN_METHOD = "ML042", Warning, "type method format";
    THREAD_REUSED = "ML044", Info, "type metadata format";
    LEAVE_WITHOUT_ENTER = "ML050", Warning, "type method format";
    OPEN_CALLS = "ML051", Info, "type method format";
    STACKS_OF_CALLS = "ML052", Info, "type method format";
    OUTSIDE_SHOT = "ML060", Error, "type heap format";
    OPEN_SHOT = "ML061", DataLoss, "type heap format";
}
