//! Tests of the stacks of events without backtraces, which are those of the calls that are open. The expected stacks are of a model
//! that reads all events one after the other.

use std::collections::HashMap;

use arrow_array::types::UInt32Type;
use perfuse_recording::{Placement, Recording, TableRequest};
use perfuse_tables::access::{nullable, numbers};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::recording::MonoLog;
use crate::tests::assemble::*;

/// Number of methods; the last is a call of the runtime.
const NUM_METHODS: u8 = 5;
const RUNTIME_CALL: u8 = NUM_METHODS - 1;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Enter(u8),
    Leave(u8),
    Unwound(u8),
    Alloc,
    Recorded(u8),
}

fn encoded(steps: &[Step]) -> Vec<Vec<u8>> {
    let mut last = 0;
    let mut method = |method: u8| {
        let difference = method as i8 - std::mem::replace(&mut last, method) as i8;
        vec![difference as u8 & 0x7f]
    };
    let one = |step: &Step| match *step {
        Step::Enter(it) => event(0x23, &[&method(it)]),
        Step::Leave(it) => event(0x13, &[&method(it)]),
        Step::Unwound(it) => event(0x33, &[&method(it)]),
        Step::Alloc => event(0x00, &[&[0], &[0], &[16]]),
        Step::Recorded(it) => event(0x10, &[&[0], &[0], &[16], &[1], &method(it)]),
    };
    steps.iter().map(one).collect()
}

/// A log of buffers of threads, after one that describes the methods.
fn log_of(buffers: &[(u8, Vec<Step>)]) -> MonoLog {
    let mut last = 0;
    let described = (0..NUM_METHODS).map(|method| {
        let name =
            if method == RUNTIME_CALL { "(wrapper alloc) A" } else { ["A", "B", "C", "D"][method as usize] };
        event(0x43, &[&[method - std::mem::replace(&mut last, method)], &[0], &[0], &text(name)])
    });
    let described = buffer_of(THREAD + 99, TIME, &described.collect::<Vec<_>>());
    let buffers = buffers.iter().zip(1u64..).map(|((thread, steps), at)| {
        buffer_of(THREAD + u64::from(*thread), TIME + at * 1000, &encoded(steps))
    });
    log(&[&[described][..], &buffers.collect::<Vec<_>>()].concat())
}

/// Open calls of a thread; those whose enters were lost are marked.
type Model = Vec<(u8, bool)>;

fn leave(open: &mut Model, method: u8) -> bool {
    let at = match open.last() {
        Some((top, _)) if *top == method => Some(open.len() - 1),
        _ => open.iter().rposition(|(other, is_lost)| *other == method && !is_lost),
    };
    at.map(|at| open.truncate(at)).is_some()
}

/// The stack of each allocation, outermost method first.
fn expected(buffers: &[(u8, Vec<Step>)]) -> Vec<Vec<u8>> {
    let mut lost: HashMap<u8, Vec<u8>> = HashMap::new();
    for is_first in [true, false] {
        let mut open: HashMap<u8, Model> = HashMap::new();
        if !is_first {
            for (thread, methods) in &lost {
                open.insert(*thread, methods.iter().rev().map(|method| (*method, true)).collect());
            }
        }
        let mut stacks = Vec::new();
        for (thread, steps) in buffers {
            let open = open.entry(*thread).or_default();
            for step in steps {
                match *step {
                    Step::Enter(method) => open.push((method, false)),
                    Step::Leave(method) | Step::Unwound(method) => {
                        let is_outermost = open.is_empty();
                        if !leave(open, method) && is_outermost && is_first {
                            lost.entry(*thread).or_default().push(method);
                        }
                    }
                    Step::Alloc => {
                        let own = open.iter().rposition(|(method, _)| *method != RUNTIME_CALL);
                        stacks.push(
                            open[..own.map_or(0, |at| at + 1)].iter().map(|(method, _)| *method).collect(),
                        );
                    }
                    Step::Recorded(method) if method == RUNTIME_CALL => stacks.push(Vec::new()),
                    Step::Recorded(method) => stacks.push(vec![method]),
                }
            }
        }
        if !is_first {
            return stacks;
        }
    }
    unreachable!()
}

