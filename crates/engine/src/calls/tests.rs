use perfuse_tables::{CallEvent, call_events};

use super::*;

/// Calls as text: `function@start+duration/self reason`, by depth.
#[derive(Debug, Default)]
struct Told(Vec<String>);

impl Visitor for Told {
    type Mark = ();

    fn enter(&mut self, _entry: &Entry, _parent: Option<&Frame<()>>) {}

    fn leave(&mut self, call: &Frame<()>, leave: &Leave, _parent: Option<&Frame<()>>) {
        let Entry { function_id, start_ns, depth, .. } = call.entry;
        let Leave { duration_ns, self_ns, reason, .. } = leave;
        self.0.push(format!("{depth}: {function_id}@{start_ns}+{duration_ns}/{self_ns} {reason:?}"));
    }

    fn orphan(&mut self, event: &Event) {
        self.0.push(format!("orphan {}", event.function_id));
    }
}

fn told(events: &[(i64, CallEvent, u32)], selection: &Selection) -> Vec<String> {
    let mut table = call_events::Builder::new();
    for (row, &(ts_ns, kind, function)) in (0u64..).zip(events) {
        table.push(ts_ns, 0, None, kind, function, None, 0, row);
    }
    let batch = table.finish();
    visit(|| std::iter::once(batch.clone()), selection, Told::default).unwrap().0
}

use CallEvent::{Enter, Exit, TailExit};

#[test]
fn nested_calls_have_their_own_time() {
    let events = [(0, Enter, 1), (2, Enter, 2), (5, Exit, 2), (9, Exit, 1)];
    assert_eq!(told(&events, &Selection::default()), ["1: 2@2+3/3 Exit", "0: 1@0+9/6 Exit"]);
}

#[test]
fn a_tail_call_is_a_sibling() {
    let events = [(0, Enter, 1), (1, TailExit, 1), (1, Enter, 2), (4, Exit, 2)];
    assert_eq!(told(&events, &Selection::default()), ["0: 1@0+1/1 TailCall", "0: 2@1+3/3 Exit"]);
}

#[test]
fn what_an_exception_left_ends_with_its_catcher() {
    let events = [(0, Enter, 1), (1, Enter, 2), (2, Enter, 3), (6, Exit, 1)];
    let expected = ["2: 3@2+4/4 Unwound", "1: 2@1+5/1 Unwound", "0: 1@0+6/1 Exit"];
    assert_eq!(told(&events, &Selection::default()), expected);
}

#[test]
fn lost_entries_are_around_what_came_before() {
    let events = [(3, Exit, 9), (4, Enter, 1), (5, Exit, 1), (8, Exit, 7)];
    let expected = ["1: 9@3+0/0 Exit", "1: 1@4+1/1 Exit", "0: 7@3+5/4 Exit"];
    assert_eq!(told(&events, &Selection::default()), expected);
}

#[test]
fn an_exit_in_the_middle_of_others_is_an_orphan() {
    let events = [(0, Enter, 1), (1, Exit, 5), (2, Exit, 1)];
    assert_eq!(told(&events, &Selection::default()), ["orphan 5", "0: 1@0+2/2 Exit"]);
}

#[test]
fn the_recording_ends_before_its_calls() {
    let events = [(0, Enter, 1), (4, Enter, 2)];
    assert_eq!(told(&events, &Selection::default()), ["1: 2@4+0/0 Truncated", "0: 1@0+4/4 Truncated"]);
}

#[test]
fn a_time_range_cuts_calls() {
    let events = [(0, Enter, 1), (2, Enter, 2), (5, Exit, 2), (9, Exit, 1)];
    let selection = Selection { time_ns: Some(3..7), threads: None };
    assert_eq!(told(&events, &selection), ["1: 2@2+2/2 Exit", "0: 1@0+4/2 Exit"]);
}
