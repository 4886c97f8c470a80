//! The fixed fields of a log, declared once as tables; what is not fixed follows in [`events`].

mod declaration;
pub mod events;

pub use declaration::EventLayout;
use perfuse_wire::layout;

layout! {
    /// Begins the file. Little-endian always.
    FileHeader = "header", section "header format" {
        /// 0x4D505A01: the bytes `01 5A 50 4D`.
        id: u32,
        /// Major version of the profiler: 0 to 3.
        major: u8,
        /// Minor version of the profiler.
        minor: u8,
        /// Data version: 1 to 17. What the layout of everything else depends on.
        format: u8,
        /// Size of a pointer in the profiled program: 4 or 8.
        ptrsize: u8,
        /// Start of the program, in milliseconds since 1970, whole seconds; 0 from profiler 0.1.
        startup_time: u64,
    } then {
        /// 8 bytes, since major 3 only: start of the program on the events' clock, in nanoseconds.
        startup_ns: Bytes,
        /// What one reading of the clock costs, in nanoseconds; 0 from profiler 0.1.
        timer_overhead: U32,
        /// 0.
        flags: U32,
        /// Process id; 0 in data version 1.
        pid: U32,
        /// Port the profiler takes commands on; since data version 4.
        port: U16,
        /// Major 0 only: 0. The header is 32 bytes long then.
        sysid: U16,
        /// Since major 1: size of `args`, its NUL included.
        len_args: U32,
        /// The profiler's options as given.
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

    /// Begins every buffer: the events of one thread.
    BufferHeader = "buffer header", section "buffer header format" {
        /// 0x4D504C01: the bytes `01 4C 50 4D`.
        bufid: u32,
        /// Size in bytes of the events that follow.
        len: u32,
        /// When the buffer was made, in nanoseconds of a monotonic clock.
        time_base: u64,
        /// What pointers are differences to.
        ptr_base: u64,
        /// What object addresses are differences to, in units of 8 bytes.
        obj_base: u64,
        /// Thread: its `pthread_t` on Linux; 0 for the profiler's own writer in data versions 9 to 13.
        thread_id: u64,
        /// What the first method is a difference to.
        method_base: u64,
    }
}
