//! Table `coverage`: how often each statement was executed.

use std::sync::Arc;

use perfuse_tables::coverage as table;
use rustc_hash::FxHashMap;

use super::pass;
use crate::consts::{EventByte, KindSet};
use crate::recording::Shared;
use crate::records::Body;
use perfuse_recording::{BatchStream, Placement, one_batch};

/// A COVERAGE_METHOD event.
struct Method {
    /// Assembly, class, name, signature, file.
    texts: [String; 5],
    token: u64,
    id: u64,
    offset: u64,
}

/// A COVERAGE_STATEMENT event.
#[derive(Clone, Copy)]
struct Statement {
    method: u64,
    il_offset: u64,
    runs: u64,
    line: u64,
    column: u64,
    offset: u64,
}

/// A coverage event that has rows.
enum Told {
    Method(Method),
    Statement(Statement),
}

/// Table `coverage`.
pub fn coverage(log: &Arc<Shared>, placement: &Placement) -> BatchStream {
    const KINDS: KindSet = KindSet::of(&[EventByte::COVERAGE_METHOD, EventByte::COVERAGE_STATEMENT]);
    let told = pass::gather(log, KINDS, |_, _, event, found| {
        let Body::Coverage(it) = &event.body else { return };
        let [a, b, c, d, e] = it.numbers;
        match event.byte {
            EventByte::COVERAGE_METHOD => {
                let texts = it.texts.map(|text| String::from_utf8_lossy(text).into_owned());
                found.push(Told::Method(Method { texts, token: a, id: b, offset: event.offset }));
            }
            EventByte::COVERAGE_STATEMENT => {
                let it =
                    Statement { method: a, il_offset: b, runs: c, line: d, column: e, offset: event.offset };
                found.push(Told::Statement(it));
            }
            _ => {}
        }
    });
    let mut methods = Vec::new();
    let mut statements: FxHashMap<u64, Vec<Statement>> = FxHashMap::default();
    for it in told {
        match it {
            Told::Method(method) => methods.push(method),
            Told::Statement(statement) => statements.entry(statement.method).or_default().push(statement),
        }
    }
    let mut table = table::Builder::new();
    for method in &methods {
        let [assembly, class, name, signature, path] = &method.texts;
        let path = Some(path.as_str()).filter(|path| !path.is_empty());
        let number = |number: u64| u32::try_from(number).ok().filter(|number| *number != 0);
        let mut push = |it: Option<&Statement>| {
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
