//! Rules that are not of one format: compressed input, and joining recordings.

use perfuse_wire::rules;

rules! {
    CUT_STREAM = "IO001", DataLoss, "RFC 1952, RFC 8878", marks_end;
    GROWING = "IO002", Info, "";
    NO_PROCESS = "FU001", Warning, "";
    DUMP_MISSING = "FU002", Warning, "";
    ALIGNED = "FU003", Info, "II";
    NAMESPACE = "FU004", Info, "III";
    ANOTHER_RUN = "FU005", Warning, "";
    NOT_ALIGNED = "FU006", Warning, "II";
    PROGRAM_FOUND = "FU007", Info, "";
    NO_PROGRAM = "FU008", Info, "";
    CUT_STACKS = "FU009", Info, "perf_event.h: PERF_SAMPLE_STACK_USER";
    LOST_STACKS = "FU010", Warning, "";
    GIVEN_TWICE = "FU011", Info, "";
    OBJECT_ORDER = "FU012", Warning, "";
    OBJECTS_UNCERTAIN = "FU013", Warning, "";
    UNVERIFIED = "FU014", Info, "";
    CHANGED_PROGRAM = "FU015", Warning, "";
    UNSEEN_DUMP = "FU016", Warning, "";
    UNUSED_DEBUG_INFO = "FU020", Warning, "";
    FOREIGN_PERF_MAP = "FU021", Warning, "";
    DEBUGINFOD = "FU022", Warning, "";
    UNCERTAIN_PROCESS = "FU023", Warning, "";
    FORKED_LOG = "FU024", Info, "";
    EARLIER_PERF_MAP = "FU025", Warning, "";
}
