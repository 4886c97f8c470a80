//! Recordings, their clocks, their records, and diagnostics of their content.

use crate::column::choices;
use crate::schema::table;

table! {
    /// One row for each recording that was read.
    sources {
        /// Surrogate key.
        source_id: u32,
        /// Name of the format, such as `jitdump`, `perf_data` or `xray`.
        format: Str,
        /// Version in the file; null where it has none.
        version: Opt<Str>,
        /// Path as given; `-` for standard input.
        path: Str,
        /// Size in bytes, after decompression.
        size_bytes: u64,
        /// `little` or `big`.
        endian: Str,
        /// Size of a pointer on the recorded machine; null where not known.
        pointer_bytes: Opt<u8>,
        /// Architecture of the recorded machine, as in the output of `uname -m`; null where not known.
        arch: Opt<Str>,
        /// Program that wrote the file; null where it could not be determined.
        producer: Opt<Str>,
        /// Clock of the time stamps in the file.
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
        /// The latest offset at which no code runs before it was created; at most 0 to perf's own clock, which counts from the
        /// start of the system, too.
        FirstUse = "first_use",
        /// No time is known on both clocks; offsets are not meaningful.
        NotAligned = "none",
    }
}

table! {
    /// One row for each clock of a recording, with its alignment to the profile's clock.
    clocks {
        /// Surrogate key.
        clock_id: u32,
        /// Recording that uses the clock.
        source_id: u32,
        /// `monotonic`, `tsc`, `realtime`, `perf` (the kernel's sched clock) or `unknown`.
        kind: Str,
        /// Ticks per second; 1,000,000,000 for nanosecond clocks.
        hz: Opt<u64>,
        /// Origin of the rate: `defined` (by the kind of clock), `header`, `unverified` (of a header, which nothing in the recording confirms),
        /// `estimated` (from the content of the recording), `given` or `unknown`.
        hz_source: Str,
        /// Rate in the file; null where the file contains none.
        stated_hz: Opt<u64>,
        /// Nanoseconds that are added to times of this recording to convert them to the profile's clock.
        offset_ns: i64,
        /// Greatest error of times on the profile's clock, in nanoseconds; null where they are exact, or not on it.
        uncertainty_ns: Opt<i64>,
        /// How the offset was found:
        alignment: Choice<super::Alignment>,
        /// Nanoseconds that are added to times on the profile's clock to convert them to nanoseconds since 1970-01-01 (UTC); null
        /// where the recording contains no time of day.
        realtime_offset_ns: Opt<i64>,
    }
}

table! {
    /// One row for each record of a file, in file order.
    records {
        /// Recording that contains it.
        source_id: u32,
        /// Zero-based index in the file.
        record_index: u64,
        /// Absolute offset of its first byte.
        record_offset: u64,
        /// Size in bytes, header included.
        size_bytes: u64,
        /// Name of the kind in the specification.
        kind: Str,
        /// Time on the profile's clock, in nanoseconds.
        ts_ns: Opt<i64>,
    }
}

table! {
    /// One row for each departure from a specification and each loss of data.
    diagnostics {
        /// Recording that contains it.
        source_id: u32,
        /// Stable code; `perfuse explain CODE` describes it.
        code: Str,
        /// `info`, `warning`, `data_loss` or `error`.
        severity: Str,
        /// Description of the finding, with its numbers.
        message: Str,
        /// Absolute offset of the record or field; null for the recording as a whole.
        record_offset: Opt<u64>,
        /// Zero-based index of the record; null where none applies.
        record_index: Opt<u64>,
        /// Name of the field; null where none applies.
        field: Opt<Str>,
        /// Section of the specification; null where none applies.
        spec_section: Opt<Str>,
        /// Number of occurrences; more than 1 where several are summarized in one row.
        count: u64,
    }
}
