//! The calls of a profile as an XRay log.

use std::io::Write;

use perfuse_formats::xray::consts::FUNCTION_ID_BITS;
use perfuse_formats::xray::convert::{FunctionNumbers, RecordSelection, TablesError, write_tables};
use perfuse_formats::xray::header::Mode;
use perfuse_formats::xray::writer::{FinishLog, LogSpec, LogWriter, WriteSummary};
use rustc_hash::FxHashMap;

use crate::profile::Profile;

/// What was written, and how many functions and threads have numbers other than their own.
pub struct CallLog {
    /// Counts of records.
    pub written: WriteSummary,
    /// Functions with new numbers.
    pub num_renumbered_functions: u64,
    /// Threads with new ids.
    pub num_renumbered_threads: u64,
}

/// Writes the calls and events of a profile as an XRay log with one tick per nanosecond.
///
/// # Errors
/// [`TablesError`]
pub fn write_call_log(
    profile: &Profile,
    spec: LogSpec,
    selection: &RecordSelection,
    is_monotonic: bool,
    out: impl Write,
) -> Result<CallLog, TablesError> {
    let bits = if spec.mode == Mode::Basic { u32::BITS } else { FUNCTION_ID_BITS };
    let mut writer = LogWriter::new(out, spec, is_monotonic)?;
    let numbers = FunctionNumbers::new(profile.stream("functions", false), bits)?;
    let mut num_renumbered_threads = 0u64;
    let mut owners = FxHashMap::default();
    let owner = |thread: u32| {
        let (pid, tid) = profile.thread_owner(thread);
        // Not the ids of a thread of another process with the same pid.
        if tid != 0 && *owners.entry((pid, tid)).or_insert(thread) == thread {
            return (pid, tid);
        }
        num_renumbered_threads = num_renumbered_threads.saturating_add(1);
        (pid, i32::MAX.wrapping_sub_unsigned(thread))
    };
    let (calls, instants) = (profile.stream("call_events", false), profile.stream("instants", true));
    write_tables(calls, instants, &numbers, owner, selection, &mut writer)?;
    let written = writer.finish()?;
    Ok(CallLog { written, num_renumbered_functions: numbers.num_new, num_renumbered_threads })
}
