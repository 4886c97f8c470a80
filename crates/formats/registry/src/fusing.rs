//! Rules that are not of one format: compressed input, and joining recordings.

use perfuse_wire::rules;

rules! {
    CUT_STREAM = "IO001", DataLoss, "RFC 1952, RFC 8878",
        "the compressed file ends early or is damaged",
        "The gzip or zstd stream could not be unpacked to its end; the data before the damage was read.",
        "Copy the file again, or finish its download. The part that was unpacked can be used as it is.";
    GROWING = "IO002", Info, "",
        "the file is still being written",
        "It ends inside a record or a buffer, and a process has it open for writing, or it has grown since it was opened. The \
         complete records were read.",
        "Nothing has to be done. Opening the file again reads the records written since; `perfuse watch` does that every second.";
    NO_PROCESS = "FU001", Warning, "",
        "no process of the recording wrote this dump",
        "Neither the mapped files of the perf.data nor its process ids match the dump's header, so its code names no samples.",
        "Check that the dump and the perf.data are of the same run: `perfuse info` on both shows pids and times.";
    DUMP_MISSING = "FU002", Warning, "",
        "the dump of a process is missing at its recorded path",
        "A process mapped a jit-PID.dump file, which is how perf learns of it, but the file is not at that path.",
        "Name the dump, or the directory it is in, on the command line.";
    ALIGNED = "FU003", Info, "II",
        "the dump's times were put on the recording's clock",
        "perf.data and dump were not on one clock (`perf record` without `-k mono`, or time stamps of the processor). The \
         time at which the dump was mapped is known on both clocks, or the first sample of code that a log created; samples bound \
         the error, as code cannot run before it is created.",
        "Nothing has to be done. `perf record -k mono` makes it exact.";
    NAMESPACE = "FU004", Info, "III",
        "the process has another pid in its own namespace",
        "The dump contains the pid in the process's own namespace, and the recording that of the host. They were matched by the mapped file.",
        "Nothing has to be done.";
    ANOTHER_RUN = "FU005", Warning, "",
        "the dump at the recorded path is of another run",
        "The file at the recorded path has the process id or the times of another run: the path was used again.",
        "Name the right dump on the command line; keep dumps beside their perf.data.";
    NOT_ALIGNED = "FU006", Warning, "II",
        "the dump's times could not be put on the recording's clock",
        "The clocks differ and no time is known on both. Code of a dump is assumed to exist for the whole recording, and the last \
         code at an address is shown; durations in logs are not affected.",
        "Record with `perf record -k mono`.";
    PROGRAM_FOUND = "FU007", Info, "",
        "functions are named by a program found by the log's name",
        "A call trace identifies functions by numbers. XRay names its logs xray-log.PROGRAM.XXXXXX, and a file of that name with an \
         instrumentation map is beside the log, or in a directory given for symbols.",
        "Nothing has to be done if it is the recorded program, not one built since; else give the recorded one with `--map`.";
    NO_PROGRAM = "FU008", Info, "",
        "functions have numbers instead of names",
        "A call trace identifies functions by numbers, and no instrumentation map with their names was given or found.",
        "Give the program that was recorded with `--map FILE`, and its libraries with `--map OBJECT=FILE`.";
    CUT_STACKS = "FU009", Info, "perf_event.h: PERF_SAMPLE_STACK_USER",
        "stacks end where the copy of the stack ends",
        "perf record --call-graph dwarf copies the innermost part of each stack, 8 KiB by default. Callers \
         beyond it cannot be found.",
        "Record a larger part: `perf record --call-graph dwarf,32768`; 65528 bytes is the most.";
    LOST_STACKS = "FU010", Warning, "",
        "stacks could not be unwound completely",
        "There is no unwinding information for a function (its program or library is missing or of another version, or has none and \
         keeps no frame pointer), or the information contradicts the stack. The frames found so far are shown.",
        "Give the directory that has the recorded programs and libraries: `--symbols DIR`. The report says which are not found.";
    GIVEN_TWICE = "FU011", Info, "",
        "a file was given more than once",
        "The same file was named twice, or named and found in a directory that was named as well. Its events are counted once.",
        "Nothing has to be done.";
}
