//! Every way a dump departs from its specification, numbered: 00x the header, 01x the sequence of records, 02x-03x
//! JIT_CODE_LOAD, 04x JIT_CODE_MOVE, 05x-06x JIT_CODE_DEBUG_INFO, 07x JIT_CODE_UNWINDING_INFO, 08x samply's records.

use perfuse_wire::rules;

rules! {
    VERSION = "JD001", Warning, "III", "version is not 1",
        "The format has one version, 1. Early Mono wrote 2 for the same content; perf refuses the file.",
        "`perfuse repair` writes version 1.";
    HEADER_SIZE = "JD002", Warning, "III", "header size is not 40",
        "Early Mono wrote the size of a pointer. perf skips extra header bytes wrongly and then finds no function, without a word.",
        "`perfuse repair` writes a header of 40 bytes.";
    RESERVED_FLAGS = "JD003", Warning, "III", "reserved flag bits are set",
        "LLVM 19's ORC plug-in leaves `flags` uninitialised. perf refuses the file.",
        "`perfuse repair` clears them.";
    ARCH_TIMESTAMP = "JD004", Info, "III", "time stamps are the processor's counter",
        "JITDUMP_FLAGS_ARCH_TIMESTAMP: the times are ticks (TSC on x86), not nanoseconds.",
        "Joining needs the counter's rate: perf.data may have it, else it is estimated from the recording.";
    MACHINE = "JD006", Info, "III", "machine is not known",
        "`elf_mach` is 0 (CPython 3.13.0, SpiderMonkey on RISC-V) or a number nobody registered.",
        "Nothing has to be done; an ELF made from the dump takes this machine's.";
    HEADER_CLOCK = "JD007", Info, "III", "the header's time is of another clock than the records'",
        "V8 and CPython write Unix microseconds there. Readers that take the header's time for the start are 50 years off.",
        "Nothing has to be done.";
    PAD = "JD008", Info, "III", "the reserved word pad1 is not 0",
        "V8 writes 0xDEADBEEF, which tells its dumps apart; LLVM ORC leaves what was on its stack.",
        "Nothing has to be done.";
    SECOND_HEADER = "JD009", Warning, "III", "another header in the middle of the file",
        "A writer appended to a file that was there (wasmtime does): what lies before belongs to an earlier process of that pid.",
        "`perfuse repair` keeps the last part. Remove old dumps before recording.";
    TRUNCATED = "JD010", DataLoss, "IV", "the file ends inside a record",
        "The process was killed, or still runs: V8 buffers 2 MiB. All whole records were read; perf stops here without a word.",
        "End the process in an orderly way, or read the file again later. `perfuse repair` cuts the tail off.";
    LOST = "JD011", Error, "IV", "bytes that are no record",
        "A size does not lead to another record. Reading went on at the next place where a record holds together.",
        "`perfuse records --range` shows the place; `perfuse repair` leaves the bytes out.";
    RECORD_SIZE = "JD012", Error, "IV", "a record is smaller than its own header",
        "`total_size` is less than 16. perf stops here without a word.",
        "`perfuse repair` leaves it out.";
    UNKNOWN_RECORD = "JD013", Info, "IV", "record of unknown kind",
        "Neither the specification nor samply's extensions have this number. It is kept byte for byte.",
        "Nothing has to be done.";
    TIME_BACK = "JD014", Info, "IV", "time goes back",
        "Several threads write (.NET, JavaScriptCore), or in batches (LLVM ORC). Joins go by time, not by order.",
        "Nothing has to be done.";
    TIME_ZERO = "JD015", Warning, "IV", "time stamp is 0",
        "Mono without clock_gettime writes 0. The code is taken to have been there all the time.",
        "Record with a runtime built with clock_gettime.";
    AFTER_CLOSE = "JD016", Warning, "VIII", "records follow JIT_CODE_CLOSE",
        "perf ends at any JIT_CODE_CLOSE and drops them; perfuse reads on.",
        "`perfuse repair` moves JIT_CODE_CLOSE to the end.";
    SHORT_RECORD = "JD017", Error, "IV", "a record is too short for its fields",
        "The fixed fields of its kind do not fit in `total_size`.",
        "`perfuse repair` leaves it out.";
    NO_RECORDS = "JD018", Warning, "IV", "the file has no record",
        "The header is there and nothing else: nothing was compiled, or it is still in the writer's buffer.",
        "Let the program run longer, or end it in an orderly way.";
    NAME_END = "JD021", Error, "V", "the function name has no NUL",
        "The name was taken to end where `code_size` bytes of code begin; perf lets it run into the code.",
        "`perfuse repair` ends it.";
    CODE_SIZE = "JD022", Error, "V", "code_size is larger than its record",
        "The code that is there was taken. perf 6.1 copies other memory into its ELF file, perf 7.2 crashes.",
        "`perfuse repair` writes the size that is there.";
    LOAD_PADDING = "JD023", Info, "V", "bytes follow the code",
        "The writer padded the record. perf takes the last `code_size` bytes for the code, which are shifted then.",
        "`perfuse repair` removes the padding.";
    VMA = "JD024", Info, "V", "vma is not code_addr",
        "LLVM's MCJIT listener, ART and Julia write 0.",
        "Nothing has to be done: `code_addr` counts.";
    NAME_ENCODING = "JD025", Info, "V", "function name is not ASCII",
        "Names are UTF-8 in practice.",
        "Nothing has to be done.";
    NAME_NOT_TEXT = "JD026", Warning, "V", "function name is not UTF-8",
        "Bytes that are no UTF-8 are shown as U+FFFD.",
        "Nothing has to be done; the bytes stay as they are in conversions.";
    LONG_NAME = "JD027", Info, "V", "function name is longer than 255 bytes or has a line break",
        ".NET's signatures are that long. Some tools cut them.",
        "Nothing has to be done.";
    CODE_INDEX = "JD028", Warning, "V", "code_index is used again",
        "GraalVM writes a hash of the name, .NET counts without a lock. perf names its files by it: the last one wins.",
        "`perfuse repair` numbers anew; perfuse itself goes by address and time.";
    REUSED = "JD029", Info, "V", "code takes the place of other code",
        "A code cache is used again. Which function an address is of depends on the time.",
        "Nothing has to be done.";
    WIDE_TID = "JD030", Info, "V", "thread id of 64 bits",
        "CPython on macOS writes a longer record than the specification's. No other tool reads it.",
        "`perfuse repair` writes the specification's layout.";
    FOREIGN_PID = "JD031", Warning, "V", "record of another process",
        "`pid` is not the header's. A fork went on writing to its parent's file.",
        "Code is kept apart by process.";
    EMPTY_CODE = "JD032", Info, "V", "function without code",
        "Allowed; no address can be in it.",
        "Nothing has to be done.";
    STRANGE_TID = "JD034", Info, "V", "thread id is none of the operating system's",
        "It is larger than Linux gives: Erlang writes part of a pthread_t.",
        "Nothing has to be done: samples bring their own thread ids.";
    MOVE_OF_NOTHING = "JD040", Error, "VI", "move of code that was never loaded",
        "No JIT_CODE_LOAD has its `code_index`.",
        "`perfuse repair` leaves it out.";
    MOVE_CONTRADICTS = "JD041", Error, "VI", "move does not fit its code",
        "Size or old address are not the code's.",
        "The new address is believed.";
    MOVE_VMA = "JD042", Info, "VI", "vma of a move is not new_code_addr",
        "They should be equal.",
        "Nothing has to be done: `new_code_addr` counts.";
    ENTRIES_MISSING = "JD051", DataLoss, "VII", "nr_entry promises more entries than there are",
        "The entries that are there were read. perf 6.1 and 7.2 crash on large numbers.",
        "`perfuse repair` writes the number that is there.";
    SKEW = "JD052", Warning, "VII", "entry addresses are an ELF header's size too high",
        "V8 and LLVM add 0x40 (0x34 on 32-bit machines), which perf took off until 2022. perf and samply show shifted lines now.",
        "perfuse takes it off; `perfuse repair` writes true addresses, which perf then shows right.";
    CORRUPT_NAMES = "JD053", Warning, "VII", "file names had lost their first 16 bytes",
        "V8 writes the name of a script from freed memory, often with NULs, so that other readers lose their way in the record. \
         The entries were walked at their constant distance and the names restored from the function's own.",
        "`perfuse repair` writes whole names.";
    LOST_NAMES = "JD054", DataLoss, "VII", "file names lost their first 16 bytes",
        "As JD053, but the function's own name does not tell the file: only its end is known.",
        "Nothing can be done for this file.";
    BATCHED = "JD055", Warning, "VII", "debug information is not right before its code",
        "LLVM ORC writes all JIT_CODE_DEBUG_INFO of an object, then all its JIT_CODE_LOAD. perf and samply give the lines to the \
         wrong functions; perfuse pairs by address.",
        "`perfuse repair` puts each before its code.";
    DEBUG_AFTER = "JD056", Warning, "VII", "debug information comes after its code",
        "It must come before. perf gives the lines to the next function.",
        "`perfuse repair` puts it before.";
    DEBUG_ORPHAN = "JD057", Warning, "VII", "debug information without code",
        "No JIT_CODE_LOAD has its address: the code was dropped before it was installed, or the record is lost.",
        "`perfuse repair` leaves it out.";
    REPEATED_NAME = "JD058", Info, "VII", "file names are written as repetitions",
        "The name 0xff stands for the previous one: in perf's header file, not in the specification. One generation of V8 did so.",
        "Nothing has to be done; samply and linux-perf-data do not read it.";
    LINE_ZERO = "JD059", Info, "VII", "code of no line",
        "Line 0 marks code that belongs to no source line (LLVM).",
        "Nothing has to be done.";
    TERMINATOR = "JD060", Info, "VII", "an entry marks the end of the code",
        "Erlang and QEMU end with an entry of line 0 and no file at the end of the code.",
        "Nothing has to be done.";
    UNSORTED = "JD061", Info, "VII", "entries are not in address order",
        "V8's optimised code. Readers that search by halves go wrong.",
        "Nothing has to be done.";
    DUPLICATE_ADDRESS = "JD062", Info, "VII", "entries at one address",
        "JavaScriptCore, LLVM: the last one holds.",
        "Nothing has to be done.";
    BEFORE_CODE = "JD063", Info, "VII", "entries before the code",
        "Erlang's first entry is of the header in front of the code.",
        "They are taken to hold at its start.";
    PAST_CODE = "JD064", Warning, "VII", "entries past the end of the code",
        "They can be of no instruction.",
        "They are left out.";
    DEBUG_PADDING = "JD065", Warning, "VII", "more than padding follows the entries",
        "Up to 7 bytes are padding; more were meant to be something.",
        "`perfuse records` shows them.";
    DEBUG_REPLACED = "JD066", Warning, "VII", "debug information was given twice",
        "A second JIT_CODE_DEBUG_INFO for one address came before the code. The second holds.",
        "`perfuse repair` leaves the first out.";
    UNWIND_SIZE = "JD070", Error, "IX", "unwinding data is larger than its record",
        "The data that is there was taken.",
        "`perfuse repair` leaves it out.";
    FRAME_FIRST = "JD071", Info, "IX", ".eh_frame comes before .eh_frame_hdr",
        "V8 and CPython, and what perf reads, against the specification.",
        "Nothing has to be done: perfuse tells by the bytes.";
    HEADER_FIRST = "JD072", Warning, "IX", ".eh_frame_hdr comes before .eh_frame",
        "The specification's order; LLVM ORC. perf takes the last bytes for the header and cannot unwind.",
        "`perfuse repair` writes perf's order.";
    HEADER_ONLY = "JD073", Info, "IX", "unwinding information without frames",
        "Only an empty .eh_frame_hdr: the function keeps a frame pointer.",
        "Nothing has to be done.";
    MAPPED_SIZE = "JD074", Info, "IX", "mapped_size is neither 0 nor the data's size",
        "CPython rounds it up; perf needs the room behind the code.",
        "Nothing has to be done.";
    UNWIND_UNREADABLE = "JD075", Warning, "IX", "unwinding data holds no .eh_frame_hdr",
        "Neither end reads as version 1 with known encodings.",
        "The data stays as it is.";
    UNWIND_SHARED = "JD076", Info, "IX", "unwinding information of several functions",
        "LLVM ORC writes one record for an object. perf gives it to the next function only.",
        "Nothing has to be done.";
    INLINE_INVALID = "JD080", Error, "samply", "inline record does not hold together",
        "Counts, sizes or indices contradict each other in every known layout.",
        "It is kept byte for byte; its lines are not used.";
    INLINE_DIALECT = "JD081", Info, "samply", "inline-aware debug information",
        "One of four layouts under three numbers, told apart by structure. perf does not know it; samply's releases do not either.",
        "Nothing has to be done.";
    FOREIGN_PAYLOAD = "JD082", Info, "samply", "payload of a layout nobody published",
        "The document gives SAMPLY_JIT_TIER and SAMPLY_EMBEDDED_SOURCE_FILE no layout, and this is not perfuse's.",
        "It is kept byte for byte.";
}