/// The same as the tables state it.
fn found(log: &MonoLog) -> Vec<Vec<u8>> {
    let keys = |table: &str, column: &'static str| -> Vec<Option<u32>> {
        let batches = log.table(table, &Placement::alone(log), &TableRequest::default()).unwrap();
        let keys = batches.flat_map(|batch| {
            let keys = numbers::<UInt32Type>(&batch, column).unwrap();
            (0..batch.num_rows()).map(|row| nullable(keys, row)).collect::<Vec<_>>()
        });
        keys.collect()
    };
    let (callers, frames) = (keys("stacks", "parent_stack_id"), keys("stacks", "frame_id"));
    let functions = keys("frames", "function_id");
    let path = |stack: Option<u32>| {
        let stacks = std::iter::successors(stack, |stack| callers[*stack as usize]);
        let mut path: Vec<_> =
            stacks.map(|stack| functions[frames[stack as usize].unwrap() as usize].unwrap() as u8).collect();
        path.reverse();
        path
    };
    let paths: Vec<_> = keys("allocations", "stack_id").into_iter().map(path).collect();
    let used = callers.len() as u64;
    assert!(used <= log.extent().stack.into());
    paths
}

fn assert_stacks(buffers: &[(u8, Vec<Step>)]) {
    assert_eq!(found(&log_of(buffers)), expected(buffers), "{buffers:?}");
}

#[test]
fn an_allocation_has_the_calls_that_its_thread_has_entered() {
    use Step::{Alloc, Enter, Leave};
    let first = vec![Enter(0), Enter(1), Alloc, Leave(1), Alloc];
    let buffers = [(0, first), (1, vec![Enter(2), Alloc]), (0, vec![Enter(3), Alloc, Leave(3), Alloc])];
    assert_eq!(found(&log_of(&buffers)), [vec![0, 1], vec![0], vec![2], vec![0, 3], vec![0]]);
    assert_stacks(&buffers);
}

#[test]
fn calls_of_the_runtime_are_left_out_at_the_end_only() {
    use Step::{Alloc, Enter};
    let buffers =
        [(0, vec![Enter(RUNTIME_CALL), Alloc, Enter(0), Enter(RUNTIME_CALL), Alloc]), (0, vec![Alloc])];
    assert_eq!(found(&log_of(&buffers)), [vec![], vec![RUNTIME_CALL, 0], vec![RUNTIME_CALL, 0]]);
}

#[test]
fn a_leave_ends_the_calls_within() {
    use Step::{Alloc, Enter, Leave};
    let buffers =
        [(0, vec![Enter(0), Enter(1), Enter(2)]), (0, vec![Enter(3), Leave(1), Alloc, Leave(2), Alloc])];
    assert_eq!(found(&log_of(&buffers)), [vec![0], vec![0]]);
}

#[test]
fn a_call_whose_enter_was_lost_is_around_all_others() {
    use Step::{Alloc, Enter, Leave};
    let buffers = [(0, vec![Alloc, Enter(1), Alloc]), (0, vec![Leave(1), Leave(0), Alloc])];
    assert_eq!(found(&log_of(&buffers)), [vec![0], vec![0, 1], vec![]]);
}

#[test]
fn a_backtrace_of_its_own_is_used() {
    use Step::{Alloc, Enter, Recorded};
    let buffers = [(0, vec![Enter(0), Recorded(2), Alloc])];
    assert_eq!(found(&log_of(&buffers)), [vec![2], vec![0]]);
}

#[test]
fn without_calls_there_are_no_stacks() {
    let log = log_of(&[(0, vec![Step::Alloc, Step::Alloc])]);
    assert!(!log.fills("stacks"));
    assert_eq!(found(&log), [Vec::<u8>::new(), vec![]]);
}

#[test]
fn deep_stacks_take_linear_time() {
    let deep = vec![Step::Enter(0); 200_000];
    let unmatched: Vec<_> = std::iter::repeat_n([Step::Leave(1), Step::Alloc], 100_000).flatten().collect();
    let log = log_of(&[(0, deep), (0, unmatched)]);
    let stacks = log.table("allocations", &Placement::alone(&log), &TableRequest::default()).unwrap();
    let keys: Vec<_> = stacks
        .flat_map(|batch| numbers::<UInt32Type>(&batch, "stack_id").unwrap().values().to_vec())
        .collect();
    assert_eq!(keys, vec![199_999; 100_000]);
}

fn step() -> impl Strategy<Value = Step> {
    let method = 0..NUM_METHODS;
    prop_oneof![
        4 => method.clone().prop_map(Step::Enter),
        4 => method.clone().prop_map(Step::Leave),
        1 => method.clone().prop_map(Step::Unwound),
        4 => Just(Step::Alloc),
        1 => method.prop_map(Step::Recorded),
    ]
}

proptest! {
    #[test]
    fn stacks_are_those_of_the_model(buffers in vec((0u8..3, vec(step(), 0..12)), 1..12)) {
        assert_stacks(&buffers);
    }

    #[test]
    fn deep_stacks_are_those_of_the_model(buffers in vec((0u8..1, vec(step(), 0..300)), 1..4)) {
        let deep = [(0, vec![Step::Enter(0); 70])];
        assert_stacks(&[&deep[..], &buffers].concat());
    }
}
