//! Counters of a runtime and their values.

use crate::schema::table;

table! {
    /// One row for each counter.
    counters {
        /// Surrogate key.
        counter_id: u32,
        /// Name.
        name: Str,
        /// Section or category of the counter.
        section: Opt<Str>,
        /// `raw`, `bytes`, `time`, `count` or `percentage`; null where the file does not contain it.
        unit: Opt<Str>,
        /// Type of its values, in the recorder's terms.
        kind: Str,
        /// Whether its values never decrease; null where the file does not contain it.
        monotonic: Opt<bool>,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}

table! {
    /// One row for each value of a counter, in time order for each counter.
    counter_samples {
        /// Counter.
        counter_id: u32,
        /// Time on the profile's clock, in nanoseconds.
        ts_ns: i64,
        /// The value; null where it is text. Recorded differences are added up.
        value: Opt<f64>,
        /// The value, where it is text; null where it is a number.
        text: Opt<Str>,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}
