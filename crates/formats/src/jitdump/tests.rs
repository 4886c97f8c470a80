//! Over a real dump, and damaged copies of it.

mod damaged;
mod recorded;

use std::sync::Arc;

use arrow_array::RecordBatch;
use perfuse_wire::{Diagnostics, ParseError};

use super::JitDump;
use crate::{Placement, Recording, Source, TableRequest};

/// See `testdata/README.md`.
const MCJIT: &[u8] = include_bytes!("testdata/llvm14-mcjit.dump");

fn open(bytes: Vec<u8>) -> Result<JitDump, ParseError> {
    JitDump::open(Arc::new(Source::from_bytes("test", bytes).unwrap()))
}

fn batches(dump: &JitDump, table: &str) -> Vec<RecordBatch> {
    dump.table(table, &Placement::alone(), &TableRequest::default()).unwrap().collect()
}

fn num_rows(dump: &JitDump, table: &str) -> usize {
    batches(dump, table).iter().map(RecordBatch::num_rows).sum()
}

fn codes(dump: &JitDump) -> Vec<&'static str> {
    let mut sink = Diagnostics::default();
    dump.check(&mut sink);
    let mut codes: Vec<_> = sink.rows().iter().map(|row| row.rule.code).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}
