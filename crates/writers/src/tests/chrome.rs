use CallEvent::{Argument, Enter, Exit, TailExit};

use super::*;

/// The events of thread 0, without what they all say.
fn calls(steps: &[(i64, CallEvent, u32)]) -> Vec<String> {
    let steps: Vec<Step> = steps.iter().map(|&(us, kind, function)| (0, us, kind, function)).collect();
    short(&Made::of(vec![events(&steps)]).chrome())
}

fn short(events: &[String]) -> Vec<String> {
    let calls = events.iter().filter(|event| !event.contains("\"ph\":\"M\""));
    calls.map(|event| event.replace("\"pid\":10,\"tid\":10,", "").replace("\"name\":\"main\",", "")).collect()
}

#[test]
fn processes_and_threads_have_names() {
    let written = Made::of(vec![events(&[(0, 5, Enter, 0), (1, 6, Enter, 1)])]).chrome();
    assert_eq!(
        written,
        [
            r#"{"name":"process_name","ph":"M","pid":10,"tid":10,"args":{"name":"app \"1\""}}"#,
            r#"{"name":"thread_name","ph":"M","pid":10,"tid":10,"args":{"name":"app \"1\""}}"#,
            r#"{"name":"main","ph":"X","pid":10,"tid":10,"ts":0,"dur":0,"args":{"end_reason":"truncated"}}"#,
            r#"{"name":"operator\"\"_x","ph":"X","pid":10,"tid":11,"ts":1,"dur":0,"args":{"end_reason":"truncated"}}"#,
        ]
    );
}

#[test]
fn a_call_is_one_event() {
    let written = calls(&[(5, Enter, 0), (6, Enter, 1), (8, Exit, 1), (9, Exit, 0)]);
    assert_eq!(
        written,
        [r#"{"name":"operator\"\"_x","ph":"X","ts":1,"dur":2}"#, r#"{"ph":"X","ts":0,"dur":4}"#]
    );
}

#[test]
fn names_are_escaped_and_never_empty() {
    let written =
        calls(&[(0, Enter, 2), (1, Exit, 2), (2, Enter, 3), (3, Exit, 3), (4, Enter, 99), (5, Exit, 99)]);
    assert_eq!(
        written,
        [
            r#"{"name":"b\\é\n","ph":"X","ts":0,"dur":1}"#,
            r#"{"name":"(no name)","ph":"X","ts":2,"dur":1}"#,
            r#"{"name":"(no name)","ph":"X","ts":4,"dur":1}"#,
        ]
    );
}

#[test]
fn calls_that_end_together_are_two_events_each() {
    let written = calls(&[(0, Enter, 0), (1, Enter, 1), (3, Exit, 0)]);
    assert_eq!(
        written,
        [
            r#"{"ph":"B","ts":0}"#,
            r#"{"name":"operator\"\"_x","ph":"B","ts":1}"#,
            r#"{"name":"operator\"\"_x","ph":"E","ts":3,"args":{"end_reason":"unwound"}}"#,
            r#"{"ph":"E","ts":3}"#,
        ]
    );
}

#[test]
fn so_is_a_call_whose_end_is_the_start_of_the_next() {
    let written = calls(&[(0, Enter, 0), (3, TailExit, 0), (3, Enter, 0), (4, Exit, 0)]);
    assert_eq!(
        written,
        [
            r#"{"ph":"B","ts":0}"#,
            r#"{"ph":"E","ts":3,"args":{"end_reason":"tail_call"}}"#,
            r#"{"ph":"X","ts":3,"dur":1}"#,
        ]
    );
}

#[test]
fn what_begins_with_a_call_comes_after_it() {
    let written =
        calls(&[(0, Enter, 0), (0, Enter, 1), (0, Enter, 1), (3, Exit, 1), (4, Exit, 1), (5, Exit, 0)]);
    assert_eq!(
        written,
        [
            r#"{"ph":"X","ts":0,"dur":5}"#,
            r#"{"name":"operator\"\"_x","ph":"X","ts":0,"dur":4}"#,
            r#"{"name":"operator\"\"_x","ph":"X","ts":0,"dur":3}"#,
        ]
    );
}

#[test]
fn arguments_and_lost_starts_are_written() {
    let written = calls(&[(0, Enter, 1), (0, Argument, 1), (2, Exit, 1), (3, Exit, 0)]);
    assert_eq!(
        written,
        [
            r#"{"ph":"X","ts":0,"dur":3,"args":{"start_reason":"lost"}}"#,
            r#"{"name":"operator\"\"_x","ph":"X","ts":0,"dur":2,"args":{"arguments":["0xfffffffffffffffe"]}}"#,
        ]
    );
}

#[test]
fn an_exit_without_its_call_is_of_no_length() {
    let written = calls(&[(0, Enter, 0), (1, Exit, 2), (2, Exit, 0)]);
    assert_eq!(
        written,
        [
            r#"{"name":"b\\é\n","ph":"X","ts":1,"dur":0,"args":{"start_reason":"lost"}}"#,
            r#"{"ph":"X","ts":0,"dur":2}"#,
        ]
    );
}

#[test]
fn moments_have_their_bytes() {
    let mut made = Made::of(Vec::new());
    let mut table = instants::Builder::new();
    table.push(7_000_001, 0, None, "custom_event", Some("a \"b\""), None, None, Some(b"a \"b\""), 0, 0);
    table.push(7_000_010, 0, None, "typed_event", None, Some(3), None, Some(b"\xff\x00"), 0, 0);
    made.instants = table.finish();
    assert_eq!(
        short(&made.chrome()),
        [
            r#"{"name":"a \"b\"","ph":"i","s":"t","ts":0,"args":{"kind":"custom_event","payload":"a \"b\""}}"#,
            r#"{"name":"typed_event","ph":"i","s":"t","ts":0.009,"args":{"kind":"typed_event","event_type":3,"payload_hex":"ff00"}}"#,
        ]
    );
}

#[test]
fn a_time_range_cuts() {
    let steps = [
        (0, 0, Enter, 0),
        (0, 1, Enter, 1),
        (0, 6, Exit, 1),
        (0, 7, Enter, 2),
        (0, 8, Exit, 2),
        (0, 9, Exit, 0),
    ];
    let mut made = Made::of(vec![events(&steps)]);
    made.selection.time_ns = Some(5000..7000);
    assert_eq!(
        short(&made.chrome()),
        [
            r#"{"ph":"X","ts":0,"dur":2,"args":{"start_reason":"lost","end_reason":"truncated"}}"#,
            r#"{"name":"operator\"\"_x","ph":"X","ts":0,"dur":1,"args":{"start_reason":"lost"}}"#,
        ]
    );
}

#[test]
fn write_errors_are_returned() {
    let made = Made::of(vec![events(&[(0, 0, Enter, 0), (0, 1, Exit, 0)])]);
    let mut message = String::new();
    made.write(|trace, _| {
        let failed =
            super::super::chrome::write(trace, trace.survey.first_ns.unwrap_or(0), Full, &mut |_| true)
                .unwrap_err();
        message = failed.to_string();
        Ok(())
    });
    assert_eq!(message, io::Error::from(io::ErrorKind::StorageFull).to_string());
}

#[test]
fn who_waits_may_stop_it() {
    let made = Made::of(vec![events(&[(0, 0, Enter, 0), (0, 1, Exit, 0)])]);
    made.write(|trace, out| {
        assert!(matches!(
            super::super::chrome::write(trace, trace.survey.first_ns.unwrap_or(0), out, &mut |_| false),
            Err(Error::Stopped)
        ));
        Ok(())
    });
}
