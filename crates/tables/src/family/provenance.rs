//! Where everything came from, on which clock, and what was wrong with it.

use crate::column::choices;
use crate::schema::table;

table! {
    /// One row a file that was read.
    sources {
        /// Surrogate key.
        source_id: u32,
        /// Format name in the registry: `jitdump`, `perf_data`, `xray`.
        format: Str,
        /// Version as the file states it.
        version: Opt<Str>,
        /// Path as given, `-` for standard input.
        path: Str,
        /// Size in bytes, after decompression.
        size_bytes: u64,
        /// `little` or `big`.
        endian: Str,
        /// Size of a pointer on the recorded machine, in bytes.
        pointer_bytes: Opt<u8>,
        /// Machine the code is for, as `uname -m` spells it.
        arch: Opt<Str>,
        /// Program that wrote the file, where its habits tell.
        producer: Opt<Str>,
        /// Clock of the file's own time stamps.
        clock_id: u32,
    }
}

choices! {
    /// How a recording's time stamps were put on the profile's clock.
    Alignment {
        /// The recording and the profile have the same clock; exact.
        SameClock = "same_clock",
        /// The time at which the process mapped the dump is recorded on both clocks.
        Marker = "marker",
        /// As `marker`; the rate of the counter was estimated.
        MarkerAndRate = "marker_and_rate",
        /// The samples' recording states how the processor's counter converts to its clock.
        TimeConv = "time_conv",
        /// The recording contains times of the wall clock or another system clock beside its counter.
        WallTime = "wall_time",
        /// The latest offset at which no code runs before it was created.
        FirstUse = "first_use",
        /// No time is known on both clocks; offsets are not meaningful.
        NotAligned = "none",
    }
}

table! {
    /// One row a clock that a source's time stamps were taken from, and how it was put on the profile's clock.
    clocks {
        /// Surrogate key.
        clock_id: u32,
        /// Source whose clock it is.
        source_id: u32,
        /// `monotonic`, `tsc`, `realtime`, `perf` (the kernel's sched clock) or `unknown`.
        kind: Str,
        /// Ticks a second; 1,000,000,000 for nanosecond clocks.
        hz: Opt<u64>,
        /// Where the rate is from: `defined`, `header`, `estimated` (from what the recording shows), `given` or `unknown`.
        hz_source: Str,
        /// Rate that the file itself states; null where it states none.
        stated_hz: Opt<u64>,
        /// Nanoseconds added to this source's times to put them on the profile's clock.
        offset_ns: i64,
        /// How far off that may be; null where it is exact.
        uncertainty_ns: Opt<i64>,
        /// How the offset was found:
        alignment: Choice<super::Alignment>,
    }
}

table! {
    /// One row a record of a file, in file order.
    records {
        /// File it is in.
        source_id: u32,
        /// Zero-based index in the file.
        record_index: u64,
        /// Absolute offset of its first byte.
        record_offset: u64,
        /// Whole size in bytes.
        size_bytes: u64,
        /// The specification's name.
        kind: Str,
        /// Time on the profile's clock.
        ts_ns: Opt<i64>,
    }
}

table! {
    /// One row a departure from a specification, or a loss.
    diagnostics {
        /// File it is in.
        source_id: u32,
        /// Stable code: `perfuse explain CODE` tells more.
        code: Str,
        /// `info`, `warning`, `data_loss` or `error`.
        severity: Str,
        /// What was found, with its numbers.
        message: Str,
        /// Absolute offset of the record or field; null where it is about the whole.
        record_offset: Opt<u64>,
        /// Zero-based index of the record.
        record_index: Opt<u64>,
        /// Field that departs.
        field: Opt<Str>,
        /// Section of the specification.
        spec_section: Opt<Str>,
        /// How many times; more than 1 where rows of one code were cut short.
        count: u64,
    }
}
