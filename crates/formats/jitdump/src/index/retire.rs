//! When code was overwritten by other code.

use std::collections::BTreeMap;

use super::Index;

/// Replays loads and moves in time order: code that other code is laid over is retired.
pub(super) fn replay(index: &mut Index) {
    let loads = index.codes.iter().zip(0u32..).map(|(code, id)| Event {
        at: code.timestamp,
        offset: code.offset,
        id,
        old: None,
        new: code.start,
    });
    let moves = index.moves.iter().map(|m| Event {
        at: m.timestamp,
        offset: m.offset,
        id: m.code,
        old: Some(m.old),
        new: m.new,
    });
    let mut events: Vec<Event> = loads.chain(moves).collect();
    if !events.is_sorted() {
        events.sort_unstable();
    }
    let mut live: BTreeMap<(u32, u64), (u64, u32)> = BTreeMap::new();
    for event in events {
        let Some(code) = index.codes.get(event.id as usize).copied() else { continue };
        if let Some(old) = event.old {
            live.remove(&(code.pid, old));
        }
        let end = event.new.saturating_add(code.size.max(1));
        while let Some((&key, &(live_end, id))) = live.range(..(code.pid, end)).next_back() {
            if key.0 != code.pid || live_end <= event.new {
                break;
            }
            live.remove(&key);
            if let Some(old) = index.codes.get_mut(id as usize).filter(|_| id != event.id) {
                old.retired = event.at;
            }
        }
        live.insert((code.pid, event.new), (end, event.id));
    }
}

/// A load or a move; ordered by time, then by place in the file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    at: u64,
    offset: u64,
    id: u32,
    old: Option<u64>,
    new: u64,
}
