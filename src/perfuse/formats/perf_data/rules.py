"""What each rule about perf.data means, and what to do."""

from perfuse.diagnostics import Explanation

RULES: dict[str, Explanation] = {
    "PD001": Explanation(
        title="the file ends inside a record or before its records do",
        meaning=(
            "The recorder was killed, the disk was full, or a copy was cut. Every complete record before this offset "
            "was read."
        ),
        action="Record again, or copy the file again; stop perf with Ctrl-C or SIGTERM, not SIGKILL.",
    ),
    "PD002": Explanation(
        title="the size of the records is 0: the recording was not finished",
        meaning=(
            "perf writes the size, the build ids and the feature sections when it stops. It was killed or is still "
            "running. The records up to the end of the file were read; perf itself refuses or shows an empty file."
        ),
        action="Stop perf with Ctrl-C or SIGTERM. Names of events and of the command are not known for this file.",
    ),
    "PD003": Explanation(
        title="bytes that are not a record",
        meaning=(
            "The size or the type of a record is not one, or the record ends past the others. Reading continued at the "
            "next offset from which records follow each other; the message states how many bytes were skipped. perf "
            "stops here."
        ),
        action="The file was damaged or overwritten here; record again. `perfuse repair` leaves the bytes out.",
    ),
    "PD004": Explanation(
        title="the kernel lost records",
        meaning=(
            "perf did not empty the buffer in time. Lost records are samples mostly, but mappings and thread names "
            "may be among them, and then later samples cannot be named."
        ),
        action=(
            "Record with larger buffers (-m 16M), a lower rate (-F), or without copies of the stack (--call-graph fp)."
        ),
    ),
    "PD005": Explanation(
        title="samples were dropped",
        meaning="The hardware, the kernel or perf's filters dropped samples; shares of time may be off.",
        action="Record at a lower rate (-F).",
    ),
    "PD006": Explanation(
        title="unknown record types",
        meaning="A newer kernel or perf wrote them. They are counted and preserved; their content is not decoded.",
        action="No action is needed unless expected data is missing.",
    ),
    "PD007": Explanation(
        title="no feature sections",
        meaning=(
            "The names of events and of the command, the machine and the build ids are not recorded. Pipe-mode "
            "streams of old perf versions and unfinished files have none."
        ),
        action="No action is needed; files are then matched by path only.",
    ),
    "PD008": Explanation(
        title="not recorded on CLOCK_MONOTONIC",
        meaning=(
            "Runtimes write JITDUMP files with CLOCK_MONOTONIC. Times of this recording must be aligned with theirs "
            "by estimate, and perf inject refuses."
        ),
        action="Where JIT code matters, record with -k mono.",
    ),
    "PD009": Explanation(
        title="stacks were copied for later unwinding",
        meaning=(
            "Recorded with --call-graph dwarf: the user part of each call chain is made from registers and a copy of "
            "the stack, and from the unwinding information of the programs and libraries."
        ),
        action=(
            "No action is needed on the recorded machine. On another one, give the directory that has its programs "
            "and libraries: --symbols DIR."
        ),
    ),
    "PD010": Explanation(
        title="a record is too short for its fields",
        meaning=(
            "The record is shorter than its fields need or a count in it is larger than its bytes. It is listed, and "
            "omitted from tables that need the fields."
        ),
        action=(
            "If there are many, the attribute of the event is not the one it was recorded with. `perfuse repair` omits "
            "the records."
        ),
    ),
    "PD011": Explanation(
        title="a section is outside the file",
        meaning="Attributes, event ids or feature sections are cut off.",
        action="Copy the file again, or record again. `perfuse repair` leaves such feature sections out.",
    ),
    "PD012": Explanation(
        title="packed records cannot be unpacked",
        meaning="All packed records of a file are one zstd stream, so nothing after this offset can be unpacked.",
        action="Record again, or without -z.",
    ),
    "PD013": Explanation(
        title="an event id belongs to no attribute",
        meaning=(
            "A sample with it was decoded and named as a sample of the first event. perf refuses the file; "
            "`perfuse repair` leaves out such samples, and an index of ids that has one."
        ),
        action="The id lists of the file are damaged, or two recordings were joined by hand.",
    ),
    "PD014": Explanation(
        title="records are out of order beyond their flush round",
        meaning=(
            "perf would show them out of order. All records were sorted by time, which takes memory for each record."
        ),
        action="No action is possible for this file; the processors' clocks may differ.",
    ),
    "PD015": Explanation(
        title="too many inherited mappings",
        meaning=(
            "Forked processes inherit the mappings of their parents. Beyond two million rows they are omitted, and "
            "addresses in such processes remain unnamed."
        ),
        action="Record fewer processes.",
    ),
    "PD016": Explanation(
        title="no event attribute can be read",
        meaning="Attributes define which fields samples have; without one no sample can be decoded.",
        action="Record again.",
    ),
    "PD017": Explanation(
        title="an event was throttled",
        meaning="Sampling exceeded the processor time that the kernel allows, so no samples were taken for a while.",
        action="Record at a lower rate (-F), or raise kernel.perf_cpu_time_max_percent.",
    ),
    "PD018": Explanation(
        title="samples have no time",
        meaning="They cannot be ordered against mappings or JIT code with reused addresses.",
        action="Record with -T, or from a process or command rather than a bare counter.",
    ),
    "PD019": Explanation(
        title="a name has no NUL",
        meaning="The rest of the record was read as the name.",
        action="No action is needed if the name looks right.",
    ),
    "PD020": Explanation(
        title="instruction traces are not decoded",
        meaning="Intel PT, Arm CoreSight and the like record in a format of the processor.",
        action="Use perf script --itrace or perf report with this file.",
    ),
    "PD021": Explanation(
        title="call chains without their user part",
        meaning=(
            "The user part of these call chains was deferred until their task returned to user mode, and the recording "
            "does not contain it: the task was still in the kernel at the end, or the record was lost. Their stacks "
            "begin with a frame [deferred]."
        ),
        action="Nothing, if they are few; larger buffers (perf record -m) lose fewer records.",
    ),
    "PD023": Explanation(
        title="a pid was used again",
        meaning=(
            "A process ended, and a later one got its pid. Names of code are those of the time of each sample, but "
            "tables and reports have one process, with the name of the last one: its samples, threads and times are "
            "those of all that had the pid."
        ),
        action="Select the time of one of them with `--between`.",
    ),
    "PD022": Explanation(
        title="bytes follow the last section",
        meaning=(
            "The file is longer than its sections: another file was appended, or a longer file was not truncated "
            "before this one was written over it. These bytes are not read."
        ),
        action=(
            "Cut the file at the offset of the message, or use `perfuse repair`. A recording that was appended begins "
            "at that offset and can be read as a file of its own."
        ),
    ),
    "PD024": Explanation(
        title="a feature section cannot be decoded",
        meaning=(
            "Its strings or lists end past it, or its version is unknown. perf refuses most files with such a section: "
            "`incompatible file format`. The other sections were read."
        ),
        action="Copy the file again, or use `perfuse repair`, which leaves the section out.",
    ),
    "PD025": Explanation(
        title="feature sections are not where the header states",
        meaning=(
            "Bytes are missing from the records before them, or were added. The table of the sections was found by its "
            "content and read; the records end there. perf refuses such a file."
        ),
        action="Copy the file again, or use `perfuse repair`, which writes a header that is right.",
    ),
    "PD026": Explanation(
        title="a feature section is empty",
        meaning=(
            "perf had nothing to write into it, and announced it nevertheless. Nothing is missing from the recording, "
            "but some versions of perf refuse such a file: `incompatible file format`."
        ),
        action="Use `perfuse repair`, which leaves the section out, where perf refuses the file.",
    ),
    "PD027": Explanation(
        title="samples that a filter dropped",
        meaning="`perf record --filter` left these samples out, as was asked for: nothing is lost.",
        action="Nothing.",
    ),
    "PD028": Explanation(
        title="instruction traces have gaps",
        meaning=(
            "The processor's trace was faster than perf read it, or samples collided. perf reports `AUX data lost`, "
            "`AUX data had gaps in it` or `AUX data detected collision`."
        ),
        action="Record with larger buffers (perf record -m ,64M), for a shorter time, or only parts of the program.",
    ),
    "PD029": Explanation(
        title="an instruction trace could not be decoded",
        meaning="perf inject --itrace found this error in the trace: samples of that part are missing.",
        action="Use perf script --itrace=e with the original recording, which lists all errors.",
    ),
    "PD030": Explanation(
        title="context switches of which one side is missing",
        meaning=(
            "A thread left the processor twice, or was put on it twice, without the switch between. `perf record -e "
            "sched:sched_switch PROGRAM` records only switches at which a thread of the program leaves the processor. "
            "How long these threads ran or waited is not known, so tables have no end, and sums do not include them."
        ),
        action="Record both sides: perf record -a -e sched:sched_switch, or perf record --switch-events.",
    ),
}
