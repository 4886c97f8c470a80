mod cuts;
mod hostile;
mod logs;
mod real;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use perfuse_wire::Endian;

use super::{Options, convert};
use crate::XRay;
use crate::header::Mode;
use crate::writer::{UnsupportedItems, WriteSummary};
use perfuse_recording::{Placement, Recording, Source, TableRequest};

/// A log of the corpus, by its path without suffix; `None` where it does not exist.
fn corpus_log(name: &str) -> Option<PathBuf> {
    perfuse_corpus::find(&format!("xray/{name}.xray"))
}

/// The logs in these folders of the corpus; none where it does not exist.
fn files(folders: &[&str]) -> Vec<PathBuf> {
    let folders: Vec<String> = folders.iter().map(|folder| format!("xray/{folder}")).collect();
    let files = perfuse_corpus::files(&folders.iter().map(String::as_str).collect::<Vec<_>>());
    files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "xray")).collect()
}

fn of_bytes(bytes: &[u8]) -> XRay {
    XRay::open(Arc::new(Source::from_bytes("<test>", bytes.to_vec()).unwrap())).unwrap()
}

fn open(path: &Path) -> XRay {
    XRay::open(Arc::new(Source::open(path.to_str().unwrap()).unwrap())).unwrap()
}

fn converted(logs: &[&XRay], options: &Options) -> (Vec<u8>, WriteSummary) {
    let mut out = Vec::new();
    let done = convert(logs, options, &mut out).unwrap();
    (out, done)
}

fn to(mode: Mode, version: u16, endian: Endian) -> Options {
    Options { mode, version, endian, hz: None, selection: super::RecordSelection::default() }
}

/// `(ticks, processor, kind, function id, argument)`.
type Row = (i64, Option<u32>, i32, u64, Option<u64>);

/// The calls of each thread, as decoded by the log itself.
fn rows(log: &XRay) -> BTreeMap<(i32, i32), Vec<Row>> {
    let placement = in_ticks();
    let batches: Vec<RecordBatch> =
        log.table("call_events", &placement, &TableRequest::default()).unwrap().collect();
    let owners = owners(&placement);
    let mut rows: BTreeMap<(i32, i32), Vec<Row>> = BTreeMap::new();
    for batch in batches {
        let column = |name: &str| batch.column_by_name(name).unwrap();
        let ts = column("ts_ns").as_primitive::<Int64Type>();
        let threads = column("thread_id").as_primitive::<UInt32Type>();
        let cpus = column("cpu").as_primitive::<UInt32Type>();
        let kinds = column("kind").as_dictionary::<Int32Type>().keys();
        let functions = column("function_id").as_primitive::<UInt32Type>();
        let values = column("value").as_primitive::<UInt64Type>();
        for i in 0..batch.num_rows() {
            let function = log.function_ids()[functions.value(i) as usize];
            rows.entry(owners[threads.value(i) as usize]).or_default().push((
                ts.value(i),
                cpus.is_valid(i).then(|| cpus.value(i)),
                kinds.value(i),
                function.into(),
                values.is_valid(i).then(|| values.value(i)),
            ));
        }
    }
    rows
}

/// A placement whose times are in ticks.
fn in_ticks() -> Placement {
    Placement {
        source_id: 0,
        first: perfuse_tables::Offsets::default(),
        clock: perfuse_recording::ClockMap::default(),
        pid: None,
        nth_of_pid: Arc::default(),
        identities: Arc::default(),
    }
}

/// Pid and tid by thread key.
fn owners(placement: &Placement) -> Vec<(i32, i32)> {
    let identities = placement.identities.lock().unwrap();
    let pids: BTreeMap<u32, i32> = identities.pids().into_iter().collect();
    let threads = identities.threads();
    let column = |name: &str| threads.column_by_name(name).unwrap();
    let processes = column("process_id").as_primitive::<UInt32Type>();
    let tids = column("tid").as_primitive::<Int32Type>();
    (0..threads.num_rows()).map(|i| (pids[&processes.value(i)], tids.value(i))).collect()
}

/// Events: ticks, type and bytes, in the order of the log.
fn events(log: &XRay) -> Vec<(i64, Option<u32>, Option<Vec<u8>>)> {
    let batches = log.table("instants", &in_ticks(), &TableRequest::default()).unwrap();
    let mut events = Vec::new();
    for batch in batches {
        let column = |name: &str| batch.column_by_name(name).unwrap();
        let ts = column("ts_ns").as_primitive::<Int64Type>();
        let types = column("event_type").as_primitive::<UInt32Type>();
        let payloads = column("payload").as_binary::<i32>();
        events.extend((0..batch.num_rows()).map(|i| {
            let event_type = types.is_valid(i).then(|| types.value(i));
            (ts.value(i), event_type, payloads.is_valid(i).then(|| payloads.value(i).to_vec()))
        }));
    }
    events
}
