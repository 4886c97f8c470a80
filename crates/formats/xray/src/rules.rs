//! Every way a log or profile departs from its specification, numbered: 00x the header, 01x buffers, 02x records, 03x order and
//! time, 04x events, 05x calls, 06x Basic mode, 07x Profiling mode.
//!
//! Sections are those of the specification of version 1, by their titles; what came later is called by its version.

use perfuse_wire::rules;

rules! {
    VERSION = "XR001", Error, "Header Section", "version is not known",
        "No release of LLVM writes it. Records are read as those of the latest version that is known.",
        "Check what wrote the file; a newer perfuse may know it. `perfuse repair` writes the version it was read as.";
    FREQUENCY_ZERO = "XR002", Warning, "Header Section", "the counter's rate is not known",
        "`cycle_frequency` is 0. llvm-xray counts ticks as if each took a second.",
        "perfuse takes the rate that wall times in the log show, where there are enough of them; `--tsc-hz` gives it. `perfuse repair` writes what the log shows.";
    FREQUENCY_WRONG = "XR003", Warning, "Header Section", "the counter does not tick at the rate in the header",
        "On Linux the runtime takes the processor's highest clock where the kernel does not tell the counter's rate (`tsc_freq_khz`, \
         which stock kernels lack). All times of llvm-xray are off by the same share.",
        "perfuse takes the rate that wall times in the log show. `perfuse repair` writes it to the header.";
    HEADER_GARBAGE = "XR004", Info, "Header Section", "unused bytes of the header are not 0",
        "Basic mode and FDR versions 1 and 2 leave what was on the writer's stack: addresses leak.",
        "Nothing has to be done. `perfuse repair` clears them.";
    NOTHING = "XR005", Warning, "Header Section", "the file has a header and nothing else",
        "Nothing was recorded, or it was not flushed. llvm-xray calls such a file one of an unsupported version (768).",
        "Call `__xray_patch` before, and `__xray_log_finalize` and `__xray_log_flushLog` at the end.";
    LOST = "XR010", DataLoss, "Format Grammar and Invariants", "bytes that are no buffer",
        "No buffer begins there. Reading went on where one does, beyond doubt.",
        "`perfuse repair` leaves the bytes out.";
    TRUNCATED = "XR011", DataLoss, "version 2", "the file ends inside a buffer",
        "The process was killed while it wrote, or the file was cut on its way. All whole records were read.",
        "`perfuse repair` ends the buffer behind its last whole record.";
    EXTENTS_LONG = "XR012", Error, "version 2", "BufferExtents says more than there is before the next buffer",
        "The buffer was taken to end where the next one begins.",
        "`perfuse repair` writes the size that is there.";
    EXTENTS_SHORT = "XR013", Error, "version 2", "BufferExtents says less than there is",
        "Records go on behind the end it states, up to the next buffer. They were read.",
        "`perfuse repair` writes the size that is there.";
    NO_EXTENTS = "XR014", Error, "version 2", "a buffer has no BufferExtents",
        "The buffer was taken to end where the next one begins.",
        "`perfuse repair` writes one.";
    STRIDE = "XR015", Warning, "Header Section", "buffer_size is not the distance of buffers",
        "In version 1 buffers lie that far apart. Their beginnings were looked for instead. Writers before March 2017 had no such field.",
        "`perfuse repair` writes the distance.";
    COPY = "XR016", DataLoss, "version 2", "a buffer is there twice, and another is missing",
        "The runtime (LLVM 6 to 22) flushes the slots of its queue. Where threads give buffers back in another order than they took \
         them, a slot has another buffer's bytes, and the buffer that a thread still holds is not written at all. llvm-xray counts the copy.",
        "The copy was left out. Let threads end before the flush. `perfuse repair` removes it.";
    EMPTY_BUFFER = "XR017", Info, "version 2", "a buffer of no bytes",
        "Runtimes do not write them to files, but hand them out in memory.",
        "Nothing has to be done. `perfuse repair` leaves it out.";
    STALE = "XR018", Info, "EndOfBuffer Records", "bytes follow EndOfBuffer",
        "What an earlier use of the buffer left, in version 1. llvm-xray takes them for records and refuses the file.",
        "Nothing has to be done: perfuse passes over them. `perfuse repair` clears them.";
    HALF_EMPTY = "XR019", Info, "version 2", "a buffer was left before it was full",
        "Its thread went on in another. What it recorded in between may have been lost with a buffer of its own.",
        "Nothing can be done for this file.";
    UNKNOWN_KIND = "XR020", Error, "Metadata Records", "metadata record of unknown kind",
        "No version has this number. Its 16 bytes were passed over.",
        "`perfuse repair` leaves it out.";
    UNKNOWN_ACTION = "XR021", Error, "Function Records", "function record of unknown action",
        "Actions 4 to 7 mean nothing. Its time was counted, the record passed over.",
        "`perfuse repair` leaves it out.";
    CUT_RECORD = "XR022", Error, "Format Grammar and Invariants", "a buffer ends inside a record",
        "The records do not come out at the end of the buffer.",
        "`perfuse repair` ends the buffer before it.";
    RESERVED = "XR023", Info, "Metadata Records", "reserved bytes are not 0",
        "The runtime leaves what was on its stack (0xAA in Debian's builds).",
        "Nothing has to be done. `perfuse repair` clears them.";
    NO_END = "XR024", Error, "EndOfBuffer Records", "a buffer has no EndOfBuffer",
        "In version 1 it tells where the records end; what lies behind is taken for records without it.",
        "`perfuse repair` writes one.";
    END_OF_BUFFER = "XR025", Warning, "version 2", "EndOfBuffer in a version that has none",
        "Only version 1 has it. llvm-xray passes over all that follows, up to a NewBuffer; perfuse reads on.",
        "`perfuse repair` leaves it out.";
    LATER_KIND = "XR026", Error, "version 3", "record of a later version",
        "TypedEventMarker and Pid came with version 3, BufferExtents with version 2.",
        "`perfuse repair` leaves it out.";
    NEGATIVE_TID = "XR027", Warning, "NewBuffer Records", "thread id is negative",
        "No operating system gives such ids: the bytes are damaged, or not what they seem.",
        "Nothing can be done for this file.";
    ORDER = "XR030", Error, "Format Grammar and Invariants", "a record out of its place",
        "The grammar has no such record there.",
        "`perfuse repair` leaves it out.";
    NO_NEW_BUFFER = "XR031", Error, "NewBuffer Records", "a buffer does not begin with NewBuffer",
        "It says whose the buffer is: its calls are shown as those of thread 0.",
        "`perfuse repair` writes one, of thread 0.";
    NO_WALL_TIME = "XR032", Error, "WallClockTime Records", "a buffer has no WallTimeMarker",
        "It says when the buffer was begun. The buffer was put behind the one before it of its thread.",
        "`perfuse repair` writes the time that the counter shows.";
    NO_PID = "XR033", Error, "version 3", "a buffer has no Pid",
        "From version 3 on it follows WallTimeMarker.",
        "`perfuse repair` writes process 0.";
    NO_CPU = "XR034", Error, "NewCpuId Records", "a buffer has no NewCPUId before its first call",
        "It says where the counter stands. Times were counted from the last buffer of the thread, or else from 0.",
        "`perfuse repair` writes one, with the counter that its wall time shows.";
    CARRIED = "XR035", Warning, "NewCpuId Records", "a buffer goes on with the counter of the one before",
        "LLVM 5 writes NewCPUId in the first buffer of a thread only. llvm-xray refuses the file.",
        "perfuse carries counter and processor on. `perfuse repair` writes NewCPUId.";
    SECOND_NEW_BUFFER = "XR036", Error, "NewBuffer Records", "NewBuffer inside a buffer",
        "It was taken to begin another buffer.",
        "`perfuse repair` writes two buffers.";
    TIME_BACK = "XR037", Warning, "TSCWrap Records", "the counter goes back without TSCWrap",
        "Processors' counters differ, or the bytes are damaged. llvm-xray account refuses the file.",
        "`perfuse repair` writes TSCWrap.";
    ROTATED = "XR038", DataLoss, "version 2", "the oldest buffers were overwritten",
        "There were more than the runtime's queue holds: it began anew at its front, so that the file begins in the middle. llvm-xray \
         scrambles the order of more than 16 buffers of a thread.",
        "Buffers were put in order. Record with more of them (`buffer_max`), or larger ones. `perfuse repair` writes them in order.";
    UNORDERED = "XR039", Warning, "Format Grammar and Invariants", "buffers are not in the order of their times",
        "Logs were put together, or the queue of the runtime was begun anew more than once.",
        "Buffers were put in order. `perfuse repair` writes them so.";
    OVERWRITTEN = "XR040", DataLoss, "CustomEventMarker Records", "the bytes of events were overwritten",
        "LLVM 5 to 7 (until September 2018) write the next record over the bytes of an event. Version 2 and 3 count them in \
         BufferExtents all the same. llvm-xray loses its way in such files.",
        "When there was an event, and how large, was read; its bytes are gone. `perfuse repair` writes eight bytes 0 for them.";
    TYPED_CUT = "XR041", DataLoss, "version 5", "the end of the buffer was cut off",
        "LLVM 8 to 22 leave the 16 bytes of each TypedEventMarker out of BufferExtents, so that as many are missing at the end. llvm-xray refuses the file.",
        "Everything up to the cut was read. Avoid typed events, or log custom ones. `perfuse repair` ends the buffer behind its last whole record.";
    EMPTY_EVENT = "XR042", Info, "CustomEventMarker Records", "an event of no bytes",
        "Writers may; llvm-xray refuses the whole file.",
        "Nothing has to be done. `perfuse repair` gives it eight bytes 0, for llvm-xray's sake.";
    EVENT_SIZE = "XR043", Error, "CustomEventMarker Records", "the size of an event leads out of its buffer",
        "It is negative or too large. Nothing behind it in the buffer can be read.",
        "`perfuse repair` ends the buffer before it.";
    NO_ENTRY = "XR050", Info, "Function Record Order", "exits without entry",
        "Their entries were before the log, in a buffer that is lost, or forgotten by the runtime for being short.",
        "Nothing has to be done: the calls are shown from the start of what is known.";
    NO_EXIT = "XR051", Info, "Function Record Order", "calls without exit at the end of the log",
        "They ran when the log was finalized, or their exits are lost.",
        "Nothing has to be done.";
    UNWOUND = "XR052", Info, "Function Record Order", "calls left without an exit of their own",
        "By an exception or `longjmp`: the function that catches goes on. llvm-xray refuses the file, or charges the time to the catcher.",
        "Nothing has to be done: they end with what their catcher does next.";
    ORPHAN_ARGUMENT = "XR053", Error, "CallArgument Records", "an argument of no call",
        "CallArgument follows no function entry.",
        "`perfuse repair` leaves it out.";
    PLAIN_ENTRY = "XR054", Info, "CallArgument Records", "an argument follows a plain entry",
        "Versions 1 to 3 never write the action Entry_Args.",
        "Nothing has to be done.";
    ALIASES = "XR055", Warning, "Function Records", "function ids may stand for functions of several objects",
        "With shared objects (LLVM 20 on) the upper bits are the object's number. Only 4 bits of it fit: objects 16, 17, 18 look like 0, 1, 2.",
        "Name the objects with `--map OBJECT_ID=FILE`; with more than 15 of them, record in Basic mode.";
    BASIC_TAIL = "XR060", DataLoss, "Basic mode", "the file ends inside a record",
        "Records have 32 bytes each. The process was killed while it wrote, or the file was cut on its way.",
        "`perfuse repair` cuts the tail off.";
    BASIC_TYPE = "XR061", Error, "Basic mode", "record of unknown type",
        "0 is a call, 1 an argument. A later version may have others.",
        "`perfuse repair` leaves it out.";
    BASIC_KIND = "XR062", Error, "Basic mode", "call record of unknown kind",
        "0 to 3 are known.",
        "`perfuse repair` leaves it out.";
    BASIC_ORPHAN = "XR063", Warning, "Basic mode", "an argument of no call",
        "The runtime writes it even where it leaves out the call, for being deeper than `max_stack_depth`. llvm-xray refuses the file.",
        "`perfuse repair` leaves it out. Record with a larger `max_stack_depth`.";
    BASIC_COPIES = "XR064", Warning, "Basic mode", "records are there twice",
        "`fork` copies what a thread has not written out yet: parent and child both write it. llvm-xray counts both.",
        "The copies were left out. `perfuse repair` removes them.";
    BASIC_BACK = "XR065", Info, "Basic mode", "time goes back within a thread",
        "Records are put in order of their times.",
        "Nothing has to be done. `perfuse repair` writes them in order.";
    PROFILE_CUT = "XR070", DataLoss, "Profiling mode", "a block ends inside a call path",
        "The file was cut, or the block states a wrong size. All whole paths were read.",
        "`perfuse repair` ends the block behind its last whole path.";
    PROFILE_BLOCK = "XR071", Error, "Profiling mode", "size of a block is smaller than its header",
        "The header alone has 16 bytes.",
        "`perfuse repair` leaves it out.";
    PROFILE_NEGATIVE = "XR072", Warning, "Profiling mode", "times below 0",
        "The runtime's arithmetic goes under after `longjmp` and exceptions.",
        "Nothing can be done for this file: such times are no times.";
}
