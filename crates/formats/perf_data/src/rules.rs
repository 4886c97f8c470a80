//! The numbered rules of perf.data.

use perfuse_wire::rules;

rules! {
    TRUNCATED = "PD001", DataLoss, "perf.data-file-format: data", marks_end;
    UNFINISHED = "PD002", DataLoss, "perf.data-file-format: header";
    BAD_SIZE = "PD003", Error, "perf_event.h: perf_event_header";
    LOST_RECORDS = "PD004", DataLoss, "perf_event.h: PERF_RECORD_LOST";
    LOST_SAMPLES = "PD005", DataLoss, "perf_event.h: PERF_RECORD_LOST_SAMPLES";
    UNKNOWN_RECORD = "PD006", Warning, "perf_event.h: perf_event_type";
    NO_FEATURES = "PD007", Info, "perf.data-file-format: features";
    NOT_MONOTONIC = "PD008", Info, "perf_event.h: use_clockid";
    USER_STACKS = "PD009", Info, "perf_event.h: PERF_SAMPLE_STACK_USER";
    BAD_BODY = "PD010", Warning, "perf_event.h: perf_event_type";
    SECTION_OUTSIDE = "PD011", DataLoss, "perf.data-file-format: header";
    BAD_COMPRESSION = "PD012", DataLoss, "perf.data-file-format: PERF_RECORD_COMPRESSED";
    UNKNOWN_EVENT = "PD013", Warning, "perf_event.h: PERF_SAMPLE_ID";
    LATE_RECORDS = "PD014", Warning, "perf.data-file-format: PERF_RECORD_FINISHED_ROUND";
    MANY_INHERITED = "PD015", DataLoss, "perf_event.h: PERF_RECORD_FORK";
    NO_ATTRIBUTES = "PD016", Error, "perf_event.h: perf_event_attr";
    THROTTLED = "PD017", Warning, "perf_event.h: PERF_RECORD_THROTTLE";
    NO_TIME = "PD018", Warning, "perf_event.h: PERF_SAMPLE_TIME";
    UNTERMINATED = "PD019", Warning, "perf_event.h: PERF_RECORD_MMAP";
    AUX_DATA = "PD020", Info, "perf.data-file-format: PERF_RECORD_AUXTRACE";
    DEFERRED = "PD021", Warning, "perf_event.h: PERF_RECORD_CALLCHAIN_DEFERRED";
    TRAILING = "PD022", Warning, "perf.data-file-format: header";
    REUSED_PID = "PD023", Warning, "perf_event.h: PERF_RECORD_FORK";
    BAD_FEATURE = "PD024", DataLoss, "perf.data-file-format: features";
    MOVED_SECTIONS = "PD025", DataLoss, "perf.data-file-format: features";
    EMPTY_FEATURE = "PD026", Info, "perf.data-file-format: features";
    FILTERED_SAMPLES = "PD027", Info, "perf_event.h: PERF_RECORD_LOST_SAMPLES";
    AUX_LOST = "PD028", DataLoss, "perf_event.h: PERF_RECORD_AUX";
    TRACE_ERROR = "PD029", DataLoss, "event.h: perf_record_auxtrace_error";
    ONE_SIDED = "PD030", Warning, "perf_event.h: PERF_RECORD_SWITCH";
}
