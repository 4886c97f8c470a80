//! The fixed fields of JITDUMP, declared once as the specification's tables.

use perfuse_wire::layout;

layout! {
    /// Begins the file.
    FileHeader = "header", section "III" {
        /// 0x4A695444 in the writer's byte order: the bytes `DTiJ` on little-endian machines, `JiTD` on big-endian ones.
        magic: u32,
        /// Version of the format: 1. Early Mono wrote 2.
        version: u32,
        /// Size of this header in bytes, 40. Early Mono wrote 8.
        total_size: u32,
        /// ELF `e_machine`; CPython 3.13.0 wrote 0, Erlang writes x86-64 everywhere.
        elf_mach: u32,
        /// Reserved. V8 writes 0xDEADBEEF; LLVM ORC whatever was on its stack.
        pad1: u32,
        /// Process id as the process itself sees it (the pid of its own namespace).
        pid: u32,
        /// When the file was made; V8 and CPython give Unix microseconds instead of the records' clock.
        timestamp: u64,
        /// Bit 0: the time stamps are the architecture's counter. Other bits are reserved; LLVM 19 ORC leaves garbage.
        flags: u64,
    }

    /// Begins every record.
    RecordPrefix = "record header", section "IV" {
        /// Kind of the record.
        id: u32,
        /// Size in bytes, this header included.
        total_size: u32,
        /// When the record was made, on the file's clock.
        timestamp: u64,
    }

    /// A function was compiled.
    Load = "JIT_CODE_LOAD", section "V" {
        /// Process id, in the process's own namespace.
        pid: u32,
        /// Thread that compiled it; not the OS tid with Erlang, ART and .NET on macOS.
        tid: u32,
        /// Virtual address of the code; LLVM's MCJIT listener, ART and Julia write 0.
        vma: u64,
        /// Address the code runs at.
        code_addr: u64,
        /// Size of the code in bytes; 0 is allowed.
        code_size: u64,
        /// The writer's number for this code; GraalVM repeats it.
        code_index: u64,
    } then {
        /// Function name, UTF-8 in practice, with whatever the runtime packs into it (tier, file, line).
        name: CString,
        /// Machine code, `code_size` bytes.
        code: Bytes,
    }

    /// A function's code was moved.
    Move = "JIT_CODE_MOVE", section "VI" {
        /// Process id.
        pid: u32,
        /// Thread id.
        tid: u32,
        /// New virtual address.
        vma: u64,
        /// Address before.
        old_code_addr: u64,
        /// Address from now on.
        new_code_addr: u64,
        /// Size of the code in bytes; it cannot change.
        code_size: u64,
        /// The `code_index` its JIT_CODE_LOAD had.
        code_index: u64,
    }

    /// Source lines of a function, before its JIT_CODE_LOAD.
    DebugInfo = "JIT_CODE_DEBUG_INFO", section "VII" {
        /// Address of the function described.
        code_addr: u64,
        /// Number of entries that follow.
        nr_entry: u64,
    } then {
        /// `nr_entry` debug entries, each with its own string, so they can only be walked.
        entries: Array,
    }

    /// One line of a JIT_CODE_DEBUG_INFO.
    DebugEntry = "debug_entry", section "VII" {
        /// Address the line begins at; V8 and LLVM add 0x40 to it.
        code_addr: u64,
        /// Line, from 1; 0 for code of no line.
        line: u32,
        /// Column with V8, JavaScriptCore and SpiderMonkey; DWARF discriminator with LLVM; 0 elsewhere.
        discrim: u32,
    } then {
        /// Source file; the byte 0xff alone repeats the previous entry's.
        name: CString,
    }

    /// Unwinding information of a function, before its JIT_CODE_LOAD.
    UnwindingInfo = "JIT_CODE_UNWINDING_INFO", section "IX" {
        /// Size in bytes of `unwinding_data`.
        unwind_data_size: u64,
        /// Size in bytes of the `.eh_frame_hdr` in it.
        eh_frame_hdr_size: u64,
        /// Bytes of it the process had mapped after the code; 0 where it had not.
        mapped_size: u64,
    } then {
        /// `.eh_frame_hdr` and `.eh_frame`; V8 and CPython (and perf) put the header last, LLVM ORC first.
        unwinding_data: Bytes,
    }
}
