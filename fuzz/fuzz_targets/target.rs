//! Fuzzes the target that `PERFUSE_FUZZ_TARGET` names; without a target of that name, lists all of them.
#![no_main]

use std::panic;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use perfuse_fuzzing::{Target, targets};

fn selected() -> &'static Target {
    static SELECTED: OnceLock<Target> = OnceLock::new();
    SELECTED.get_or_init(|| {
        let name = std::env::var("PERFUSE_FUZZ_TARGET").unwrap_or_default();
        let mut all = targets();
        let Some(at) = all.iter().position(|target| target.name == name) else {
            for target in all {
                println!("{}\t{}\t{}", target.name, target.seeds, target.purpose);
            }
            // SAFETY: the call has no requirements. Exit handlers would report the end as a crash.
            unsafe { libc::_exit(i32::from(!name.is_empty())) }
        };
        all.swap_remove(at)
    })
}

/// Runs everything in this thread: handing work to others takes longer than most inputs do, and would hide what they cover
/// from the input that follows. Panics end the process, but those of libraries that become errors.
fn prepare() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread();
    pool.build_global().expect("the first pool of the process");
    let end = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !perfuse_stopping::is_contained() {
            end(info);
        }
    }));
}

/// The same keys for the hash maps of each process: what an input covers does not depend on chance, so that a run with the same
/// seed tries the same inputs. The standard library calls this function, by its name in libc.
#[unsafe(no_mangle)]
extern "C" fn getrandom(buffer: *mut u8, length: usize, _flags: u32) -> isize {
    // SAFETY: the caller passes a buffer of this length.
    unsafe { buffer.write_bytes(1, length) };
    length.cast_signed()
}

fuzz_target!(init: prepare(), |bytes: &[u8]| (selected().run)(bytes));
