//! Tables `allocations`, `object_moves` and `gc_handles`.

use std::sync::Arc;

use perfuse_tables::{allocations, gc_handles, object_moves};
use rustc_hash::FxHashMap;

use super::pass;
use super::threads::ThreadKeys;
use crate::consts::{EventByte, KindSet, handle_name};
use crate::decode::Alloc;
use crate::recording::Shared;
use crate::records::{Body, int_size};
use perfuse_recording::{AllocationSum, BatchStream, Placement, TableRequest, one_batch};

/// A predicate for the requested object addresses.
fn wanted(request: &TableRequest) -> impl Fn(u64) -> bool + Send + Sync + 'static {
    /// Size of a bit filter before the binary search: few of millions of addresses are requested.
    const BITS: u64 = 1 << 13;
    let bit = |object: u64| object.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 51;
    let objects = request.objects.clone();
    let mut bits = vec![0u64; (BITS / 64) as usize];
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
pub fn allocations(log: &Arc<Shared>, placement: &Placement, request: &TableRequest) -> BatchStream {
    const KINDS: KindSet = KindSet::of(&[EventByte::ALLOC, EventByte::ALLOC_BT]);
    let threads = ThreadKeys::new(log, placement);
    let placement = placement.clone();
    let with_stacks = !request.no_allocation_stacks;
    let is_wanted = wanted(request);
    let parts = pass::Part { objects: request.objects.clone(), ..pass::Part::default() };
    pass::batches_of(log, KINDS, &parts, move |log, group| {
        let names = log.names();
        let mut table = allocations::Builder::new();
        let mut push = |buffer: usize, it: &Alloc, stack: Option<u32>| {
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
        if with_stacks {
            let stacks = log.stacks();
            pass::each_without(log, group, KindSet::default(), |at, _, event| {
                if let Body::Alloc { class, object, size } = event.body
                    && is_wanted(object)
                {
                    let (byte, offset, time) = (event.byte, event.offset, at.time);
                    let stack = stacks.of_backtrace(&event.frames, names, time);
                    push(at.buffer, &Alloc { byte, offset, time, class, object, size }, stack);
                }
            });
        } else {
            for &buffer in group {
                log.survey().each_alloc(&log.source, buffer, |it| {
                    if is_wanted(it.object) {
                        push(buffer, it, None);
                    }
                });
            }
        }
        table.finish()
    })
}

/// Totals of table `allocations`; `None` if the survey has none, or the address of a class was reused.
pub fn sums(log: &Shared, placement: &Placement) -> Option<Vec<AllocationSum>> {
    let (sums, names) = (log.survey().allocated.sums()?, log.names());
    let threads = ThreadKeys::new(log, placement);
    let resolved = sums.iter().map(|sum| {
        let type_id = names.object_type(sum.class, sum.first);
        names.is_constant_type(sum.class).then(|| AllocationSum {
            thread_id: threads.of_buffer(log, sum.buffer),
            type_id: type_id.map(|it| placement.first.type_.saturating_add(it)),
            count: sum.count,
            bytes: sum.bytes,
            largest: sum.largest,
            first_ns: placement.clock.ns(sum.first),
            source_id: placement.source_id,
            record_offset: sum.offset,
        })
    });
    resolved.collect()
}

/// Table `object_moves`, whole or from and to the requested addresses.
pub fn object_moves(log: &Arc<Shared>, placement: &Placement, request: &TableRequest) -> BatchStream {
    let placement = placement.clone();
    let is_wanted = wanted(request);
    const KINDS: KindSet = KindSet::of(&[EventByte::GC_MOVE]);
    pass::batches(log, KINDS, move |log, group| {
        let mut table = object_moves::Builder::new();
        pass::each_of(log, group, KINDS, false, |at, event| {
            for pair in event.addresses.chunks_exact(2) {
                if let [old, new] = *pair
                    && (is_wanted(old) || is_wanted(new))
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
struct HandleFact {
    time: u64,
    thread: u32,
    kind: u64,
    handle: u64,
    object: Option<u64>,
    stack: Option<u32>,
    offset: u64,
}

/// Table `gc_handles`.
pub fn gc_handles(log: &Arc<Shared>, placement: &Placement, request: &TableRequest) -> BatchStream {
    const KINDS: KindSet = KindSet::of(&[
        EventByte::GC_HANDLE_CREATED,
        EventByte::GC_HANDLE_CREATED_BT,
        EventByte::GC_HANDLE_DESTROYED,
        EventByte::GC_HANDLE_DESTROYED_BT,
    ]);
    let threads = ThreadKeys::new(log, placement);
    let (names, stacks) = (log.names(), log.stacks_for(request));
    let mut facts = pass::gather_of(log, KINDS, stacks.is_some(), |at, event, found| {
        let (kind, handle, object) = match event.body {
            Body::HandleCreated { kind, handle, object } => (kind, handle, Some(object)),
            Body::HandleDestroyed { kind, handle } => (kind, handle, None),
            _ => return,
        };
        let stack = stacks.and_then(|stacks| stacks.of_backtrace(&event.frames, names, at.time));
        let thread = threads.of_buffer(log, at.buffer);
        found.push(HandleFact { time: at.time, thread, kind, handle, object, stack, offset: event.offset });
    });
    facts.sort_by_key(|fact| fact.time);
    let mut table = gc_handles::Builder::new();
    let mut push = |made: Option<&HandleFact>, freed: Option<&HandleFact>| {
        let Some(first) = made.or(freed) else { return };
        let ns = |fact: Option<&HandleFact>| fact.map(|fact| placement.clock.ns(fact.time));
        let stack = |fact: Option<&HandleFact>| {
            fact.and_then(|fact| fact.stack).map(|stack| placement.first.stack.saturating_add(stack))
        };
        table.push(
            first.handle,
            handle_name(first.kind),
            made.and_then(|fact| fact.object),
            ns(made),
            ns(freed),
            made.map(|fact| fact.thread),
            freed.map(|fact| fact.thread),
            stack(made),
            stack(freed),
            placement.source_id,
            first.offset,
        );
    };
    let mut open = FxHashMap::default();
    for fact in &facts {
        let made = match fact.object {
            Some(_) => open.insert((fact.kind, fact.handle), fact),
            None => {
                push(open.remove(&(fact.kind, fact.handle)), Some(fact));
                None
            }
        };
        // The runtime reuses handle numbers: the destruction of the previous handle was not recorded.
        push(made, None);
    }
    let mut leaked: Vec<_> = open.into_values().collect();
    leaked.sort_by_key(|fact| fact.time);
    leaked.into_iter().for_each(|fact| push(Some(fact), None));
    one_batch(table.finish())
}
