//! Table `coverage`: how often each statement was executed.

use std::sync::Arc;

use perfuse_recording::{BatchStream, Placement, one_batch};
use perfuse_tables::coverage as table;
use rustc_hash::FxHashMap;

use crate::consts::{EventByte, KindSet};
use crate::ingest::scan;
use crate::log::LogData;
use crate::records::EventBody;

/// A COVERAGE_METHOD event.
struct CoveredMethod {
    /// Assembly, class, name, signature, file.
    texts: [String; 5],
    token: u64,
    id: u64,
    offset: u64,
}

/// A COVERAGE_STATEMENT event.
#[derive(Clone, Copy)]
struct CoveredStatement {
    method: u64,
    il_offset: u64,
    runs: u64,
    line: u64,
    column: u64,
    offset: u64,
}

/// A coverage event that has rows.
enum CoverageRecord {
    Method(CoveredMethod),
    Statement(CoveredStatement),
}

/// Table `coverage`.
pub fn coverage(log: &Arc<LogData>, placement: &Placement) -> BatchStream {
    const KINDS: KindSet = KindSet::of(&[EventByte::COVERAGE_METHOD, EventByte::COVERAGE_STATEMENT]);
    let records = scan::collect_events(log, KINDS, |_, _, event, found| {
        let EventBody::Coverage(it) = &event.body else { return };
        let [a, b, c, d, e] = it.numbers;
        match event.byte {
            EventByte::COVERAGE_METHOD => {
                let texts = it.texts.map(|text| String::from_utf8_lossy(text).into_owned());
                found.push(CoverageRecord::Method(CoveredMethod {
                    texts,
                    token: a,
                    id: b,
                    offset: event.offset,
                }));
            }
            EventByte::COVERAGE_STATEMENT => {
                let it = CoveredStatement {
                    method: a,
                    il_offset: b,
                    runs: c,
                    line: d,
                    column: e,
                    offset: event.offset,
                };
                found.push(CoverageRecord::Statement(it));
            }
            _ => {}
        }
    });
    let mut methods = Vec::new();
    let mut statements: FxHashMap<u64, Vec<CoveredStatement>> = FxHashMap::default();
    for it in records {
        match it {
            CoverageRecord::Method(method) => methods.push(method),
            CoverageRecord::Statement(statement) => {
                statements.entry(statement.method).or_default().push(statement)
            }
        }
    }
    let mut table = table::Builder::new();
    for method in &methods {
        let [assembly, class, name, signature, path] = &method.texts;
        let path = Some(path.as_str()).filter(|path| !path.is_empty());
        let number = |number: u64| u32::try_from(number).ok().filter(|number| *number != 0);
        let mut push = |it: Option<&CoveredStatement>| {
            table.push(
                assembly,
                class,
                name,
                signature,
                path,
                method.token,
                it.map(|it| it.il_offset),
                it.and_then(|it| number(it.line)),
                it.and_then(|it| number(it.column)),
                it.map(|it| it.runs),
                placement.source_id,
                it.map_or(method.offset, |it| it.offset),
            );
        };
        match statements.get(&method.id) {
            Some(own) => own.iter().for_each(|it| push(Some(it))),
            None => push(None),
        }
    }
    one_batch(table.finish())
}
