"""What each rule about XRay logs means, and what to do."""

from perfuse.diagnostics import Explanation

RULES: dict[str, Explanation] = {
    "XR001": Explanation(
        title="unknown version",
        meaning="No LLVM release writes it. Records are read as those of the latest known version.",
        action=(
            "Check what wrote the file; a newer perfuse may know it. `perfuse repair` writes the version it was read "
            "as."
        ),
    ),
    "XR002": Explanation(
        title="the counter's rate is unknown",
        meaning="`cycle_frequency` is 0. llvm-xray treats each tick as a second.",
        action=(
            "perfuse uses the rate derived from the log's wall times where there are enough of them; `--tsc-hz` sets "
            "it. `perfuse repair` writes the derived rate."
        ),
    ),
    "XR003": Explanation(
        title="the counter does not tick at the rate in the header",
        meaning=(
            "On Linux the runtime uses the processor's maximum clock where the kernel does not report the counter's "
            "rate (`tsc_freq_khz`, which stock kernels lack). All times of llvm-xray are off by the same share."
        ),
        action="perfuse uses the rate derived from the log's wall times. `perfuse repair` writes it to the header.",
    ),
    "XR004": Explanation(
        title="unused bytes of the header are not 0",
        meaning="Basic mode and FDR versions 1 and 2 leave what was on the writer's stack: addresses leak.",
        action="No action is needed. `perfuse repair` clears them.",
    ),
    "XR005": Explanation(
        title="the file has a header and nothing else",
        meaning=(
            "Nothing was recorded, or it was not flushed. llvm-xray reports an unsupported version (768) for such a "
            "file."
        ),
        action="Call `__xray_patch` before, and `__xray_log_finalize` and `__xray_log_flushLog` at the end.",
    ),
    "XR010": Explanation(
        title="bytes that are not a buffer",
        meaning="No buffer begins there. Reading continued at the next certain start of a buffer.",
        action="`perfuse repair` omits the bytes.",
    ),
    "XR011": Explanation(
        title="the file ends inside a buffer",
        meaning=(
            "The process was killed while it wrote, or the file was truncated in transfer. All complete records were "
            "read."
        ),
        action="`perfuse repair` ends the buffer after its last complete record.",
    ),
    "XR012": Explanation(
        title="BufferExtents is larger than the space before the next buffer",
        meaning="The buffer was assumed to end at the next one.",
        action="`perfuse repair` writes the actual size.",
    ),
    "XR013": Explanation(
        title="BufferExtents is smaller than the buffer's records",
        meaning="Records continue after the stated end, up to the next buffer. They were read.",
        action="`perfuse repair` writes the actual size.",
    ),
    "XR014": Explanation(
        title="a buffer has no BufferExtents",
        meaning="The buffer was assumed to end at the next one.",
        action="`perfuse repair` writes one.",
    ),
    "XR015": Explanation(
        title="buffer_size is not the distance of buffers",
        meaning=(
            "In version 1 buffers are that far apart. Their starts were detected instead. Writers before March 2017 "
            "had no such field."
        ),
        action="`perfuse repair` writes the distance.",
    ),
    "XR016": Explanation(
        title="a buffer is duplicated and another is missing",
        meaning=(
            "The runtime (LLVM 6 to 22) flushes the slots of its queue. If threads return buffers in another order "
            "than they took them, a slot contains another buffer's bytes, and the buffer that a thread still uses is "
            "not written. llvm-xray counts the copy."
        ),
        action="The copy was omitted. Let threads end before the flush. `perfuse repair` removes it.",
    ),
    "XR017": Explanation(
        title="an empty buffer",
        meaning="Runtimes do not write them to files, only to memory.",
        action="No action is needed. `perfuse repair` omits it.",
    ),
    "XR018": Explanation(
        title="bytes follow EndOfBuffer",
        meaning=(
            "Left over from an earlier use of the buffer, in version 1. llvm-xray reads them as records and refuses "
            "the file."
        ),
        action="No action is needed: perfuse skips them. `perfuse repair` clears them.",
    ),
    "XR019": Explanation(
        title="a buffer was left before it was full",
        meaning=(
            "Its thread continued in another one. Records in between may have been lost with a buffer of their own."
        ),
        action="Nothing can be done for this file.",
    ),
    "XR020": Explanation(
        title="metadata unknown record kind",
        meaning="No version has this number. Its 16 bytes were skipped.",
        action="`perfuse repair` omits it.",
    ),
    "XR021": Explanation(
        title="unknown function record action",
        meaning="Actions 4 to 7 are undefined. Its time delta was applied, the record skipped.",
        action="`perfuse repair` omits it.",
    ),
    "XR022": Explanation(
        title="a buffer ends inside a record",
        meaning="The last record does not end at the end of the buffer.",
        action="`perfuse repair` ends the buffer before it.",
    ),
    "XR023": Explanation(
        title="reserved bytes are not 0",
        meaning="The runtime leaves what was on its stack (0xAA in Debian's builds).",
        action="No action is needed. `perfuse repair` clears them.",
    ),
    "XR024": Explanation(
        title="a buffer has no EndOfBuffer",
        meaning="In version 1 it marks the end of the records; without it, what follows is read as records.",
        action="`perfuse repair` writes one.",
    ),
    "XR025": Explanation(
        title="EndOfBuffer in a version that has none",
        meaning=(
            "Only version 1 has it. llvm-xray skips everything up to the next NewBuffer; perfuse continues reading."
        ),
        action="`perfuse repair` omits it.",
    ),
    "XR026": Explanation(
        title="record of a later version",
        meaning="TypedEventMarker and Pid were added in version 3, BufferExtents in version 2.",
        action="`perfuse repair` omits it.",
    ),
    "XR027": Explanation(
        title="thread id is negative",
        meaning="No operating system gives such ids: the bytes are damaged, or are not a thread id.",
        action="Nothing can be done for this file.",
    ),
    "XR028": Explanation(
        title="the log of a forked process begins with buffers of its parent",
        meaning=(
            "`fork` copies the buffers in which XRay collects events. Calls of the parent from before are in this log "
            "as in its own, and what the forked process did has the pid and the thread of its parent up to the end "
            "of the copied buffers: a call that continues in the next buffer is counted twice, without an end and "
            "without a start."
        ),
        action="Give the log of the parent as well: events that both have are counted once.",
    ),
    "XR030": Explanation(
        title="a record out of place",
        meaning="The grammar does not allow the record there.",
        action="`perfuse repair` omits it.",
    ),
    "XR031": Explanation(
        title="a buffer does not begin with NewBuffer",
        meaning="It identifies the buffer's thread: its calls are shown as those of thread 0.",
        action="`perfuse repair` writes one, of thread 0.",
    ),
    "XR032": Explanation(
        title="a buffer has no WallTimeMarker",
        meaning="It states when the buffer was started. The buffer was placed after the previous one of its thread.",
        action="`perfuse repair` writes the time derived from the counter.",
    ),
    "XR033": Explanation(
        title="a buffer has no Pid",
        meaning="From version 3 on it follows WallTimeMarker.",
        action="`perfuse repair` writes process 0.",
    ),
    "XR034": Explanation(
        title="a buffer has no NewCPUId before its first call",
        meaning="It gives the counter's value. Times continue from the last buffer of the thread, or else from 0.",
        action="`perfuse repair` writes one, with the counter derived from its wall time.",
    ),
    "XR035": Explanation(
        title="a buffer continues the counter of the previous one",
        meaning="LLVM 5 writes NewCPUId in the first buffer of a thread only. llvm-xray refuses the file.",
        action="perfuse carries counter and processor over. `perfuse repair` writes NewCPUId.",
    ),
    "XR036": Explanation(
        title="NewBuffer inside a buffer",
        meaning="It was treated as the start of another buffer.",
        action="`perfuse repair` writes two buffers.",
    ),
    "XR037": Explanation(
        title="the counter decreases without TSCWrap",
        meaning="Processors' counters differ, or the bytes are damaged. llvm-xray account refuses the file.",
        action="`perfuse repair` writes TSCWrap.",
    ),
    "XR038": Explanation(
        title="the oldest buffers were overwritten",
        meaning=(
            "There were more than the runtime's queue can store: it wrapped around, so that the file begins in the "
            "middle. llvm-xray scrambles the order of more than 16 buffers of a thread."
        ),
        action=(
            "Buffers were sorted. Record with more of them (`buffer_max`), or larger ones. `perfuse repair` writes "
            "them sorted."
        ),
    ),
    "XR039": Explanation(
        title="buffers are not in time order",
        meaning="Logs were concatenated, or the runtime's queue wrapped more than once.",
        action="Buffers were sorted. `perfuse repair` writes them sorted.",
    ),
    "XR040": Explanation(
        title="the bytes of events were overwritten",
        meaning=(
            "LLVM 5 to 7 (until September 2018) write the next record over the bytes of an event. Version 2 and 3 "
            "count them in BufferExtents nevertheless. llvm-xray misparses such files."
        ),
        action=(
            "The event's time and size were read; its bytes are lost. `perfuse repair` writes eight zero bytes in "
            "their place."
        ),
    ),
    "XR041": Explanation(
        title="the end of the buffer was cut off",
        meaning=(
            "LLVM 8 to 22 do not count the 16 bytes of each TypedEventMarker in BufferExtents, so that as many bytes "
            "are missing at the end. llvm-xray refuses the file."
        ),
        action=(
            "Everything before the cut was read. Avoid typed events, or log custom ones. `perfuse repair` ends the "
            "buffer after its last complete record."
        ),
    ),
    "XR042": Explanation(
        title="an empty event",
        meaning="Writers may write one; llvm-xray refuses the whole file.",
        action="No action is needed. `perfuse repair` gives it eight zero bytes so that llvm-xray reads the file.",
    ),
    "XR043": Explanation(
        title="an event's size extends past its buffer",
        meaning="It is negative or too large. Nothing after it in the buffer can be read.",
        action="`perfuse repair` ends the buffer before it.",
    ),
    "XR050": Explanation(
        title="exits without entry",
        meaning=(
            "Their entries preceded the log, were in a lost buffer, or were discarded by the runtime as short calls."
        ),
        action="No action is needed: the calls are shown from the start of the recorded data.",
    ),
    "XR051": Explanation(
        title="calls without exit at the end of the log",
        meaning="They ran when the log was finalized, or their exits are lost.",
        action="No action is needed.",
    ),
    "XR052": Explanation(
        title="calls left without an exit of their own",
        meaning=(
            "They were unwound by an exception or `longjmp`. llvm-xray refuses the file or charges the time to the "
            "catching function."
        ),
        action="No action is needed: they end at the next event of the catching function.",
    ),
    "XR053": Explanation(
        title="an argument without a call",
        meaning="CallArgument follows no function entry.",
        action="`perfuse repair` omits it.",
    ),
    "XR054": Explanation(
        title="an argument follows a plain entry",
        meaning="Versions 1 to 3 never write the action Entry_Args.",
        action="No action is needed.",
    ),
    "XR055": Explanation(
        title="function ids may stand for functions of several objects",
        meaning=(
            "With shared objects (LLVM 20 on) the upper bits are the object's number. Only 4 bits of it fit: objects "
            "16, 17, 18 look like 0, 1, 2."
        ),
        action="Name the objects with `--map OBJECT_ID=FILE`; with more than 15 of them, record in Basic mode.",
    ),
    "XR060": Explanation(
        title="the file ends inside a record",
        meaning=(
            "Each record has 32 bytes. The process was killed while it wrote, or the file was truncated in transfer."
        ),
        action="`perfuse repair` removes the tail.",
    ),
    "XR061": Explanation(
        title="unknown record type",
        meaning="0 is a call, 1 an argument. A later version may have others.",
        action="`perfuse repair` omits it.",
    ),
    "XR062": Explanation(
        title="call unknown record kind",
        meaning="0 to 3 are known.",
        action="`perfuse repair` omits it.",
    ),
    "XR063": Explanation(
        title="an argument without a call",
        meaning=(
            "The runtime writes it even where it omits the call because the call is deeper than `max_stack_depth`. "
            "llvm-xray refuses the file."
        ),
        action="`perfuse repair` omits it. Record with a larger `max_stack_depth`.",
    ),
    "XR064": Explanation(
        title="records are duplicated",
        meaning=(
            "`fork` copies records that a thread has not flushed: parent and child both write them. llvm-xray counts "
            "both."
        ),
        action="The copies were omitted. `perfuse repair` removes them.",
    ),
    "XR065": Explanation(
        title="time stamps decrease within a thread",
        meaning="Records are sorted by time.",
        action="No action is needed. `perfuse repair` writes them sorted.",
    ),
    "XR066": Explanation(
        title="records were never written",
        meaning=(
            "They are zeros, but for reserved bytes: file systems store zeros for what was not written yet at a "
            "crash. Function ids begin with 1."
        ),
        action="They are not calls; those that were there are lost. `perfuse repair` omits them.",
    ),
    "XR070": Explanation(
        title="a block ends inside a call path",
        meaning="The file was cut, or the block states a wrong size. All complete paths were read.",
        action="`perfuse repair` ends the block after its last complete path.",
    ),
    "XR071": Explanation(
        title="a block's size is smaller than its header",
        meaning="The header alone has 16 bytes.",
        action="`perfuse repair` omits it.",
    ),
    "XR072": Explanation(
        title="call paths with less time than their callees",
        meaning=(
            "Where `longjmp` or an exception leaves several calls at once, the runtime subtracts the time of the inner "
            "ones from each outer one more than once, down to negative times. A call that was open at the end has no "
            "time, its callees have."
        ),
        action=(
            "Such a path is shown with the time of its callees, and without time of its own: the rest is in that of "
            "its callers. FDR mode records each call."
        ),
    ),
}
