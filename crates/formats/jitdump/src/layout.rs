//! The fixed fields of JITDUMP's header and records, declared once as the specification's tables.

use perfuse_wire::layout;

layout! {
    /// The file header.
    FileHeader = "header", section "III" {
        /// 0x4A695444 in the writer's byte order: the bytes `DTiJ` on little-endian machines, `JiTD` on big-endian ones.
        magic: u32 as Hex,
        /// Version of the format: 1. Early Mono writes 2.
        version: u32,
        /// Size of this header in bytes, 40. Early Mono writes 8.
        total_size: u32,
        /// ELF `e_machine`; CPython 3.13.0 writes 0, Erlang writes x86-64 on every machine.
        elf_mach: u32,
        /// Reserved. V8 writes 0xDEADBEEF; LLVM ORC writes uninitialized memory.
        pad1: u32 as Hex,
        /// Process id in the process's own pid namespace.
        pid: u32,
        /// Time when the file was made; V8 and CPython write Unix microseconds instead of the records' clock.
        timestamp: u64,
        /// Bit 0: time stamps are the architecture's counter. Other bits are reserved; LLVM 19 ORC does not clear them.
        flags: u64 as Hex,
    }

    /// The header of every record.
    RecordPrefix = "record header", section "IV" {
        /// Kind of the record.
        id: u32,
        /// Size in bytes, this header included.
        total_size: u32,
        /// Time when the record was made, on the file's clock.
        timestamp: u64,
    }

    /// A function was compiled.
    Load = "JIT_CODE_LOAD", section "V" {
        /// Process id in the process's own pid namespace.
        pid: u32,
        /// Thread that compiled the function; not the OS thread id in files of Erlang, ART and .NET on macOS.
        tid: u32,
        /// Virtual address of the code; LLVM's MCJIT listener, ART and Julia write 0.
        vma: u64 as Hex,
        /// Address at which the code runs.
        code_addr: u64 as Hex,
        /// Size of the code in bytes; 0 is allowed.
        code_size: u64,
        /// The writer's number for this code; GraalVM uses a number more than once.
        code_index: u64,
    } then {
        /// Function name, UTF-8 in practice; runtimes add tier, file or line to it.
        name: CString,
        /// Machine code, `code_size` bytes.
        code: Bytes,
    }

    /// The code of a function was moved.
    Move = "JIT_CODE_MOVE", section "VI" {
        /// Process id.
        pid: u32,
        /// Thread id.
        tid: u32,
        /// New virtual address.
        vma: u64 as Hex,
        /// Address before the move.
        old_code_addr: u64 as Hex,
        /// Address after the move.
        new_code_addr: u64 as Hex,
        /// Size of the code in bytes; a move does not change it.
        code_size: u64,
        /// The `code_index` of the code's JIT_CODE_LOAD.
        code_index: u64,
    }

    /// Source lines of a function; precedes its JIT_CODE_LOAD.
    DebugInfo = "JIT_CODE_DEBUG_INFO", section "VII" {
        /// Address of the described function.
        code_addr: u64 as Hex,
        /// Number of entries that follow.
        nr_entry: u64,
    } then {
        /// `nr_entry` debug entries, each as long as its string, so they can only be read in sequence.
        entries: Array,
    }

    /// One source line of a JIT_CODE_DEBUG_INFO.
    DebugEntry = "debug_entry", section "VII" {
        /// Address at which the line begins; V8 and LLVM add 0x40 to it.
        code_addr: u64 as Hex,
        /// Line number, from 1; 0 for code that belongs to no line.
        line: u32,
        /// Column in files of V8, JavaScriptCore and SpiderMonkey; DWARF discriminator in files of LLVM; otherwise 0.
        discrim: u32,
    } then {
        /// Source file; the single byte 0xff repeats the previous entry's name.
        name: CString,
    }

    /// Unwinding information of a function; precedes its JIT_CODE_LOAD.
    UnwindingInfo = "JIT_CODE_UNWINDING_INFO", section "IX" {
        /// Size in bytes of `unwinding_data`.
        unwind_data_size: u64,
        /// Size in bytes of the `.eh_frame_hdr` in `unwinding_data`.
        eh_frame_hdr_size: u64,
        /// Bytes of `unwinding_data` that the process mapped after the code; 0 for none.
        mapped_size: u64,
    } then {
        /// `.eh_frame_hdr` and `.eh_frame`; V8 and CPython (and perf) put the header last, LLVM ORC first.
        unwinding_data: Bytes,
    }
}
