//! Code of the kernel that appears, disappears and changes during a recording.

use crate::schema::table;

table! {
    /// One row for each change of the kernel's code (`perf record -e intel_pt//`, and other recordings with `text_poke`).
    text_pokes {
        /// Time on the profile's clock, in nanoseconds; null where not recorded.
        ts_ns: Opt<i64>,
        /// First address.
        address: u64,
        /// The bytes before; empty for new code.
        old_bytes: Binary,
        /// The bytes since; empty for removed code.
        new_bytes: Binary,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}

table! {
    /// One row for each symbol that is added to the kernel or removed from it, such as those of BPF programs, which name frames.
    kernel_symbols {
        /// Time on the profile's clock, in nanoseconds; null for a symbol from before the recording.
        ts_ns: Opt<i64>,
        /// First address.
        start_address: u64,
        /// Size in bytes.
        size_bytes: u64,
        /// `bpf`, `out_of_line`; null where not recorded.
        kind: Opt<Str>,
        /// Whether it is removed.
        removed: bool,
        /// Name.
        name: Str,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}
