use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use super::*;

fn endless() {
    loop {
        checkpoint();
    }
}

#[test]
fn a_call_ends_at_its_next_checkpoint() {
    let call = Call::new();
    let stopper = call.clone();
    let thread = std::thread::spawn(move || call.run(endless));
    stopper.stop(StopReason::OutOfMemory);
    stopper.stop(StopReason::Interrupted);
    assert_eq!(thread.join().unwrap(), Err(StopReason::OutOfMemory));
    assert_eq!(Call::new().run(|| (0..10u32).map(in_call(|n| n * 2)).sum::<u32>()), Ok(90));
}

#[test]
fn other_calls_continue() {
    let (one, other) = (Call::new(), Call::new());
    one.stop(StopReason::Interrupted);
    assert_eq!(other.run(|| checked(0..10).count()), Ok(10));
    assert_eq!(one.run(|| checked(0..10).count()), Err(StopReason::Interrupted));
    assert_eq!(checked(0..10).count(), 10);
}

#[test]
fn parts_end_with_the_call_and_alone() {
    let call = Call::new();
    let part = call.enter(Call::part_of_current);
    let other = call.enter(Call::part_of_current);
    part.stop(StopReason::Interrupted);
    assert_eq!((call.stopped(), other.stopped()), (None, None));
    call.stop(StopReason::OutOfMemory);
    assert_eq!(other.stopped(), Some(StopReason::OutOfMemory));
    assert_eq!(part.stopped(), Some(StopReason::Interrupted));
}

#[test]
fn a_stream_ends_with_the_call_of_its_reader() {
    let (stream, reader) = (Call::new(), Call::new());
    reader.stop(StopReason::Interrupted);
    let pulled = reader.enter(|| stream.within_current().run(endless));
    assert_eq!(pulled, Err(StopReason::Interrupted));
    assert_eq!(stream.within_current().run(|| checked(0..3).count()), Ok(3));
}

#[test]
fn functions_of_a_call_work_for_it_in_any_thread() {
    let call = Call::new();
    let work = call.enter(|| in_call(|()| endless()));
    call.stop(StopReason::Interrupted);
    let ended = std::thread::scope(|scope| scope.spawn(move || work(())).join());
    assert_eq!(*ended.unwrap_err().downcast::<StopReason>().unwrap(), StopReason::Interrupted);
}

#[test]
fn a_value_that_was_not_completed_is_computed_again() {
    let value = OnceLock::new();
    let call = Call::new();
    call.stop(StopReason::Interrupted);
    assert!(call.run(|| *value.get_or_init(|| checked(0..3).count())).is_err());
    assert_eq!(*value.get_or_init(|| checked(0..3).count()), 3);
}

#[test]
fn work_in_the_background_is_stopped_together() {
    static STARTED: AtomicBool = AtomicBool::new(false);
    let thread = std::thread::spawn(|| {
        background_call().run(|| {
            STARTED.store(true, Ordering::SeqCst);
            endless();
        })
    });
    while !STARTED.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    stop_background();
    assert_eq!(thread.join().unwrap(), Err(StopReason::Interrupted));
}

#[test]
fn destructors_have_checkpoints_without_effect() {
    struct Counted<'a>(&'a mut u32);
    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            *self.0 += checked(0..5).count() as u32;
        }
    }
    let mut num = 0;
    let call = Call::new();
    call.stop(StopReason::Interrupted);
    let ended = call.run(|| {
        let _counted = Counted(&mut num);
        checkpoint();
    });
    assert!(ended.is_err());
    assert_eq!(num, 5);
}

#[test]
fn panics_of_libraries_are_errors() {
    assert_eq!(contain(|| 7), Ok(7));
    assert_eq!(contain(|| -> u8 { panic!("of the input") }), Err("of the input".to_owned()));
    assert_eq!(contain(is_contained), Ok(true));
    assert!(!is_contained());
}

#[test]
fn a_stopped_call_unwinds_through_a_library() {
    let call = Call::new();
    call.stop(StopReason::Interrupted);
    let result = call.run(|| contain(checkpoint));
    assert_eq!(result, Err(StopReason::Interrupted));
}
