//! The tracks of threads and their processes.

use std::collections::BTreeSet;

use super::super::{Thread, Tracks};
use super::fields::{process_descriptor, thread_descriptor, trace_packet, track_descriptor};
use crate::protobuf::Encoder;

/// The track of a thread.
pub fn thread_track(thread_id: u32) -> u64 {
    u64::from(thread_id) + 1
}

/// Track id of a thread's processor.
pub fn cpu_track(thread_id: u32) -> u64 {
    1 << 33 | u64::from(thread_id)
}

/// The track of a counter.
pub fn counter_track(counter_id: u32) -> u64 {
    1 << 34 | u64::from(counter_id)
}

/// A track of slices other than calls.
pub fn lane_track(number: u32) -> u64 {
    1 << 35 | u64::from(number)
}

/// The track of the size of a process's heap.
pub fn heap_track(pid: i32) -> u64 {
    1 << 36 | u64::from(pid.cast_unsigned())
}

/// The track of a counter of a process's heap, by its number.
pub fn heap_counter_track(number: usize) -> u64 {
    1 << 37 | number as u64
}

/// The track of a process.
pub fn process_track(pid: i32) -> u64 {
    1 << 32 | u64::from(pid.cast_unsigned())
}

/// Describes threads and their processes; `packet` writes one packet. Returns the described processes.
pub fn describe(
    tracks: &Tracks,
    thread_ids: &[u32],
    mut packet: impl FnMut(&dyn Fn(&mut Encoder)),
) -> BTreeSet<i32> {
    let mut described = BTreeSet::new();
    for (thread_id, thread) in tracks.in_order(thread_ids) {
        let Thread { pid, tid, name, process_name } = &thread;
        if described.insert(*pid) {
            packet(&|packet| process(packet, *pid, process_name.as_deref()));
        }
        packet(&|packet| {
            descriptor(packet, thread_track(thread_id), Some(process_track(*pid)), |track| {
                track.message(track_descriptor::THREAD, |thread| {
                    thread.int(thread_descriptor::PID, (*pid).into());
                    thread.int(thread_descriptor::TID, (*tid).into());
                    if let Some(name) = name {
                        thread.data(thread_descriptor::THREAD_NAME, name.as_bytes());
                    }
                });
            });
        });
    }
    described
}

/// Writes the track of a process, within which those of its threads are.
pub fn process(packet: &mut Encoder, pid: i32, name: Option<&str>) {
    descriptor(packet, process_track(pid), None, |track| {
        track.message(track_descriptor::PROCESS, |process| {
            process.int(process_descriptor::PID, pid.into());
            if let Some(name) = name {
                process.data(process_descriptor::PROCESS_NAME, name.as_bytes());
            }
        });
    });
}

/// A track within another.
pub fn descriptor(packet: &mut Encoder, uuid: u64, parent: Option<u64>, about: impl FnOnce(&mut Encoder)) {
    packet.message(trace_packet::TRACK_DESCRIPTOR, |track| {
        track.uint(track_descriptor::UUID, uuid);
        if let Some(parent) = parent {
            track.uint(track_descriptor::PARENT_UUID, parent);
        }
        about(track);
    });
}
