//! The fixed fields of the file header and the buffer header; events follow in [`events`].

pub mod events;

use perfuse_wire::layout;

pub use crate::layout::events::EventLayout;

layout! {
    /// Starts the file. Always little-endian.
    FileHeader = "header", section "header format" {
        /// 0x4D505A01: the bytes `01 5A 50 4D`.
        id: u32,
        /// Major version of the profiler: 0 to 3.
        major: u8,
        /// Minor version of the profiler.
        minor: u8,
        /// Data version: 1 to 17. The layout of everything after the header depends on it.
        format: u8,
        /// Size of a pointer in the profiled program: 4 or 8.
        ptrsize: u8,
        /// Start of the program, in milliseconds since 1970, whole seconds; 0 from profiler 0.1.
        startup_time: u64,
    } then {
        /// 8 bytes, only since major 3: start of the program on the clock of the events, in nanoseconds.
        startup_ns: Bytes,
        /// Duration of one reading of the clock, in nanoseconds; 0 from profiler 0.1.
        timer_overhead: U32,
        /// Always 0.
        flags: U32,
        /// Process id; 0 in data version 1.
        pid: U32,
        /// Port of the profiler's command server; since data version 4.
        port: U16,
        /// Major 0 only: always 0. The header is then 32 bytes long.
        sysid: U16,
        /// Since major 1: size of `args` with its NUL.
        len_args: U32,
        /// The options of the profiler.
        args: Bytes,
        /// Since major 1: size of `arch`.
        len_arch: U32,
        /// Architecture of the runtime.
        arch: Bytes,
        /// Since major 1: size of `os`.
        len_os: U32,
        /// Operating system of the runtime.
        os: Bytes,
    }

    /// Starts every buffer of events of one thread.
    BufferHeader = "buffer header", section "buffer header format" {
        /// 0x4D504C01: the bytes `01 4C 50 4D`.
        bufid: u32,
        /// Size in bytes of the events that follow.
        len: u32,
        /// Creation time of the buffer, in nanoseconds of a monotonic clock.
        time_base: u64,
        /// Base of pointers.
        ptr_base: u64,
        /// Base of object addresses, in units of 8 bytes.
        obj_base: u64,
        /// Thread id: `pthread_t` on Linux; 0 for the profiler's own writer thread in data versions 9 to 13.
        thread_id: u64,
        /// Base of the first method.
        method_base: u64,
    }
}
