//! The numbered rules of perf.data.

use perfuse_wire::rules;

rules! {
    TRUNCATED = "PD001", DataLoss, "perf.data-file-format: data", "the file ends inside a record or before its records do",
        "The recorder was killed, the disk was full, or a copy was cut. Every whole record before this place was read.",
        "Record again, or copy the file again; stop perf with Ctrl-C or SIGTERM, not SIGKILL.";
    UNFINISHED = "PD002", DataLoss, "perf.data-file-format: header", "the size of the records is 0: the recording was not finished",
        "perf writes the size, the build ids and the feature sections when it stops. It was killed or is still running. \
         The records up to the end of the file were read; perf itself refuses or shows an empty file.",
        "Stop perf with Ctrl-C or SIGTERM. Names of events and of the command are not known for this file.";
    BAD_SIZE = "PD003", Error, "perf_event.h: perf_event_header", "a record is smaller than its own header",
        "There is no way to find the next record, so nothing after this place was read.",
        "The file was damaged or overwritten here; record again.";
    LOST_RECORDS = "PD004", DataLoss, "perf_event.h: PERF_RECORD_LOST", "the kernel lost records",
        "perf did not empty the buffer in time. Lost records are samples mostly, but mappings and thread names may be among \
         them, and then later samples cannot be named.",
        "Record with larger buffers (-m 16M), a lower rate (-F), or without copies of the stack (--call-graph fp).";
    LOST_SAMPLES = "PD005", DataLoss, "perf_event.h: PERF_RECORD_LOST_SAMPLES", "samples were dropped",
        "The hardware, the kernel or perf's filters dropped samples; shares of time may be off.",
        "Record at a lower rate (-F).";
    UNKNOWN_RECORD = "PD006", Warning, "perf_event.h: perf_event_type", "records of unknown types",
        "A newer kernel or perf wrote them. They are counted and kept, and nothing else is known of them.",
        "Nothing, unless something you expect is missing.";
    NO_FEATURES = "PD007", Info, "perf.data-file-format: features", "no feature sections",
        "The names of events and of the command, the machine and the build ids are not recorded. Pipe-mode streams of old perf \
         versions and unfinished files have none.",
        "Nothing; files are then matched by path only.";
    NOT_MONOTONIC = "PD008", Info, "perf_event.h: use_clockid", "not recorded on CLOCK_MONOTONIC",
        "Runtimes write JITDUMP files with CLOCK_MONOTONIC. Times of this recording must be aligned with theirs by estimate, \
         and perf inject refuses.",
        "Where JIT code matters, record with -k mono.";
    USER_STACKS = "PD009", Info, "perf_event.h: PERF_SAMPLE_STACK_USER", "stacks were copied, to be unwound later",
        "Recorded with --call-graph dwarf: the user part of each call chain is made from registers and a copy of the stack, and \
         from what the programs and libraries say of unwinding.",
        "Nothing, on the recorded machine. On another one, give the directory that has its programs and libraries: --symbols DIR.";
    BAD_BODY = "PD010", Warning, "perf_event.h: perf_event_type", "a record's body does not hold its fields",
        "The record is shorter than its fields need or a count in it is larger than its bytes. It is listed and left out of \
         tables it cannot be decoded for.",
        "If there are many, the attribute of the event is not the one it was recorded with.";
    SECTION_OUTSIDE = "PD011", DataLoss, "perf.data-file-format: header", "a section lies outside the file",
        "Attributes, event ids or feature sections are cut off.",
        "Copy the file again, or record again.";
    BAD_COMPRESSION = "PD012", DataLoss, "perf.data-file-format: PERF_RECORD_COMPRESSED", "packed records cannot be unpacked",
        "All packed records of a file are one zstd stream, so nothing after this place can be unpacked.",
        "Record again, or without -z.";
    UNKNOWN_EVENT = "PD013", Warning, "perf_event.h: PERF_SAMPLE_ID", "a sample's event id belongs to no attribute",
        "It was decoded and named as if of the first event.",
        "The id lists of the file are damaged, or two recordings were joined by hand.";
    LATE_RECORDS = "PD014", Warning, "perf.data-file-format: PERF_RECORD_FINISHED_ROUND", "records come later than their round allows",
        "perf would show them out of order. All times were sorted whole, which takes memory for each record.",
        "Nothing for this file; clocks of the processors may differ.";
    MANY_INHERITED = "PD015", DataLoss, "perf_event.h: PERF_RECORD_FORK", "too many inherited mappings",
        "Forked processes inherit the mappings of their parents. Past two million rows they are left out, and addresses in \
         such processes stay unnamed.",
        "Record fewer processes.";
    NO_ATTRIBUTES = "PD016", Error, "perf_event.h: perf_event_attr", "no event attribute can be read",
        "Attributes say what fields samples have; without one no sample can be decoded.",
        "Record again.";
    THROTTLED = "PD017", Warning, "perf_event.h: PERF_RECORD_THROTTLE", "an event was throttled",
        "Samples took more of the processor's time than the kernel allows, so none were taken for a while.",
        "Record at a lower rate (-F), or raise kernel.perf_cpu_time_max_percent.";
    NO_TIME = "PD018", Warning, "perf_event.h: PERF_SAMPLE_TIME", "samples have no time",
        "They cannot be put in order with mappings or with JIT code whose addresses are used again.",
        "Record with -T, or from a process or command rather than a bare counter.";
    UNTERMINATED = "PD019", Warning, "perf_event.h: PERF_RECORD_MMAP", "a name has no NUL",
        "The rest of the record was taken as the name.",
        "Nothing, if the name looks right.";
    AUX_DATA = "PD020", Info, "perf.data-file-format: PERF_RECORD_AUXTRACE", "instruction traces are not decoded",
        "Intel PT, Arm CoreSight and the like record in a format of the processor.",
        "Use perf script --itrace or perf report with this file.";
    DEFERRED = "PD021", Warning, "perf_event.h: PERF_RECORD_CALLCHAIN_DEFERRED", "call chains continue in other records",
        "The user part of these call chains was taken later and is not joined with its samples.",
        "Record without --call-graph ...,defer.";
}
