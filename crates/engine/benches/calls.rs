//! Accounts for the calls of a long trace: `cargo bench -p perfuse-engine --bench calls`.
//!
//! 20 million events of one thread, as an instrumented interpreter makes them: 640 functions, some thousand call paths, a
//! fifth of the calls left by a jump.

use std::sync::Arc;
use std::time::Instant;

use arrow_array::types::{ArrowPrimitiveType, UInt64Type};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt32Array, UInt64Array, new_null_array};
use perfuse_engine::calls::{CallGrouping, Options, Selection, account, slices};
use perfuse_tables::{CallEvent, Choices, call_events};

const NUM_EVENTS: usize = 20_000_000;
const BATCH_ROWS: usize = 1 << 16;
const NUM_FUNCTIONS: u32 = 640;
const MAX_DEPTH: usize = 30;
const NUM_SCRIPTS: u32 = 32;
const SCRIPT_EVENTS: usize = 400;

/// A fixed scatter, so that runs compare.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        ((self.0 >> 33) * bound) >> 31
    }
}

/// A call as the program makes it: the events from its start to its end.
type Script = Vec<(CallEvent, u32)>;

/// Calls a few functions, which call a few others, and so on.
fn script(random: &mut Random, function: u32, depth: usize, out: &mut Script) {
    out.push((CallEvent::Enter, function));
    for _ in 0..if depth < MAX_DEPTH { random.below(4) } else { 0 } {
        if out.len() < SCRIPT_EVENTS {
            let callee = (function * 7 + random.below(3) as u32 * 13 + 1) % NUM_FUNCTIONS;
            script(random, callee, depth + 1, out);
        }
    }
    let is_jump = random.below(5) == 0;
    out.push((if is_jump { CallEvent::TailExit } else { CallEvent::Exit }, function));
}

/// Batches as a decoder makes them; what is the same in all of them is there once, as it would still be in the cache.
fn events() -> Vec<RecordBatch> {
    let mut random = Random(1);
    let scripts: Vec<Script> = (0..NUM_SCRIPTS)
        .map(|first| {
            let mut out = Script::new();
            while out.len() < SCRIPT_EVENTS {
                script(&mut random, first, 0, &mut out);
            }
            out
        })
        .collect();
    let constant = |value| -> ArrayRef { Arc::new(UInt32Array::from_value(value, BATCH_ROWS)) };
    let (thread, cpu, source) = (constant(0), constant(3), constant(0));
    let value = new_null_array(&UInt64Type::DATA_TYPE, BATCH_ROWS);
    let offset: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..BATCH_ROWS as u64));
    let mut now_ns = 0;
    let mut batches = Vec::new();
    let mut rows = Vec::with_capacity(BATCH_ROWS + 2 * SCRIPT_EVENTS);
    while batches.len() * BATCH_ROWS < NUM_EVENTS {
        while rows.len() < BATCH_ROWS {
            rows.extend_from_slice(&scripts[random.below(scripts.len() as u64) as usize]);
        }
        let of_batch: Vec<_> = rows.drain(..BATCH_ROWS).collect();
        let times = of_batch.iter().map(|_| {
            now_ns += 20 + random.below(100) as i64;
            now_ns
        });
        let times: ArrayRef = Arc::new(Int64Array::from_iter_values(times));
        let kinds = CallEvent::array(of_batch.iter().map(|row| row.0.key()).collect());
        let functions: ArrayRef = Arc::new(UInt32Array::from_iter_values(of_batch.iter().map(|row| row.1)));
        let [thread, cpu, source] = [&thread, &cpu, &source].map(Arc::clone);
        let (value, offset) = (Arc::clone(&value), Arc::clone(&offset));
        batches.push(call_events::batch(vec![times, thread, cpu, kinds, functions, value, source, offset]));
    }
    batches
}

fn main() {
    let batches = events();
    let events = || batches.iter().cloned();
    let segments = || vec![events()];
    let num_events: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let time = |name: &str, work: &dyn Fn() -> String| {
        let start = Instant::now();
        let result = work();
        let took = start.elapsed();
        let each = took.as_nanos() as f64 / num_events as f64;
        println!("{name:<28} {took:>9.1?}  {each:>5.1} ns an event  {result}");
    };
    let account_text = |options: Options| {
        let account = account(segments, std::iter::empty(), &options).expect("batches of call_events");
        let (functions, paths) = (account.functions.num_rows(), account.paths.all().len());
        format!("{} calls, {functions} rows, {paths} paths", account.totals.num_calls)
    };
    time("account", &|| account_text(Options::default()));
    time("account by processor", &|| account_text(Options { by: CallGrouping::Cpu, ..Options::default() }));
    time("account and edges", &|| account_text(Options { edges: true, ..Options::default() }));
    time("recursive calls only", &|| account_text(Options { recursive_only: true, ..Options::default() }));
    let selection = Selection { time_ns: Some(0..i64::MAX), threads: None };
    time("account of a time", &|| {
        account_text(Options { selection: selection.clone(), ..Options::default() })
    });
    time("slices", &|| {
        let made = slices(events, 0).expect("batches of call_events");
        format!("{} rows", made.map(|batch| batch.num_rows()).sum::<usize>())
    });
}
