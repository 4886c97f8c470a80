"""What each rule about compressed files and joining recordings means, and what to do."""

from perfuse.diagnostics import Explanation

RULES: dict[str, Explanation] = {
    "IO001": Explanation(
        title="the compressed file ends early or is damaged",
        meaning="The gzip or zstd stream could not be unpacked to its end; the data before the damage was read.",
        action="Copy the file again, or finish its download. The part that was unpacked is usable.",
    ),
    "IO002": Explanation(
        title="the file is still being written",
        meaning=(
            "It ends inside a record or a buffer, and a process has it open for writing, or it has grown since it was "
            "opened. The complete records were read."
        ),
        action=(
            "No action is needed. Opening the file again reads the records written since; `perfuse watch` does that "
            "every second."
        ),
    ),
    "FU001": Explanation(
        title="no process of the recording wrote this dump",
        meaning=(
            "Neither the mapped files of the perf.data nor its process ids match the dump's header, or a process with "
            "that pid ended its dump before the recording, in which another one began its own, or began it after the "
            "recording. The dump names no samples."
        ),
        action=(
            "Check that the dump and the perf.data are of the same run: `perfuse info` on both shows pids and times."
        ),
    ),
    "FU002": Explanation(
        title="the dump of a process is missing at its recorded path",
        meaning=(
            "A process mapped a jit-PID.dump file (perf detects dumps by this mapping), but the file is not at that "
            "path."
        ),
        action="Name the dump, or the directory it is in, on the command line.",
    ),
    "FU003": Explanation(
        title="the dump's times were put on the recording's clock",
        meaning=(
            "perf.data and dump use different clocks (`perf record` without `-k mono`, or time stamps of the "
            "processor). The time at which the dump was mapped is known on both clocks, or the first sample of code "
            "that a log created; samples bound the error, since code cannot run before it is created."
        ),
        action="No action is needed. `perf record -k mono` makes it exact.",
    ),
    "FU004": Explanation(
        title="the process has another pid in its own namespace",
        meaning=(
            "The dump contains the pid in the process's own namespace, and the recording that of the host. They were "
            "matched by the mapped file."
        ),
        action="No action is needed.",
    ),
    "FU005": Explanation(
        title="the dump at the recorded path is of another run",
        meaning="The file at the recorded path has the process id or the times of another run: the path was reused.",
        action="Name the right dump on the command line; keep dumps beside their perf.data.",
    ),
    "FU006": Explanation(
        title="the dump's times could not be put on the recording's clock",
        meaning=(
            "The clocks differ and no time is known on both. Code of a dump is assumed to exist for the whole "
            "recording, and the last code at an address is shown; durations in logs are not affected."
        ),
        action="Record with `perf record -k mono`.",
    ),
    "FU007": Explanation(
        title="functions are named by a program found by the log's name",
        meaning=(
            "A call trace identifies functions by numbers. XRay names its logs xray-log.PROGRAM.XXXXXX, and a file of "
            "that name with an instrumentation map is beside the log, or in a directory given for symbols."
        ),
        action=(
            "No action is needed if it is the recorded program, not one built since; otherwise name the recorded one "
            "with `--map`."
        ),
    ),
    "FU008": Explanation(
        title="functions have numbers instead of names",
        meaning=(
            "A call trace identifies functions by numbers, and no instrumentation map with their names was given or "
            "found."
        ),
        action="Name the program that was recorded with `--map FILE`, and its libraries with `--map OBJECT=FILE`.",
    ),
    "FU009": Explanation(
        title="stacks end where the copy of the stack ends",
        meaning=(
            "perf record --call-graph dwarf copies the innermost part of each stack, 8 KiB by default. Callers beyond "
            "it cannot be found."
        ),
        action="Record a larger part: `perf record --call-graph dwarf,32768`; the maximum is 65528 bytes.",
    ),
    "FU010": Explanation(
        title="stacks could not be unwound completely",
        meaning=(
            "There is no unwinding information for a function (its program or library is missing or of another "
            "version, or has neither that nor frame pointers), or the information contradicts the stack, or the "
            "program is of a machine that is not supported, such as 32-bit programs on 64-bit machines. The frames "
            "found so far are shown."
        ),
        action=(
            "Name the directory that has the recorded programs and libraries: `--symbols DIR`. The report lists those "
            "that are missing."
        ),
    ),
    "FU011": Explanation(
        title="a file was given more than once",
        meaning=(
            "The same file was named twice, or named and found in a directory that was named as well. Its events are "
            "counted once."
        ),
        action="No action is needed.",
    ),
    "FU012": Explanation(
        title="libraries have other numbers than the program gave them",
        meaning=(
            "XRay numbers shared objects when their constructors run: libraries before those that need them, and "
            "otherwise the last one in link order first. The numbers given with `--map N=FILE` are in another order, "
            "or give libraries to objects of which the log has more functions: functions have the names of others."
        ),
        action=(
            "Give the files without numbers (`--map PROGRAM --map LIBRARY ...`) or with those of the message. Numbers "
            "of a program of another C library than glibc, or that opens libraries with `dlopen`, may be right."
        ),
    ),
    "FU013": Explanation(
        title="the numbers of libraries could be exchanged",
        meaning=(
            "The program does not need these libraries, or was not given: they are numbered in the order in which they "
            "were loaded, which no file states. Each has enough functions for what the log has of the other."
        ),
        action="Check a function whose callers you know; exchange the numbers of `--map N=FILE` if its name is wrong.",
    ),
    "FU014": Explanation(
        title="programs were matched by their path alone",
        meaning=(
            "The recording has no build ids of these files, as one written to a pipe. Nothing shows that the files at "
            "these paths are those that ran. The message has their size and when they were last changed."
        ),
        action="Record to a file (`perf record -o perf.data`), or keep the programs as they were.",
    ),
    "FU015": Explanation(
        title="a program changed after it was recorded",
        meaning=(
            "The recording has no build id of this file, and the file at its path was changed later than the recording "
            "was written. Names and lines from it may be those of other functions."
        ),
        action="Name the directory that has the recorded program: `--symbols DIR`; or record again, to a file.",
    ),
    "FU016": Explanation(
        title="no sample has code of this dump on its stack",
        meaning=(
            "The process wrote the dump and was sampled, but none of its stacks leads through the generated code. "
            "Generated code that calls functions without frame pointers disappears from stacks that `perf record -g` "
            "walks: CPython 3.12 and later calls every Python function through such code."
        ),
        action=(
            "Record with `perf record --call-graph dwarf` and, for CPython 3.13 and later, `-X perf_jit`; or use a "
            "runtime that is built with `-fno-omit-frame-pointer -mno-omit-leaf-frame-pointer`."
        ),
    ),
    "FU020": Explanation(
        title="debug information of a program is not used, or not all of it",
        meaning=(
            "It is damaged, or a compressed section states that it unpacks to more than 250 times its size, more than "
            "4 GiB, or more than `--max-unpacked`. Functions have the names of the symbol table, without lines and "
            "inlined calls. Or the program was compiled with `-gsplit-dwarf`, and its `.dwo` files or their package "
            "(`.dwp`) were not found: functions have names and lines, but inlined calls are missing."
        ),
        action=(
            "Name the directory of an undamaged copy, or of the `.dwo` and `.dwp` files: `--symbols DIR`; or allow "
            "more: `--max-unpacked 8G`."
        ),
    ),
    "FU021": Explanation(
        title="a perf map of another user is not used",
        meaning=(
            "Everybody can write to `/tmp`. As perf does, perfuse reads a `perf-PID.map` that is there or beside a "
            "recording only if it belongs to the user who runs perfuse or to root."
        ),
        action="If you trust its owner, name its directory: `--symbols /tmp`.",
    ),
    "FU022": Explanation(
        title="a debuginfod server did not answer",
        meaning=(
            "A server that was named with `--debuginfod` could not be reached, refused, sent less than it announced, "
            "or has a file that is larger than allowed. Files that it does not have are not reported."
        ),
        action="Try again, name another server, or raise the limit: `DEBUGINFOD_MAXSIZE=BYTES`.",
    ),
    "FU023": Explanation(
        title="which process wrote this dump or log is uncertain",
        meaning=(
            "Several processes mapped a dump of this name, as in containers that have the same pids inside, and the "
            "recording is on another clock than the dump. Or several recordings have a process with the pid of a log, "
            "and times do not show which one wrote it. Names in JIT code of these processes may be of another one."
        ),
        action="Record with `perf record -k mono`, or with `perfuse record`, which notes the process of each dump.",
    ),
    "FU024": Explanation(
        title="two logs have the same events",
        meaning=(
            "`fork` copies the buffers in which XRay collects events, and both processes write them: the log of a "
            "forked process begins with what its parent did before. These events are counted once. What the forked "
            "process did has the pid and the threads of its parent, up to the end of the copied buffers; calls that "
            "were open when it was forked have no start there. Of two copies of one log, one is counted."
        ),
        action="No action is needed.",
    ),
    "FU025": Explanation(
        title="a perf map from before its process is not used",
        meaning=(
            "The system gives a pid to another process when the first has ended, and `/tmp/perf-PID.map` stays. The "
            "file was last written before the process of the recording began, so its names are those of an earlier "
            "process. perf would use them. When a process began is known where it began while it was recorded with "
            "`-k mono`."
        ),
        action=(
            "If it is the map of this process, and a copy has another time than the original, name its directory: "
            "`--symbols DIR`. Else record again, with the map collected by `perfuse record`."
        ),
    ),
}
