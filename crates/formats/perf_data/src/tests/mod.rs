//! Tests with real recordings, hand-made files and damaged files.

mod damaged;
mod hand_made;
mod injected;
mod ordered;
mod recordings;

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::RecordBatch;
use perfuse_wire::Diagnostics;

use super::PerfData;
use perfuse_recording::{Placement, Recording, Source, TableRequest};

fn testdata(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/testdata").join(name)
}

fn open_bytes(bytes: Vec<u8>) -> PerfData {
    PerfData::open(Arc::new(Source::from_bytes("test", bytes).unwrap())).unwrap()
}

fn open(path: &std::path::Path) -> PerfData {
    PerfData::open(Arc::new(Source::open(path.to_str().unwrap()).unwrap())).unwrap()
}

fn batches(perf: &PerfData, table: &str) -> Vec<RecordBatch> {
    perf.table(table, &Placement::alone(perf), &TableRequest::default()).unwrap().collect()
}

fn codes(perf: &PerfData) -> Vec<&'static str> {
    let mut sink = Diagnostics::default();
    perf.check(&mut sink);
    sink.rows().iter().map(|row| row.rule.code).collect()
}
