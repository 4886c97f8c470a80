//! Every way a log departs from what its data version says, numbered: 00x the header, 01x buffers, 02x-03x events, 04x names,
//! 05x calls and threads, 06x heap shots.

use perfuse_wire::rules;

rules! {
    HEADER_FLAGS = "ML001", Warning, "header format", "header flags are not 0",
        "No flag was ever given a meaning. mprof-report refuses the file.",
        "`perfuse repair` clears them.";
    NO_START = "ML002", Info, "header format", "the header does not say when the program started",
        "Profiler 0.1 wrote 0 for start, timer overhead and pid, though its specification has them.",
        "Nothing has to be done: times of events are as good.";
    HEADER_TEXT = "ML003", Warning, "header format", "a text of the header does not end in NUL",
        "Its length counts a NUL that is not there.",
        "`perfuse repair` ends the text.";
    FOREIGN = "ML004", Warning, "header format", "data version 0",
        "Not from Mono: other programs write files of this kind with a version of their own. It is read as far as it goes.",
        "Ask whoever wrote it.";
    EARLY_LAYOUT = "ML005", Info, "event format", "events have a layout that was replaced before its release",
        "For days or weeks one number stood for several layouts. mprof-report reads such a file wrongly.",
        "Nothing has to be done: the layout that reads most of the file was chosen.";
    CUT = "ML010", DataLoss, "buffer format", "the file ends inside a buffer",
        "The process was killed, the disk was full, or the file still grows. mprof-report says nothing of it.",
        "What was there was read. `perfuse repair` writes a file that ends where events do.";
    HEADER_CUT = "ML011", DataLoss, "buffer header format", "the file ends inside a buffer header",
        "As ML010.",
        "`perfuse repair` leaves the rest out.";
    BUFFER_LENGTH = "ML012", Error, "buffer header format", "a buffer's length leads past the next buffer",
        "The length is damaged: another buffer begins inside it.",
        "The buffer was read up to there. `perfuse repair` writes the length.";
    NO_BUFFER = "ML013", DataLoss, "buffer header format", "bytes that are no buffer",
        "Something else was written into the file, or a buffer's length is too small.",
        "Reading went on at the next buffer. `perfuse repair` leaves the bytes out.";
    EVENT = "ML014", DataLoss, "event format", "an event cannot be read",
        "What follows in its buffer depends on it and is lost; other buffers are not.",
        "`perfuse repair` ends the buffer before it.";
    NO_EVENTS = "ML015", Warning, "buffer format", "no buffer follows the header",
        "The program ended before the profiler wrote anything.",
        "End the program in order, so that the profiler's buffers are written.";
    EMPTY_BUFFER = "ML016", Info, "buffer format", "buffers without events",
        "Data versions 4 to 13 write them.",
        "Nothing has to be done.";
    BUFFER_ORDER = "ML017", Info, "buffer format", "a buffer begins before the one before it of the same thread ends",
        "A buffer's time is when it was made. Samples and compilations are stamped by others.",
        "Nothing has to be done: events are put in order by their own times.";
    NEGATIVE_TIME = "ML020", Info, "event format", "time goes back inside a buffer",
        "Documented as monotonic. Samples and compilations are stamped before the buffer they come to is made; the difference wraps.",
        "Nothing has to be done: differences are added modulo 2^64.";
    EVENT_FLAGS = "ML021", Warning, "event format", "an event's flags are not 0",
        "Reserved until data version 12.",
        "Nothing has to be done.";
    GENERATION = "ML022", Warning, "type GC format", "a generation that is neither 0 nor 1",
        "Mono's collectors have a nursery and one old generation.",
        "The event may be damaged.";
    GC_PHASE = "ML023", Warning, "type GC format", "a phase of a collection that is not known",
        "Known are 0 to 11, from 14 on without 1 to 4.",
        "The event may be damaged.";
    ODD_MOVES = "ML024", Error, "type GC format", "an odd number of addresses in GC_MOVE",
        "Old and new addresses come in pairs.",
        "The last address is left out.";
    HANDLE_TYPE = "ML025", Warning, "type GC format", "a type of handle that is not known",
        "Known are 0 to 3.",
        "The event may be damaged.";
    CLAUSE_TYPE = "ML026", Warning, "type exception format", "a type of clause that is not known",
        "Known are 0 catch, 1 filter, 2 finally and 4 fault.",
        "The event may be damaged.";
    UNKNOWN_COUNTER = "ML027", Warning, "type sample format", "a value of a counter that was never described",
        "Its description was lost, or the number is damaged.",
        "The value is left out.";
    NO_CODE = "ML030", Info, "type method format", "methods without code of their own",
        "Address and size are 0 or all ones for wrappers and what was compiled ahead of time. Profiler 3.0 also reads them from memory that was freed: what is half a pointer, or lies where no code is, is taken for none. mprof-report takes a size of all ones for a method that is everywhere, and counts every sample on it; sizes of the other kind go into its sums.",
        "Nothing has to be done.";
    IMAGE_UNLOAD = "ML031", Info, "type metadata format", "images are unloaded in a log of profiler 3",
        "log.h says an id follows the name. None does; mprof-report loses the events behind it.",
        "Nothing has to be done.";
    COVERAGE = "ML032", Info, "type coverage format", "coverage was recorded",
        "mprof-report says that it cannot show it any more; Mono.Profiler.Log gives up at the first such event.",
        "Nothing has to be done.";
    LATE_NAMES = "ML040", Info, "type metadata format", "things are named after they are first used",
        "Classes, vtables and methods are often described later in the file than an event that needs them. mprof-report leaves these unresolved for good.",
        "Nothing has to be done: names are gathered before events are read.";
    UNKNOWN_CLASS = "ML041", Warning, "type metadata format", "a class or vtable that is never described",
        "Its description was in a buffer that was lost, or was never written: the 2010 profiler lost the last buffers of all threads but one.",
        "Its objects have no type.";
    UNKNOWN_METHOD = "ML042", Warning, "type method format", "a method that is never described",
        "As ML041.",
        "Its calls are by address.";
    THREAD_REUSED = "ML044", Info, "type metadata format", "one thread id, several threads",
        "Thread ids are addresses that the system uses again. mprof-report gives all of them the last name.",
        "Nothing has to be done: threads are told apart by their starts.";
    LEAVE_WITHOUT_ENTER = "ML050", Warning, "type method format", "a method is left that was not entered",
        "The enter was lost, or was before the recording. mprof-report loses track of the thread's stack here.",
        "Nothing has to be done: the call is closed where its thread begins.";
    OPEN_CALLS = "ML051", Info, "type method format", "calls that are never left",
        "They were running when the recording ended, or their leave was lost.",
        "Nothing has to be done: they are closed where their thread ends, and marked.";
    OUTSIDE_SHOT = "ML060", Error, "type heap format", "an object, or the end, of a heap shot that did not begin",
        "Its beginning was lost. mprof-report crashes.",
        "What is outside of a shot is left out.";
    OPEN_SHOT = "ML061", DataLoss, "type heap format", "a heap shot without end",
        "The process was killed while it was written. Objects that are not told look like dangling references.",
        "What there is is shown.";
}
