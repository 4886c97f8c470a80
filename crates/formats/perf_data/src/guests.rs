//! Processes of virtual machines on the recorded one: `perf kvm record`, `perf inject --guest-data`.
//!
//! A guest has pids of its own, which may be those of processes of the host. Within this crate a process of a guest has a number
//! below -1, so that the two are never taken for one another.

use std::sync::{Mutex, OnceLock, PoisonError};

use perfuse_recording::Placement;
use perfuse_tables::ProcessIdentity;
use perfuse_wire::Endian;
use rustc_hash::FxHashMap;

use super::consts::{RecordType, misc};
use super::layout::IdIndex;
use super::record::RawEvent;

/// Size of an entry of ID_INDEX, and of what its second array has for it.
const ENTRY_BYTES: u64 = 32;
const GUEST_ENTRY_BYTES: u64 = 16;
/// Number of the first process of a guest.
const FIRST: i32 = -2;

/// A process of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GuestProcess {
    /// The guest: the process of the host that it runs in, such as QEMU.
    pub machine_pid: i32,
    /// Process, in the guest.
    pub pid: i32,
}

/// The processes of guests that were seen so far.
#[derive(Debug, Default)]
pub struct Guests {
    machines: OnceLock<FxHashMap<u64, i32>>,
    processes: Mutex<GuestProcesses>,
}

#[derive(Debug, Default)]
struct GuestProcesses {
    list: Vec<GuestProcess>,
    numbers: FxHashMap<GuestProcess, i32>,
}

/// Whether a record is of a guest.
#[must_use]
#[inline]
pub fn is_guest(misc: u16) -> bool {
    matches!(misc & misc::CPUMODE_MASK, misc::GUEST_KERNEL | misc::GUEST_USER)
}

impl Guests {
    /// The guest of an event id; the first call reads the records.
    pub fn machine<'a, R: Iterator<Item = RawEvent<'a>>>(
        &self,
        id: u64,
        endian: Endian,
        records: impl FnOnce() -> R,
    ) -> Option<i32> {
        self.machines.get_or_init(|| read_machines(records(), endian)).get(&id).copied()
    }

    /// Number of a process.
    pub fn number(&self, process: GuestProcess) -> i32 {
        let mut all = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        let GuestProcesses { list, numbers } = &mut *all;
        *numbers.entry(process).or_insert_with(|| {
            list.push(process);
            let index = i32::try_from(list.len()).unwrap_or(i32::MAX).saturating_sub(1);
            FIRST.saturating_sub(index)
        })
    }

    /// The process with a number; `None` for a process of the host.
    #[must_use]
    pub fn process(&self, number: i32) -> Option<GuestProcess> {
        let index = usize::try_from(FIRST.checked_sub(number)?).ok()?;
        self.processes.lock().unwrap_or_else(PoisonError::into_inner).list.get(index).copied()
    }

    /// The process of a profile that has a number.
    pub fn identity(&self, placement: &Placement, number: i32) -> ProcessIdentity {
        match self.process(number) {
            Some(GuestProcess { machine_pid, pid }) => ProcessIdentity::guest(machine_pid, pid),
            None => placement.process(number),
        }
    }
}

/// The guest of each event id that is of one, from the ID_INDEX records.
fn read_machines<'a>(records: impl Iterator<Item = RawEvent<'a>>, endian: Endian) -> FxHashMap<u64, i32> {
    let mut machines = FxHashMap::default();
    for record in records {
        perfuse_stopping::checkpoint();
        if record.record_type != RecordType::ID_INDEX {
            continue;
        }
        let mut cursor = record.cursor(endian);
        let Ok(IdIndex { nr }) = IdIndex::read(&mut cursor) else { continue };
        if cursor.remaining() as u64 != nr.saturating_mul(ENTRY_BYTES.saturating_add(GUEST_ENTRY_BYTES)) {
            continue;
        }
        let mut guests = cursor;
        if guests.bytes(nr.saturating_mul(ENTRY_BYTES), "entries").is_err() {
            continue;
        }
        for _ in 0..nr {
            let id = cursor.u64("id");
            let _ = cursor.bytes(ENTRY_BYTES.saturating_sub(8), "entry");
            let machine_pid = guests.u64("machine_pid");
            let _ = guests.u64("vcpu");
            if let (Ok(id), Ok(machine_pid)) = (id, machine_pid)
                && let Ok(machine_pid) = i32::try_from(machine_pid)
                && machine_pid != 0
            {
                machines.insert(id, machine_pid);
            }
        }
    }
    machines
}
