//! Tables `functions`, `call_events`, `call_sums` and `instants`.

mod columns;
mod events;
mod instants;
mod sums;

use perfuse_tables::{Identities, functions};

use super::log::{Content, XRay};
use perfuse_recording::{BatchStream, Placement, Recording, Scale, one_batch};

pub use events::segments as call_segments;

/// One of the tables; `None` for others.
pub fn table(log: &XRay, name: &str, placement: &Placement) -> Option<BatchStream> {
    match name {
        "functions" => Some(one_batch(functions(log, placement))),
        "call_events" => Some(events::stream(log, placement)),
        "call_sums" => Some(sums::stream(log, placement)),
        "instants" => Some(instants::stream(log, placement)),
        _ => None,
    }
}

/// A log has numbers for its functions; an instrumentation map has their names.
fn functions(log: &XRay, placement: &Placement) -> arrow_array::RecordBatch {
    let mut table = functions::Builder::new();
    for (key, &id) in (placement.first.function..).zip(log.function_ids()) {
        let name = match log.content() {
            Content::Fdr(_) => format!("function {id}"),
            Content::Basic(_) | Content::Profile(_) => format!("function {}", id.cast_signed()),
        };
        table.push(key, Some(id.into()), &name, &name, None, None, None, None);
    }
    table.finish()
}

/// Time stamps of this log on the profile's clock.
fn scale(log: &XRay, placement: &Placement) -> Scale {
    placement.clock.around(log.span().map_or(0, |(first, _)| first))
}

/// The key of a thread.
fn thread(placement: &Placement, (pid, tid): (i32, i32)) -> u32 {
    let pid = placement.pid.unwrap_or(pid);
    let lock = placement.identities.lock();
    let mut identities = lock.unwrap_or_else(std::sync::PoisonError::into_inner);
    Identities::thread(&mut identities, pid, tid)
}
