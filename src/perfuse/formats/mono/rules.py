"""What each rule about Mono log profiler files means, and what to do."""

from perfuse.diagnostics import Explanation

RULES: dict[str, Explanation] = {
    "ML001": Explanation(
        title="header flags are not 0",
        meaning="No flag has a defined meaning. mprof-report refuses the file.",
        action="`perfuse repair` clears them.",
    ),
    "ML002": Explanation(
        title="the header has no start time",
        meaning="Profiler 0.1 wrote 0 for start, timer overhead and pid, though its specification has them.",
        action="No action is needed: event times are unaffected.",
    ),
    "ML003": Explanation(
        title="a string in the header does not end in NUL",
        meaning="Its length counts a NUL that is not there.",
        action="`perfuse repair` terminates the string.",
    ),
    "ML004": Explanation(
        title="data version 0",
        meaning=(
            "Not written by Mono: other programs write such files with a version of their own. It is read as far as "
            "possible."
        ),
        action="Ask the author of the writer.",
    ),
    "ML005": Explanation(
        title="events have a layout that was replaced before its release",
        meaning=(
            "For days or weeks one version number stood for several layouts. mprof-report reads such a file wrongly."
        ),
        action="No action is needed: the layout that decodes most of the file was selected.",
    ),
    "ML010": Explanation(
        title="the file ends inside a buffer",
        meaning="The process was killed, the disk was full, or the file still grows. mprof-report reports nothing.",
        action="The bytes that are present were read. `perfuse repair` writes a file that ends at an event boundary.",
    ),
    "ML011": Explanation(
        title="the file ends inside a buffer header",
        meaning="As ML010.",
        action="`perfuse repair` omits the rest.",
    ),
    "ML012": Explanation(
        title="a buffer's length extends past the next buffer",
        meaning="Another buffer begins inside it: the length is damaged, or bytes of the buffer are missing.",
        action=(
            "The buffer was read up to there; where bytes are missing, an event may be wrong. `perfuse repair` "
            "writes the length."
        ),
    ),
    "ML013": Explanation(
        title="bytes that are not a buffer",
        meaning="Something else was written into the file, or a buffer's length is too small.",
        action="Reading went on at the next buffer. `perfuse repair` omits the bytes.",
    ),
    "ML014": Explanation(
        title="an event cannot be read",
        meaning="The rest of its buffer depends on it and is lost; other buffers are unaffected.",
        action="`perfuse repair` ends the buffer before it.",
    ),
    "ML015": Explanation(
        title="no buffer follows the header",
        meaning="The program ended before the profiler wrote anything.",
        action="End the program normally, so that the profiler writes its buffers.",
    ),
    "ML016": Explanation(
        title="buffers without events",
        meaning="Data versions 4 to 13 write them.",
        action="No action is needed.",
    ),
    "ML017": Explanation(
        title="a buffer begins before the previous buffer of its thread ends",
        meaning="A buffer's time is its creation. Samples and compilations carry other time stamps.",
        action="No action is needed: events are sorted by their own times.",
    ),
    "ML018": Explanation(
        title="the log ends before its program",
        meaning=(
            "The process was killed, crashed, or was still running when the file was copied. The file ends with a "
            "whole buffer, so it reads like a complete one. Since data version 13 a finished log has the end of every "
            "thread; here some are missing, and with them all events of those threads that were still in the "
            "profiler's memory: up to a second, or since the last synchronization point. Unloads of domains, final "
            "counters and the heap shot on shutdown are missing too. Logs of earlier data versions have no such mark."
        ),
        action="What is present was read. Let the program end by itself, or send it a signal that it handles.",
    ),
    "ML020": Explanation(
        title="time stamps decrease inside a buffer",
        meaning=(
            "Documented as monotonic. Samples and compilations can be stamped before their buffer is created; the "
            "difference wraps."
        ),
        action="No action is needed: differences are added modulo 2^64.",
    ),
    "ML021": Explanation(
        title="an event's flags are not 0",
        meaning="Reserved until data version 12.",
        action="No action is needed.",
    ),
    "ML022": Explanation(
        title="a generation that is neither 0 nor 1",
        meaning="Mono's collectors have a nursery and one old generation.",
        action="The event may be damaged.",
    ),
    "ML023": Explanation(
        title="unknown collection phase",
        meaning="Known phases are 0 to 11; from data version 14 on, without 1 to 4.",
        action="The event may be damaged.",
    ),
    "ML024": Explanation(
        title="an odd number of addresses in GC_MOVE",
        meaning="Old and new addresses come in pairs.",
        action="The last address is omitted.",
    ),
    "ML025": Explanation(
        title="unknown handle type",
        meaning="Known types are 0 to 3.",
        action="The event may be damaged.",
    ),
    "ML026": Explanation(
        title="unknown clause type",
        meaning="Known types are 0 catch, 1 filter, 2 finally and 4 fault.",
        action="The event may be damaged.",
    ),
    "ML027": Explanation(
        title="a value of an undescribed counter",
        meaning="Its description was lost, or the number is damaged.",
        action="The value is omitted.",
    ),
    "ML030": Explanation(
        title="methods without code of their own",
        meaning=(
            "Address and size are 0 or all ones for wrappers and what was compiled ahead of time. Profiler 3.0 also "
            "reads them from freed memory: half a pointer, or an address outside all code, is treated as absent. "
            "mprof-report treats a size of all ones as a method that covers every address, and counts every sample on "
            "it; the other sizes enter its sums."
        ),
        action="No action is needed.",
    ),
    "ML031": Explanation(
        title="images are unloaded in a log of profiler 3",
        meaning="log.h says an id follows the name. None does; mprof-report loses the events after it.",
        action="No action is needed.",
    ),
    "ML032": Explanation(
        title="coverage was recorded",
        meaning="mprof-report no longer shows coverage; Mono.Profiler.Log stops at the first such event.",
        action="No action is needed.",
    ),
    "ML040": Explanation(
        title="names follow their first use",
        meaning=(
            "Classes, vtables and methods are often described later in the file than an event that needs them. "
            "mprof-report leaves these unresolved."
        ),
        action="No action is needed: names are collected before events are decoded.",
    ),
    "ML041": Explanation(
        title="a class or vtable that is never described",
        meaning=(
            "Its description was in a buffer that was lost, or was never written: the 2010 profiler lost the last "
            "buffers of all threads but one."
        ),
        action="Its objects have no type.",
    ),
    "ML042": Explanation(
        title="a method that is never described",
        meaning="As ML041.",
        action="Its calls are shown by address.",
    ),
    "ML044": Explanation(
        title="one thread id for several threads",
        meaning="Thread ids are addresses that the system reuses. mprof-report assigns the last name to all of them.",
        action="No action is needed: threads are distinguished by their start events.",
    ),
    "ML050": Explanation(
        title="a LEAVE without ENTER",
        meaning=(
            "The ENTER event was lost or preceded the recording. mprof-report's stack of the thread is wrong from "
            "here on."
        ),
        action="No action is needed: the call is shown from the start of its thread.",
    ),
    "ML051": Explanation(
        title="calls without LEAVE",
        meaning="They were running when the recording ended, or their LEAVE event was lost.",
        action="No action is needed: they end with their thread and are marked.",
    ),
    "ML052": Explanation(
        title="events without backtraces in a log that records calls",
        meaning=(
            "The profiler writes no backtraces where it records calls. The stack of an allocation, an exception, a "
            "lock event or a handle is that of the calls which its thread has entered and not left, as in mprof-report."
        ),
        action=(
            "No action is needed. Calls deeper than `calldepth` (100 unless set) are not recorded, so such a stack "
            "ends with the last recorded call. Table `frames` has `trace` in column `unwound_by`."
        ),
    ),
    "ML060": Explanation(
        title="an object or the end of a heap snapshot without a start",
        meaning="Its start event was lost. mprof-report crashes.",
        action="Objects outside of a snapshot are omitted; `perfuse repair` leaves these events out.",
    ),
    "ML061": Explanation(
        title="a heap snapshot without end",
        meaning="The process was killed while it was written. Missing objects appear as dangling references.",
        action="The objects that are present are shown.",
    ),
}
