//! Tables `allocations`, `object_moves` and `gc_handles`.

use std::sync::Arc;

use perfuse_recording::{BatchStream, Placement, TableRequest, one_batch};
use perfuse_tables::{AllocationGroup, AllocationSum, allocations, gc_handles, object_moves};
use rustc_hash::FxHashMap;

use crate::consts::{EventByte, KindSet, handle_name};
use crate::decode::backtraces::KnownBacktraces;
use crate::decode::runs::AllocEvent;
use crate::ingest::scan;
use crate::ingest::threads::ThreadKeys;
use crate::log::LogData;
use crate::open_calls;
use crate::records::{EventBody, int_size};
use crate::stacks::OF_ALLOCATIONS;

/// A predicate for the requested object addresses.
fn requested_objects(request: &TableRequest) -> impl Fn(u64) -> bool + Send + Sync + 'static {
    /// Size of a bit filter before the binary search: few of millions of addresses are requested.
    const FILTER_BITS: u64 = 1 << 13;
    let bit = |object: u64| object.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 51;
    let objects = request.objects.clone();
    let mut bits = vec![0u64; (FILTER_BITS / 64) as usize];
    for object in objects.iter().flat_map(|all| all.iter()) {
        if let Some(word) = bits.get_mut((bit(*object) / 64) as usize) {
            *word |= 1 << (bit(*object) % 64);
        }
    }
    move |object| {
        let Some(objects) = &objects else { return true };
        let may_be =
            bits.get((bit(object) / 64) as usize).is_some_and(|word| word >> (bit(object) % 64) & 1 != 0);
        may_be && objects.binary_search(&object).is_ok()
    }
}

/// Table `allocations`, with or without stacks, of all or of the requested objects.
pub fn allocations(log: &Arc<LogData>, placement: &Placement, request: &TableRequest) -> BatchStream {
    const KINDS: KindSet = OF_ALLOCATIONS;
    let threads = ThreadKeys::new(log, placement);
    let placement = placement.clone();
    let with_stacks = !request.no_allocation_stacks;
    let is_requested = requested_objects(request);
    let selection =
        scan::BufferSelection { objects: request.objects.clone(), ..scan::BufferSelection::default() };
    let prepare = move |log: &LogData| {
        if with_stacks {
            let _ = log.stacks();
        }
    };
    scan::scan_prepared_batches(
        log,
        KINDS,
        &selection,
        prepare,
        move |log, group, known: &mut KnownBacktraces<_>| {
            let names = log.names();
            let mut table = allocations::Builder::new();
            let mut push = |buffer: usize, it: &AllocEvent, stack: Option<u32>| {
                table.push(
                    placement.clock.ns(it.time),
                    threads.of_buffer(log, buffer),
                    names.object_type(it.class, it.time).map(|it| placement.first.type_.saturating_add(it)),
                    it.object,
                    int_size(it.size),
                    stack.map(|stack| placement.first.stack.saturating_add(stack)),
                    placement.source_id,
                    it.offset,
                );
            };
            if with_stacks && open_calls::kinds(log.survey()).meets(KINDS) {
                scan::for_each_event_and_stack(log, group, KINDS, Some(log.stacks()), |at, event, stack| {
                    if let Some(it) = AllocEvent::of(event)
                        && is_requested(it.object)
                    {
                        push(at.buffer, &it, stack);
                    }
                });
            } else if with_stacks {
                let stacks = log.stacks();
                let stack_of = |methods: &[u64], time: u64| stacks.meaning_of(methods, names, time);
                for &buffer in group {
                    let each = |it: &AllocEvent, stack: Option<u32>| {
                        if is_requested(it.object) {
                            push(buffer, it, stack);
                        }
                    };
                    log.survey().for_each_alloc_and_backtrace(&log.source, buffer, known, stack_of, each);
                }
            } else {
                for &buffer in group {
                    log.survey().for_each_alloc(&log.source, buffer, |it| {
                        if is_requested(it.object) {
                            push(buffer, it, None);
                        }
                    });
                }
            }
            table.finish()
        },
    )
}

