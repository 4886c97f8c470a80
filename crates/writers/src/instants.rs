//! Rows of table `instants`.

use std::borrow::Cow;
use std::fmt::Write;

use arrow_array::types::{Int64Type, UInt32Type};
use arrow_array::{Array, BinaryArray, PrimitiveArray, RecordBatch};
use perfuse_tables::access::{ColumnError, Text, bytes, nullable, numbers, text};

use perfuse_engine::calls::Selection;

/// The columns of a batch.
#[derive(Debug)]
pub struct Instants<'a> {
    ts_ns: &'a [i64],
    threads: &'a [u32],
    kinds: Text<'a>,
    names: Text<'a>,
    types: &'a PrimitiveArray<UInt32Type>,
    payloads: &'a BinaryArray,
}

impl<'a> Instants<'a> {
    /// The columns of a batch of `instants`.
    ///
    /// # Errors
    /// [`ColumnError`]
    pub fn new(batch: &'a RecordBatch) -> Result<Self, ColumnError> {
        Ok(Self {
            ts_ns: numbers::<Int64Type>(batch, "ts_ns")?.values(),
            threads: numbers::<UInt32Type>(batch, "thread_id")?.values(),
            kinds: text(batch, "kind")?,
            names: text(batch, "name")?,
            types: numbers(batch, "event_type")?,
            payloads: bytes(batch, "payload")?,
        })
    }

    /// The rows that are selected.
    pub fn selected(&self, selection: &Selection) -> impl Iterator<Item = usize> {
        let Selection { threads, time_ns } = selection;
        (0..self.ts_ns.len()).filter(move |&row| {
            let (thread_id, ts_ns) = (self.threads[row], self.ts_ns[row]);
            threads.as_ref().is_none_or(|ids| ids.binary_search(&thread_id).is_ok())
                && time_ns.as_ref().is_none_or(|range| range.contains(&ts_ns))
        })
    }

    /// Time on the profile's clock.
    pub fn ts_ns(&self, row: usize) -> i64 {
        self.ts_ns[row]
    }

    /// Thread.
    pub fn thread_id(&self, row: usize) -> u32 {
        self.threads[row]
    }

    /// Its kind.
    pub fn kind(&self, row: usize) -> &'a str {
        self.kinds.get(row).unwrap_or_default()
    }

    /// The heap size that a `gc_resize` instant reports; drawn as a counter.
    pub fn heap_bytes(&self, row: usize) -> Option<f64> {
        let bytes: Option<u64> = self.names.get(row).filter(|_| self.kind(row) == "gc_resize")?.parse().ok();
        bytes.map(|bytes| bytes as f64)
    }

    /// Its name, or its kind where it has none.
    pub fn title(&self, row: usize) -> &'a str {
        self.names.get(row).unwrap_or_else(|| self.kind(row))
    }

    /// Its event type.
    pub fn event_type(&self, row: usize) -> Option<u32> {
        nullable(self.types, row)
    }

    /// Its payload.
    pub fn payload(&self, row: usize) -> Option<Payload<'a>> {
        self.payloads.is_valid(row).then(|| Payload::of(self.payloads.value(row)))
    }
}

/// A payload in a form that viewers can show.
#[derive(Debug, PartialEq, Eq)]
pub struct Payload<'a> {
    /// `payload`, or `payload_hex`.
    pub key: &'static str,
    /// The bytes as text, or in hexadecimal where they are not UTF-8.
    pub value: Cow<'a, str>,
}

impl<'a> Payload<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self { key: "payload", value: text.into() },
            Err(_) => {
                let mut hex = String::with_capacity(bytes.len() * 2);
                for byte in bytes {
                    // Writing to a string cannot fail.
                    let _ = write!(hex, "{byte:02x}");
                }
                Self { key: "payload_hex", value: hex.into() }
            }
        }
    }
}
