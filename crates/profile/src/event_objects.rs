//! Objects of exceptions, lock events and finalizers, with their allocations: what ranges of time need of all time before.

use arrow_array::RecordBatch;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use perfuse_engine::allocated::AllocationOrigin;
use perfuse_formats::TableRequest;
use perfuse_tables::access::{ColumnError, nullable, numbers, text};
use perfuse_tables::{Choices, ExceptionEvent, event_objects};
use rustc_hash::FxHashMap;

use crate::profile::Profile;

/// Name of the slices that finalizers are.
const FINALIZER: &str = "finalizer";

impl Profile {
    /// Table `event_objects` of all events.
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub fn event_objects(&self) -> Result<RecordBatch, ColumnError> {
        let mut objects: Vec<(i64, u64)> = Vec::new();
        let request = TableRequest { no_stacks: true, ..TableRequest::default() };
        for table in ["exceptions", "lock_events"] {
            for batch in self.recording_set().rows(table, request.clone()) {
                let times = numbers::<Int64Type>(&batch, "ts_ns")?.values();
                let addresses = numbers::<UInt64Type>(&batch, "object_address")?;
                let kinds = text(&batch, "kind")?;
                let is_counted =
                    |row| table != "exceptions" || kinds.get(row) == Some(ExceptionEvent::Throw.name());
                for (row, &time) in times.iter().enumerate().filter(|(row, _)| is_counted(*row)) {
                    objects.extend(nullable(addresses, row).map(|address| (time, address)));
                }
            }
        }
        for batch in self.recording_set().rows("slices", request) {
            let times = numbers::<Int64Type>(&batch, "start_ns")?.values();
            let (names, args) = (text(&batch, "name")?, text(&batch, "args")?);
            for (row, &time) in times.iter().enumerate().filter(|(row, _)| names.get(*row) == Some(FINALIZER))
            {
                objects.extend(args.get(row).and_then(address_in).map(|address| (time, address)));
            }
        }
        objects.sort_unstable();
        objects.dedup();
        let requested: Vec<(u64, i64)> = objects.iter().map(|&(time, address)| (address, time)).collect();
        let found = if requested.is_empty() { Vec::new() } else { self.origins(&requested)? };
        let mut table = event_objects::Builder::new();
        for (&(address, ts_ns), origin) in requested.iter().zip(&found) {
            let origin = origin.as_ref();
            table.push(
                ts_ns,
                address,
                origin.and_then(|it| it.type_id),
                origin.map(|it| it.ts_ns),
                origin.map(|it| it.address),
                origin.map(|it| it.size_bytes),
            );
        }
        Ok(table.finish())
    }
}

/// The address in arguments of a slice, which are `["0x7f44"]`.
fn address_in(args: &str) -> Option<u64> {
    let digits = args.strip_prefix("[\"0x")?.strip_suffix("\"]")?;
    u64::from_str_radix(digits, 16).ok()
}

/// The allocations of objects, each an address and a time, among rows of `event_objects`; `None` where one has no row.
///
/// # Errors
/// [`ColumnError`]
pub(crate) fn known_origins(
    rows: impl Iterator<Item = RecordBatch>,
    objects: &[(u64, i64)],
) -> Result<Option<Vec<Option<AllocationOrigin>>>, ColumnError> {
    let mut known: FxHashMap<(u64, i64), Option<Option<AllocationOrigin>>> =
        objects.iter().map(|object| (*object, None)).collect();
    for batch in rows {
        let times = numbers::<Int64Type>(&batch, "ts_ns")?.values();
        let addresses = numbers::<UInt64Type>(&batch, "object_address")?.values();
        let types = numbers::<UInt32Type>(&batch, "type_id")?;
        let allocated = numbers::<Int64Type>(&batch, "allocated_ns")?;
        let origins = numbers::<UInt64Type>(&batch, "allocated_address")?;
        let sizes = numbers::<UInt64Type>(&batch, "size_bytes")?;
        for (row, (&time, &address)) in times.iter().zip(addresses).enumerate() {
            let Some(object) = known.get_mut(&(address, time)) else { continue };
            let origin = || {
                Some(AllocationOrigin {
                    type_id: nullable(types, row),
                    ts_ns: nullable(allocated, row)?,
                    address: nullable(origins, row)?,
                    size_bytes: nullable(sizes, row)?,
                })
            };
            *object = Some(origin());
        }
    }
    Ok(objects.iter().map(|object| known.get(object).copied().flatten()).collect())
}
