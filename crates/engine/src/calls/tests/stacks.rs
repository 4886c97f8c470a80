//! Which calls the events make.

use perfuse_tables::CallEvent::{Enter, ExceptionExit, Exit, TailExit};
use perfuse_tables::{CallEvent, call_events};

use super::batch;
use crate::calls::*;

/// Calls as text: `function@start+duration/self reason`, by depth.
#[derive(Debug, Default)]
struct CallTexts(Vec<String>);

impl Visitor for CallTexts {
    type CallData = ();

    fn enter(&mut self, _entry: &CallEntry, _parent: Option<&OpenCall<()>>) {}

    fn leave(&mut self, call: &OpenCall<()>, level: Level, leave: &Leave, _parent: Option<&OpenCall<()>>) {
        let (Level { depth, .. }, function_id) = (level, call.function_id);
        let Leave { start_ns, duration_ns, self_ns, reason, .. } = leave;
        self.0.push(format!("{depth}: {function_id}@{start_ns}+{duration_ns}/{self_ns} {reason:?}"));
    }

    fn orphan(&mut self, event: &Event, _cpu: Option<u32>, _depth: u32, _parent: Option<&OpenCall<()>>) {
        self.0.push(format!("orphan {}", event.function_id));
    }
}

fn visited_calls(events: &[(i64, CallEvent, u32)], selection: &Selection) -> Vec<String> {
    let batch = batch(events);
    visit(|| std::iter::once(batch.clone()), selection, CallTexts::default).unwrap().0
}

#[test]
fn nested_calls_have_their_own_time() {
    let events = [(0, Enter, 1), (2, Enter, 2), (5, Exit, 2), (9, Exit, 1)];
    assert_eq!(visited_calls(&events, &Selection::default()), ["1: 2@2+3/3 Exit", "0: 1@0+9/6 Exit"]);
}

#[test]
fn a_tail_call_is_a_sibling() {
    let events = [(0, Enter, 1), (1, TailExit, 1), (1, Enter, 2), (4, Exit, 2)];
    assert_eq!(visited_calls(&events, &Selection::default()), ["0: 1@0+1/1 TailCall", "0: 2@1+3/3 Exit"]);
}

#[test]
fn what_an_exception_left_ends_with_its_catcher() {
    let events = [(0, Enter, 1), (1, Enter, 2), (2, Enter, 3), (6, Exit, 1)];
    let expected = ["2: 3@2+4/4 Unwound", "1: 2@1+5/1 Unwound", "0: 1@0+6/1 Exit"];
    assert_eq!(visited_calls(&events, &Selection::default()), expected);
}

#[test]
fn lost_entries_are_around_what_came_before() {
    let events = [(3, Exit, 9), (4, Enter, 1), (5, Exit, 1), (8, Exit, 7)];
    let expected = ["1: 9@3+0/0 Exit", "1: 1@4+1/1 Exit", "0: 7@3+5/4 Exit"];
    assert_eq!(visited_calls(&events, &Selection::default()), expected);
}

#[test]
fn an_exit_in_the_middle_of_others_is_an_orphan() {
    let events = [(0, Enter, 1), (1, Exit, 5), (2, Exit, 1)];
    assert_eq!(visited_calls(&events, &Selection::default()), ["orphan 5", "0: 1@0+2/2 Exit"]);
}

#[test]
fn calls_that_an_exception_left_end_with_the_catcher_whose_entry_was_lost() {
    // 7 calls 1, which calls 2; 2 throws, 7 catches and returns; its caller 8 calls 7 again, and the recording ends.
    let events = [
        (0, Exit, 3),
        (1, Enter, 1),
        (2, Enter, 2),
        (5, Exit, 7),
        (6, Enter, 7),
        (7, Enter, 1),
        (8, Exit, 7),
        (9, Exit, 8),
    ];
    let expected = [
        "2: 3@0+0/0 Exit",
        "3: 2@2+3/3 Unwound",
        "2: 1@1+4/1 Unwound",
        "1: 7@0+5/1 Exit",
        "2: 1@7+1/1 Unwound",
        "1: 7@6+2/1 Exit",
        "0: 8@0+9/2 Exit",
    ];
    assert_eq!(visited_calls(&events, &Selection::default()), expected);
}

