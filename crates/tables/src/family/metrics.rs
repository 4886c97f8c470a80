//! Counters a runtime keeps of itself.

use crate::schema::table;

table! {
    /// One row a counter.
    counters {
        /// Surrogate key.
        counter_id: u32,
        /// Name.
        name: Str,
        /// Section or category it is listed under.
        section: Opt<Str>,
        /// `raw`, `bytes`, `time`, `count` or `percentage`; null where the file does not say.
        unit: Opt<Str>,
        /// Type of its values, as the recorder calls it.
        kind: Str,
        /// Whether it only grows; null where the file does not say.
        monotonic: Opt<bool>,
        /// File the row is from.
        source_id: u32,
        /// Offset of its record.
        record_offset: u64,
    }
}

table! {
    /// One row a value of a counter, in time order for each.
    counter_samples {
        /// Counter.
        counter_id: u32,
        /// Time on the profile's clock.
        ts_ns: i64,
        /// The value, differences added up; null where it is text.
        value: Opt<f64>,
        /// The value, where it is text.
        text: Opt<Str>,
        /// File the row is from.
        source_id: u32,
        /// Offset of its record.
        record_offset: u64,
    }
}
