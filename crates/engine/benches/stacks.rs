//! Folds a long recording of a large program: `cargo bench -p perfuse-engine --bench stacks`.
//!
//! 10 million samples of 16 threads in 500,000 stacks, 20,000 functions, stacks up to 60 frames deep.

use std::time::Instant;

use perfuse_engine::stacks::{CallTree, CallTreeOptions, StackTables, WeightGrouping, call_tree};
use perfuse_tables as t;

const NUM_SAMPLES: u64 = 10_000_000;
const NUM_STACKS: u32 = 500_000;
const NUM_FUNCTIONS: u32 = 20_000;
const MAX_DEPTH: u32 = 60;
const NUM_THREADS: u64 = 16;

/// A fixed scatter, so that runs compare.
fn scatter(value: u64) -> u64 {
    let mixed = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 8
}

fn tables() -> StackTables {
    let mut modules = t::modules::Builder::new();
    modules.push(0, "/usr/bin/server", "native", None);
    let mut functions = t::functions::Builder::new();
    let mut frames = t::frames::Builder::new();
    for id in 0..NUM_FUNCTIONS {
        let name = format!("server::function_{id}");
        functions.push(id, None, &name, &name, Some(0), None, None, None);
        frames.push(id, Some(id), None, None, None, None, None, None, None, 0, "native", "callchain", None);
    }
    let mut stacks = t::stacks::Builder::new();
    let mut depths: Vec<u32> = Vec::new();
    for id in 0..NUM_STACKS {
        // Mostly deeper than the last one, sometimes back to an older one: how a recorder meets them.
        let random = scatter(u64::from(id));
        let parent = match id {
            0 => None,
            _ if !random.is_multiple_of(4) => Some(id - 1),
            _ => Some((random >> 3) as u32 % id),
        };
        let parent = parent.filter(|&parent| depths[parent as usize] + 1 < MAX_DEPTH);
        let depth = parent.map_or(0, |parent| depths[parent as usize] + 1);
        depths.push(depth);
        stacks.push(id, parent, (random >> 17) as u32 % NUM_FUNCTIONS, depth);
    }
    let mut samples = Vec::new();
    for batch in 0..NUM_SAMPLES / 100_000 {
        let mut rows = t::samples::Builder::new();
        for id in batch * 100_000..(batch + 1) * 100_000 {
            let random = scatter(id ^ 0xabcdef);
            // Squared, so that some stacks are much heavier than others.
            let share = (random & 0xffff) as f64 / 65536.0;
            let stack = (share * share * f64::from(NUM_STACKS)) as u32 + (random >> 40) as u32 % 7;
            let thread = u64::from(stack) % NUM_THREADS;
            rows.push(id, id as i64 * 1000, thread as u32, None, Some(stack), 250_000, "ns", "cycles", 0, 0);
        }
        samples.push(rows.finish());
    }
    StackTables {
        samples,
        stacks: vec![stacks.finish()],
        frames: vec![frames.finish()],
        functions: vec![functions.finish()],
        code_objects: vec![t::code_objects::Builder::new().finish()],
        modules: vec![modules.finish()],
        mappings: vec![t::mappings::Builder::new().finish()],
        threads: vec![t::threads::Builder::new().finish()],
    }
}

fn main() {
    let tables = tables();
    let fold = |name: &str, options: CallTreeOptions| -> CallTree {
        let start = Instant::now();
        let tree = call_tree(&tables, &options).expect("tables that fit");
        println!("{name:<28} {:>9.1?}  {} nodes", start.elapsed(), tree.nodes().len());
        tree
    };
    let tree = fold("callees", CallTreeOptions::default());
    fold("callees by thread", CallTreeOptions { split_threads: true, ..Default::default() });
    fold("callees, recursion merged", CallTreeOptions { merge_recursion: true, ..Default::default() });
    fold(
        "callers, 0.01 % and more",
        CallTreeOptions { inverted: true, min_share: 0.0001, ..Default::default() },
    );
    fold("callers, all", CallTreeOptions { inverted: true, ..Default::default() });
    let start = Instant::now();
    let rows = tree.weights(WeightGrouping::Function).num_rows();
    println!("{:<28} {:>9.1?}  {rows} functions", "weights", start.elapsed());
}