/// Totals of table `allocations`; `None` if the survey has none, or the address of a class was reused.
pub fn totals(log: &LogData, placement: &Placement) -> Option<Vec<AllocationSum>> {
    let (totals, names) = (log.survey().events.allocations.totals()?, log.names());
    let threads = ThreadKeys::new(log, placement);
    let resolved = totals.iter().map(|total| {
        let type_id = names.object_type(total.class, total.first);
        names.is_constant_type(total.class).then(|| AllocationSum {
            group: AllocationGroup {
                thread_id: threads.of_buffer(log, total.buffer),
                type_id: type_id.map(|it| placement.first.type_.saturating_add(it)),
                stack_id: None,
            },
            count: total.count,
            bytes: total.bytes,
            largest: total.largest,
            first_ns: placement.clock.ns(total.first),
            source_id: placement.source_id,
            record_offset: total.offset,
        })
    });
    resolved.collect()
}

/// Table `object_moves`, whole or from and to the requested addresses.
pub fn object_moves(log: &Arc<LogData>, placement: &Placement, request: &TableRequest) -> BatchStream {
    let placement = placement.clone();
    let is_requested = requested_objects(request);
    const KINDS: KindSet = KindSet::of(&[EventByte::GC_MOVE]);
    scan::scan_batches(log, KINDS, move |log, group| {
        let mut table = object_moves::Builder::new();
        scan::for_each_event_of(log, group, KINDS, false, |at, event| {
            for pair in event.addresses.chunks_exact(2) {
                if let [old, new] = *pair
                    && (is_requested(old) || is_requested(new))
                {
                    let ts_ns = placement.clock.ns(at.time);
                    table.push(ts_ns, old, new, placement.source_id, event.offset);
                }
            }
        });
        table.finish()
    })
}

/// The creation or destruction of a handle.
struct HandleEvent {
    time: u64,
    thread: u32,
    kind: u64,
    handle: u64,
    object: Option<u64>,
    stack: Option<u32>,
    offset: u64,
}

/// Table `gc_handles`.
pub fn gc_handles(log: &Arc<LogData>, placement: &Placement, request: &TableRequest) -> BatchStream {
    const KINDS: KindSet = KindSet::of(&[
        EventByte::GC_HANDLE_CREATED,
        EventByte::GC_HANDLE_CREATED_BT,
        EventByte::GC_HANDLE_DESTROYED,
        EventByte::GC_HANDLE_DESTROYED_BT,
    ]);
    let threads = ThreadKeys::new(log, placement);
    let stacks = log.stacks_for(request);
    let mut events = scan::collect_events_and_stacks(log, KINDS, stacks, |at, event, stack, found| {
        let (kind, handle, object) = match event.body {
            EventBody::HandleCreated { kind, handle, object } => (kind, handle, Some(object)),
            EventBody::HandleDestroyed { kind, handle } => (kind, handle, None),
            _ => return,
        };
        let thread = threads.of_buffer(log, at.buffer);
        found.push(HandleEvent { time: at.time, thread, kind, handle, object, stack, offset: event.offset });
    });
    events.sort_by_key(|handle_event| handle_event.time);
    let mut table = gc_handles::Builder::new();
    let mut push = |created: Option<&HandleEvent>, destroyed: Option<&HandleEvent>| {
        let Some(first) = created.or(destroyed) else { return };
        let ns = |handle_event: Option<&HandleEvent>| {
            handle_event.map(|handle_event| placement.clock.ns(handle_event.time))
        };
        let stack = |handle_event: Option<&HandleEvent>| {
            handle_event
                .and_then(|handle_event| handle_event.stack)
                .map(|stack| placement.first.stack.saturating_add(stack))
        };
        table.push(
            first.handle,
            handle_name(first.kind),
            created.and_then(|handle_event| handle_event.object),
            ns(created),
            ns(destroyed),
            created.map(|handle_event| handle_event.thread),
            destroyed.map(|handle_event| handle_event.thread),
            stack(created),
            stack(destroyed),
            placement.source_id,
            first.offset,
        );
    };
    let mut open = FxHashMap::default();
    for handle_event in &events {
        let created = match handle_event.object {
            Some(_) => open.insert((handle_event.kind, handle_event.handle), handle_event),
            None => {
                push(open.remove(&(handle_event.kind, handle_event.handle)), Some(handle_event));
                None
            }
        };
        // The runtime reuses handle numbers: the destruction of the previous handle was not recorded.
        push(created, None);
    }
    let mut leaked: Vec<_> = open.into_values().collect();
    leaked.sort_by_key(|handle_event| handle_event.time);
    leaked.into_iter().for_each(|handle_event| push(Some(handle_event), None));
    one_batch(table.finish())
}