#[test]
fn an_exit_within_a_call_that_ends_itself_is_an_orphan() {
    let events = [(0, Exit, 3), (1, Enter, 1), (2, Enter, 2), (3, Exit, 7), (4, Exit, 2), (5, Exit, 8)];
    let expected =
        ["1: 3@0+0/0 Exit", "orphan 7", "2: 2@2+2/2 Exit", "1: 1@1+4/2 Unwound", "0: 8@0+5/1 Exit"];
    assert_eq!(visited_calls(&events, &Selection::default()), expected);
}

#[test]
fn an_exit_by_an_exception_is_of_no_catcher() {
    // Mono records one of a call that has ended already.
    let events = [(0, Exit, 3), (1, Enter, 1), (2, Enter, 2), (3, ExceptionExit, 7)];
    let expected = ["0: 3@0+0/0 Exit", "orphan 7", "1: 2@2+1/1 Truncated", "0: 1@1+2/1 Truncated"];
    assert_eq!(visited_calls(&events, &Selection::default()), expected);
}

#[test]
fn the_recording_ends_before_its_calls() {
    let events = [(0, Enter, 1), (4, Enter, 2)];
    assert_eq!(
        visited_calls(&events, &Selection::default()),
        ["1: 2@4+0/0 Truncated", "0: 1@0+4/4 Truncated"]
    );
}

#[test]
fn a_time_range_cuts_calls() {
    let events = [(0, Enter, 1), (2, Enter, 2), (5, Exit, 2), (9, Exit, 1)];
    let selection = Selection { time_ns: Some(3..7), threads: None };
    assert_eq!(visited_calls(&events, &selection), ["1: 2@3+2/2 Exit", "0: 1@3+4/2 Truncated"]);
}

#[test]
fn calls_outside_of_a_time_range_are_not_reported() {
    let events = [(0, Enter, 1), (1, Exit, 1), (3, Enter, 2), (4, Exit, 2), (7, Enter, 3), (8, Exit, 3)];
    let selection = Selection { time_ns: Some(3..7), threads: None };
    assert_eq!(visited_calls(&events, &selection), ["0: 2@3+1/1 Exit"]);
}

#[test]
fn an_exception_ends_a_call_that_is_on_top() {
    let events = [(0, Enter, 1), (2, ExceptionExit, 1)];
    assert_eq!(visited_calls(&events, &Selection::default()), ["0: 1@0+2/2 Unwound"]);
}

#[test]
fn a_thread_has_a_stack_in_each_file() {
    let mut table = call_events::Builder::new();
    table.push(0, 0, None, Enter, 1, None, 0, 0);
    table.push(9, 0, None, Exit, 2, None, 0, 1);
    table.push(2, 0, None, Exit, 1, None, 1, 0);
    let batch = table.finish();
    let visited_calls =
        visit(|| std::iter::once(batch.clone()), &Selection::default(), CallTexts::default).unwrap().0;
    assert_eq!(visited_calls, ["orphan 2", "0: 1@0+9/9 Truncated", "0: 1@2+0/0 Exit"]);
}

#[test]
fn exits_without_an_entry_are_found_fast_in_a_deep_stack() {
    let enter = (0..200_000).map(|depth| (i64::from(depth), Enter, depth % 1000));
    let orphans = (0..200_000).map(|late| (200_000 + i64::from(late), Exit, 5000));
    let visited_calls = visited_calls(&enter.chain(orphans).collect::<Vec<_>>(), &Selection::default());
    assert_eq!(visited_calls.len(), 400_000);
    assert_eq!(visited_calls[399_999], "0: 0@0+399999/1 Truncated");
}
