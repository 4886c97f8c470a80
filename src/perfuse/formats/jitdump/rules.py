"""What each rule about JITDUMP means, and what to do."""

from perfuse.diagnostics import Explanation

RULES: dict[str, Explanation] = {
    "JD001": Explanation(
        title="version is not 1",
        meaning="The format has one version, 1. Early Mono wrote 2 for the same content; perf refuses the file.",
        action="`perfuse repair` writes version 1.",
    ),
    "JD002": Explanation(
        title="header size is not 40",
        meaning=(
            "Early Mono wrote the size of a pointer. perf skips extra header bytes wrongly and then finds no "
            "function, silently."
        ),
        action="`perfuse repair` writes a header of 40 bytes.",
    ),
    "JD003": Explanation(
        title="reserved flag bits are set",
        meaning="LLVM 19's ORC plug-in leaves `flags` uninitialised. perf refuses the file.",
        action="`perfuse repair` clears them.",
    ),
    "JD004": Explanation(
        title="time stamps are the processor's counter",
        meaning="JITDUMP_FLAGS_ARCH_TIMESTAMP: the times are ticks (TSC on x86), not nanoseconds.",
        action="Joining needs the counter's rate: perf.data may have it, else it is estimated from the recording.",
    ),
    "JD006": Explanation(
        title="unknown machine",
        meaning="`elf_mach` is 0 (CPython 3.13.0, SpiderMonkey on RISC-V) or an unregistered number.",
        action="No action is needed; an ELF made from the dump takes this machine's.",
    ),
    "JD007": Explanation(
        title="the header's time is of another clock than the records'",
        meaning=(
            "V8 and CPython write Unix microseconds there. Readers that take the header's time for the start are 50 "
            "years off."
        ),
        action="No action is needed.",
    ),
    "JD008": Explanation(
        title="the reserved word pad1 is not 0",
        meaning="V8 writes 0xDEADBEEF, which identifies its dumps; LLVM ORC leaves what was on its stack.",
        action="No action is needed.",
    ),
    "JD009": Explanation(
        title="another header in the middle of the file",
        meaning=(
            "A writer appended to a file that was there (wasmtime does): the part before it belongs to an earlier "
            "process of that pid."
        ),
        action="`perfuse repair` keeps the last part. Remove old dumps before recording.",
    ),
    "JD010": Explanation(
        title="the file ends inside a record",
        meaning=(
            "The process was killed, or still runs: V8 buffers 2 MiB. All complete records were read; perf stops here "
            "silently."
        ),
        action="End the process normally, or read the file again later. `perfuse repair` removes the tail.",
    ),
    "JD011": Explanation(
        title="bytes that are not a record",
        meaning=(
            "A size does not lead to another record. Reading went on at the next offset at which a plausible record "
            "starts."
        ),
        action="`perfuse records --range` shows the place; `perfuse repair` omits the bytes.",
    ),
    "JD012": Explanation(
        title="a record is smaller than its own header",
        meaning="`total_size` is less than 16. perf stops here silently.",
        action="`perfuse repair` omits it.",
    ),
    "JD013": Explanation(
        title="unknown record kind",
        meaning="Neither the specification nor samply's extensions have this number. It is preserved byte for byte.",
        action="No action is needed.",
    ),
    "JD014": Explanation(
        title="time stamps decrease",
        meaning=(
            "Several threads write (.NET, JavaScriptCore), or in batches (LLVM ORC). Joins go by time, not by order."
        ),
        action="No action is needed.",
    ),
    "JD015": Explanation(
        title="time stamp is 0",
        meaning="Mono without clock_gettime writes 0. The code is treated as present for the whole recording.",
        action="Record with a runtime built with clock_gettime.",
    ),
    "JD016": Explanation(
        title="records follow JIT_CODE_CLOSE",
        meaning="perf ends at any JIT_CODE_CLOSE and drops them; perfuse continues reading.",
        action="`perfuse repair` moves JIT_CODE_CLOSE to the end.",
    ),
    "JD017": Explanation(
        title="a record is too short for its fields",
        meaning="The fixed fields of its kind do not fit in `total_size`.",
        action="`perfuse repair` omits it.",
    ),
    "JD018": Explanation(
        title="the file has no record",
        meaning="The header is there and nothing else: nothing was compiled, or it is still in the writer's buffer.",
        action="Let the program run longer, or end it normally.",
    ),
    "JD021": Explanation(
        title="the function name has no NUL",
        meaning="The name is assumed to end where `code_size` bytes of code begin; perf lets it run into the code.",
        action="`perfuse repair` ends it.",
    ),
    "JD022": Explanation(
        title="code_size is larger than its record",
        meaning=(
            "The bytes that are present were used as the code. perf 6.1 copies other memory into its ELF file, perf "
            "7.2 crashes."
        ),
        action="`perfuse repair` writes the actual size.",
    ),
    "JD023": Explanation(
        title="bytes follow the code",
        meaning=(
            "The writer padded the record. perf takes the last `code_size` bytes for the code, which are then shifted."
        ),
        action="`perfuse repair` removes the padding.",
    ),
    "JD024": Explanation(
        title="vma is not code_addr",
        meaning="LLVM's MCJIT listener, ART and Julia write 0.",
        action="No action is needed: `code_addr` counts.",
    ),
    "JD025": Explanation(
        title="function name is not ASCII",
        meaning="Names are UTF-8 in practice.",
        action="No action is needed.",
    ),
    "JD026": Explanation(
        title="function name is not UTF-8",
        meaning="Bytes that are not UTF-8 are shown as U+FFFD.",
        action="No action is needed; the bytes stay as they are in conversions.",
    ),
    "JD027": Explanation(
        title="function name is longer than 255 bytes or has a line break",
        meaning=".NET's signatures are that long. Some tools cut them.",
        action="No action is needed.",
    ),
    "JD028": Explanation(
        title="code_index is reused",
        meaning=(
            "GraalVM writes a hash of the name, .NET counts without a lock. perf names its files by it: the last one "
            "wins."
        ),
        action="`perfuse repair` renumbers; perfuse itself uses address and time.",
    ),
    "JD029": Explanation(
        title="code replaces other code at the same address",
        meaning="The code cache reuses the address. Which function an address belongs to depends on the time.",
        action="No action is needed.",
    ),
    "JD030": Explanation(
        title="thread id of 64 bits",
        meaning="CPython on macOS writes a longer record than the specification's. No other tool reads it.",
        action="`perfuse repair` writes the specification's layout.",
    ),
    "JD031": Explanation(
        title="record of another process",
        meaning="`pid` is not the header's. A forked child continued to write to its parent's file.",
        action="Code is kept apart by process.",
    ),
    "JD032": Explanation(
        title="function without code",
        meaning="Allowed; no address can be in it.",
        action="No action is needed.",
    ),
    "JD034": Explanation(
        title="thread id is not one of the operating system's",
        meaning="It is larger than any Linux thread id: Erlang writes part of a pthread_t.",
        action="No action is needed: samples bring their own thread ids.",
    ),
    "JD040": Explanation(
        title="move of code that was never loaded",
        meaning="No JIT_CODE_LOAD has its `code_index`.",
        action="`perfuse repair` omits it.",
    ),
    "JD041": Explanation(
        title="move does not fit its code",
        meaning="Size or old address are not the code's.",
        action="The new address is used.",
    ),
    "JD042": Explanation(
        title="vma of a move is not new_code_addr",
        meaning="They should be equal.",
        action="No action is needed: `new_code_addr` counts.",
    ),
    "JD051": Explanation(
        title="nr_entry is larger than the number of entries present",
        meaning="The entries that are present were read. perf 6.1 and 7.2 crash on large numbers.",
        action="`perfuse repair` writes the actual number.",
    ),
    "JD052": Explanation(
        title="entry addresses are an ELF header's size too high",
        meaning=(
            "V8 and LLVM add 0x40 (0x34 on 32-bit machines), which perf subtracted until 2022. perf and samply show "
            "shifted lines now."
        ),
        action="perfuse subtracts it; `perfuse repair` writes true addresses, which perf then shows correctly.",
    ),
    "JD053": Explanation(
        title="the first 16 bytes of file names are overwritten",
        meaning=(
            "V8 writes the name of a script from freed memory, often with NULs, so that other readers misparse the "
            "record. The entries were read at their constant stride and the names were restored from the function's "
            "own name."
        ),
        action="`perfuse repair` writes whole names.",
    ),
    "JD054": Explanation(
        title="the first 16 bytes of file names are lost",
        meaning=(
            "As JD053, but the function's own name does not contain the file name: only the end of the file name is "
            "known."
        ),
        action="Nothing can be done for this file.",
    ),
    "JD055": Explanation(
        title="debug information does not immediately precede its code",
        meaning=(
            "LLVM ORC writes all JIT_CODE_DEBUG_INFO of an object, then all its JIT_CODE_LOAD. perf and samply assign "
            "the lines to the wrong functions; perfuse pairs records by address."
        ),
        action="`perfuse repair` puts each before its code.",
    ),
    "JD056": Explanation(
        title="debug information comes after its code",
        meaning="It must precede the code. perf assigns the lines to the next function.",
        action="`perfuse repair` puts it before.",
    ),
    "JD057": Explanation(
        title="debug information without code",
        meaning=(
            "No JIT_CODE_LOAD has its address: the compiler discarded the code before installing it, or the record is "
            "lost."
        ),
        action="`perfuse repair` omits it.",
    ),
    "JD058": Explanation(
        title="file names are written as repetitions",
        meaning=(
            "The name 0xff stands for the previous one: in perf's header file, not in the specification. V8 wrote "
            "this for some releases."
        ),
        action="No action is needed; samply and linux-perf-data do not read it.",
    ),
    "JD059": Explanation(
        title="code without a source line",
        meaning="Line 0 marks code that belongs to no source line (LLVM).",
        action="No action is needed.",
    ),
    "JD060": Explanation(
        title="an entry marks the end of the code",
        meaning="Erlang and QEMU end with an entry of line 0 and no file at the end of the code.",
        action="No action is needed.",
    ),
    "JD061": Explanation(
        title="entries are not in address order",
        meaning="V8's optimised code. Readers that use binary search return wrong lines.",
        action="No action is needed.",
    ),
    "JD062": Explanation(
        title="entries at one address",
        meaning="JavaScriptCore, LLVM: the last one applies.",
        action="No action is needed.",
    ),
    "JD063": Explanation(
        title="entries before the code",
        meaning="Erlang's first entry describes the header that precedes the code.",
        action="They are applied at the start of the code.",
    ),
    "JD064": Explanation(
        title="entries past the end of the code",
        meaning="They cannot belong to an instruction.",
        action="They are omitted.",
    ),
    "JD065": Explanation(
        title="more than padding follows the entries",
        meaning="Up to 7 bytes are padding; more are unknown content.",
        action="`perfuse records` shows them; `perfuse repair` omits them.",
    ),
    "JD066": Explanation(
        title="debug information was given twice",
        meaning="A second JIT_CODE_DEBUG_INFO for one address came before the code. The second applies.",
        action="`perfuse repair` omits the first.",
    ),
    "JD067": Explanation(
        title="lines of baseline code are at bytecode offsets",
        meaning="For code of Sparkplug, the baseline compiler, V8 writes offsets in bytecode in place of addresses. "
        "These lines were omitted; the line at which the function starts is known.",
        action="`perfuse repair` omits these records, so that other readers show no wrong lines.",
    ),
    "JD070": Explanation(
        title="unwinding data is larger than its record",
        meaning="The data that is there was used.",
        action="`perfuse repair` omits it.",
    ),
    "JD071": Explanation(
        title=".eh_frame comes before .eh_frame_hdr",
        meaning="V8 and CPython write this order and perf reads it; the specification has the opposite one.",
        action="No action is needed: perfuse detects the order from the bytes.",
    ),
    "JD072": Explanation(
        title=".eh_frame_hdr comes before .eh_frame",
        meaning="The specification's order; LLVM ORC. perf takes the last bytes for the header and cannot unwind.",
        action="`perfuse repair` writes perf's order.",
    ),
    "JD073": Explanation(
        title="unwinding information without frames",
        meaning="Only an empty .eh_frame_hdr: the function keeps a frame pointer.",
        action="No action is needed.",
    ),
    "JD074": Explanation(
        title="mapped_size is neither 0 nor the data's size",
        meaning="CPython rounds it up; perf needs the space after the code.",
        action="No action is needed.",
    ),
    "JD075": Explanation(
        title="unwinding data contains no .eh_frame_hdr",
        meaning="Neither end of the data is a version 1 header with known encodings.",
        action="The data stays as it is.",
    ),
    "JD076": Explanation(
        title="unwinding information of several functions",
        meaning="LLVM ORC writes one record for an object. perf assigns it to the next function only.",
        action="No action is needed.",
    ),
    "JD080": Explanation(
        title="inline record is inconsistent",
        meaning="Counts, sizes or indices contradict each other in every known layout.",
        action="It is preserved byte for byte; its lines are not used.",
    ),
    "JD081": Explanation(
        title="inline-aware debug information",
        meaning=(
            "One of four layouts under three numbers, distinguished by structure. perf does not know it; released "
            "versions of samply do not know it either."
        ),
        action="No action is needed.",
    ),
    "JD082": Explanation(
        title="payload of an unpublished layout",
        meaning=(
            "The document defines no layout for SAMPLY_JIT_TIER and SAMPLY_EMBEDDED_SOURCE_FILE, and the payload does "
            "not have the layout that perfuse writes."
        ),
        action="It is preserved byte for byte.",
    ),
}
