//! Rules that are about no one format: compressed input, and recordings put together.

use perfuse_wire::rules;

rules! {
    CUT_STREAM = "IO001", DataLoss, "RFC 1952, RFC 8878",
        "the compressed file ends early or is damaged",
        "The gzip or zstd stream could not be unpacked to its end; what came before the damage was read.",
        "Copy the file again, or finish its download. The part that was unpacked can be used as it is.";
    GROWING = "IO002", Info, "",
        "the file is still being written",
        "It ends inside a record or a buffer, and a process has it open for writing, or it has grown since it was opened. What was \
         complete then was read.",
        "Nothing has to be done. Opening it again reads what has come since; `perfuse watch` does that every second.";
    NO_PROCESS = "FU001", Warning, "",
        "no process of the recording wrote this dump",
        "Neither the mapped files of the perf.data nor its process ids match the dump's header, so its code names nothing.",
        "Check that the dump and the perf.data are of the same run: `perfuse info` on both shows pids and times.";
    DUMP_MISSING = "FU002", Warning, "",
        "the dump of a process is not where the recording says",
        "A process mapped a jit-PID.dump file, which is how perf learns of it, but the file is not at that path.",
        "Name the dump, or the directory it is in, on the command line.";
    ALIGNED = "FU003", Info, "II",
        "the dump's times were put on the recording's clock",
        "perf.data and dump were not on one clock (`perf record` without `-k mono`, or time stamps of the processor). The \
         moment the dump was mapped is known on both clocks; samples bound the error, as code cannot run before it is made.",
        "Nothing has to be done. `perf record -k mono` makes it exact.";
    NAMESPACE = "FU004", Info, "III",
        "the process has another pid in its own namespace",
        "The dump carries the pid the process sees itself; the recording has the host's. They were matched by the mapped file.",
        "Nothing has to be done.";
    ANOTHER_RUN = "FU005", Warning, "",
        "the dump at the recorded path is of another run",
        "A file is where the recording says, but its header's process or its times are not this recording's: the path was used again.",
        "Name the right dump on the command line; keep dumps beside their perf.data.";
    NOT_ALIGNED = "FU006", Warning, "II",
        "the dump's times could not be put on the recording's clock",
        "The clocks differ and no moment is known on both, so code is taken to have been there all the time; where addresses were \
         used again the last code is shown.",
        "Record with `perf record -k mono`.";
    PROGRAM_FOUND = "FU007", Info, "",
        "functions are named by a program found by the log's name",
        "A call trace has numbers for functions. XRay names its logs xray-log.PROGRAM.XXXXXX, and a file of that name with an \
         instrumentation map is beside the log, or in a directory given for symbols.",
        "Nothing has to be done if it is the program that was recorded, not one built since; else give that with `--map`.";
    NO_PROGRAM = "FU008", Info, "",
        "functions have numbers instead of names",
        "A call trace has numbers for functions, and no instrumentation map was given or found that has their names.",
        "Give the program that was recorded with `--map FILE`, and its libraries with `--map OBJECT=FILE`.";
    CUT_STACKS = "FU009", Info, "perf_event.h: PERF_SAMPLE_STACK_USER",
        "stacks end where the copy of them does",
        "perf record --call-graph dwarf copies the innermost part of each stack, 8 KiB unless it is told otherwise. Callers that \
         lie farther out cannot be found.",
        "Record with more: `perf record --call-graph dwarf,32768`; 65528 bytes is the most.";
    LOST_STACKS = "FU010", Warning, "",
        "stacks could not be unwound to their end",
        "Nothing tells how to leave a function: its program or library is not here, or another version of it, or it has no \
         unwinding information and keeps no frame pointer; or the information does not fit the stack. The frames found so far \
         are shown.",
        "Give the directory that has the recorded programs and libraries: `--symbols DIR`. The report says which are not found.";
    GIVEN_TWICE = "FU011", Info, "",
        "a file was given more than once",
        "The same file was named twice, or named and found in a directory that was named as well. Its events are counted once.",
        "Nothing has to be done.";
}
