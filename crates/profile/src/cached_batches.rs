//! A cache of a table's batches, filled by the first scan of the table where they are small.

use std::sync::{Arc, OnceLock};

use arrow_array::RecordBatch;

/// Largest table that is cached, in bytes.
const MAX_BYTES: usize = 32 << 20;

/// The batches of a small table after its first scan; always empty for a large one.
#[derive(Clone, Default)]
pub struct CachedBatches {
    batches: Arc<OnceLock<Vec<RecordBatch>>>,
}

impl CachedBatches {
    /// The batches, after a scan was completed.
    #[must_use]
    pub fn get(&self) -> Option<Vec<RecordBatch>> {
        self.batches.get().cloned()
    }

    /// Passes the batches of a scan on, and caches them.
    pub fn fill<E, I: Iterator<Item = Result<RecordBatch, E>>>(
        &self,
        batches: I,
    ) -> impl Iterator<Item = Result<RecordBatch, E>> + use<E, I> {
        Scan { batches, seen: Some(Vec::new()), num_bytes: 0, cache: self.clone() }
    }
}

/// Batches on their way to the first scan of a table.
struct Scan<I> {
    batches: I,
    /// All batches so far; `None` where they are too large to be cached.
    seen: Option<Vec<RecordBatch>>,
    num_bytes: usize,
    cache: CachedBatches,
}

impl<E, I: Iterator<Item = Result<RecordBatch, E>>> Iterator for Scan<I> {
    type Item = Result<RecordBatch, E>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.batches.next();
        match &next {
            Some(Ok(batch)) => {
                self.num_bytes = self.num_bytes.saturating_add(batch.get_array_memory_size());
                self.seen = self.seen.take().filter(|_| self.num_bytes <= MAX_BYTES);
                if let Some(seen) = &mut self.seen {
                    seen.push(batch.clone());
                }
            }
            Some(Err(_)) => self.seen = None,
            None => {
                if let Some(seen) = self.seen.take() {
                    let _ = self.cache.batches.set(seen);
                }
            }
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array};

    use super::*;

    fn batches(num_rows: i64) -> impl Iterator<Item = Result<RecordBatch, Infallible>> {
        (0..num_rows / 1024).map(|_| {
            let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1024));
            Ok(RecordBatch::try_from_iter([("number", column)]).unwrap())
        })
    }

    #[test]
    fn a_small_table_is_cached_after_a_whole_scan() {
        let cache = CachedBatches::default();
        assert_eq!(cache.fill(batches(4096)).take(2).count(), 2);
        assert!(cache.get().is_none());
        assert_eq!(cache.fill(batches(4096)).count(), 4);
        assert_eq!(cache.get().unwrap().len(), 4);
    }

    #[test]
    fn a_large_table_is_not_cached() {
        let cache = CachedBatches::default();
        assert_eq!(cache.fill(batches(5 << 20)).count(), 5 << 10);
        assert!(cache.get().is_none());
    }
}
