use std::ops::Range;

use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use perfuse_tables::access::{ColumnError, lists, numbers};
use rustc_hash::FxHashMap;

use super::chain_cache::{Chain, ChainCache};
use super::places::{Place, Places};
use crate::unwind::{Chains, Mark, Origin};

/// Addresses from here on are markers: what follows them in a chain ran in another context.
const CONTEXT_MAX: u64 = (-4095i64) as u64;
const CONTEXT_HYPERVISOR: u64 = (-32i64) as u64;
const CONTEXT_KERNEL: u64 = (-128i64) as u64;
const CONTEXT_USER: u64 = (-512i64) as u64;

/// No parent, no stack.
pub const NONE: u32 = u32::MAX;

/// A distinct place that samples saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// Process; 0 with the kernel's places, which all share.
    pub process_id: u32,
    /// The address as recorded.
    pub address: u64,
    /// Whether it is a return address: the call lies before it.
    pub is_return: bool,
    /// What found it.
    pub origin: Origin,
    /// What it lies in.
    pub place: Place,
}

impl Location {
    /// Whether it lies in the kernel's half of the address space.
    #[must_use]
    pub fn is_kernel(&self) -> bool {
        self.address >> 63 == 1
    }
}

/// Chains as a tree of locations.
#[derive(Debug, Default)]
pub struct Located {
    /// Distinct places.
    pub locations: Vec<Location>,
    /// `(parent node or NONE, location)`; a parent comes before its children.
    pub nodes: Vec<(u32, u32)>,
    /// The samples as recorded, without their addresses, and the innermost node of each.
    pub samples: Vec<(RecordBatch, Vec<u32>)>,
    /// Code that was hit, sorted.
    pub code_objects: Vec<u32>,
}

/// Finds what every address of every chain lies in.
///
/// # Errors
/// When a batch is not of table `callchains`.
pub fn locate(
    callchains: impl Iterator<Item = Result<Chains, ColumnError>>,
    places: Places<'_>,
) -> Result<Located, ColumnError> {
    let mut walk = Walk {
        places,
        out: Located::default(),
        location_ids: FxHashMap::default(),
        node_ids: FxHashMap::default(),
        recent: FxHashMap::default(),
        whole: ChainCache::default(),
    };
    for chains in callchains {
        let Chains { mut batch, marks } = chains?;
        let nodes = walk.batch(&batch, &marks)?;
        for done_with in ["addresses", "user_stack"] {
            if let Ok(at) = batch.schema().index_of(done_with) {
                batch.remove_column(at);
            }
        }
        walk.out.samples.push((batch, nodes));
    }
    let mut hit: Vec<u32> = walk
        .out
        .locations
        .iter()
        .filter_map(|l| match l.place {
            Place::Jit { code_object_id, .. } => Some(code_object_id),
            _ => None,
        })
        .collect();
    hit.sort_unstable();
    hit.dedup();
    walk.out.code_objects = hit;
    Ok(walk.out)
}

struct Walk<'a> {
    places: Places<'a>,
    out: Located,
    location_ids: FxHashMap<Location, u32>,
    node_ids: FxHashMap<(u32, u32), u32>,
    /// What an address was last found to be, and for how long that holds.
    recent: FxHashMap<(u32, u64, Mark), (i64, i64, u32)>,
    whole: ChainCache,
}

impl Walk<'_> {
    fn batch(&mut self, batch: &RecordBatch, marks: &[Option<Mark>]) -> Result<Vec<u32>, ColumnError> {
        let times = numbers::<Int64Type>(batch, "ts_ns")?;
        let processes = numbers::<UInt32Type>(batch, "process_id")?;
        let chains = lists(batch, "addresses")?;
        let values = chains.values().as_any().downcast_ref::<arrow_array::PrimitiveArray<UInt64Type>>();
        let values = values.ok_or(ColumnError { column: "addresses" })?.values();
        let offsets = chains.value_offsets();
        let mut found = Vec::new();
        let mut nodes = Vec::with_capacity(batch.num_rows());
        for row in 0..batch.num_rows() {
            let range = offsets[row] as usize..offsets[row + 1] as usize;
            let (addresses, marks) = (&values[range.clone()], marks.get(range).unwrap_or_default());
            let (process_id, at_ns) = (processes.value(row), times.value(row));
            let known = Chain { process_id, addresses, marks };
            if let Some(node) = self.whole.get(known, at_ns) {
                nodes.push(node);
                continue;
            }
            let chain = addresses.iter().copied();
            let chain = chain.zip(marks.iter().copied().chain(std::iter::repeat(None)));
            let holds = self.chain(chain, process_id, at_ns, &mut found);
            let mut node = NONE;
            for &location in found.iter().rev() {
                node = self.node(node, location);
            }
            self.whole.insert(known, holds, node);
            nodes.push(node);
        }
        Ok(nodes)
    }

    /// Locations of a chain, innermost first; returns for how long all of them hold.
    fn chain(
        &mut self,
        chain: impl Iterator<Item = (u64, Option<Mark>)>,
        process_id: u32,
        at_ns: i64,
        found: &mut Vec<u32>,
    ) -> Range<i64> {
        found.clear();
        let mut holds = i64::MIN..i64::MAX;
        let mut kernel = None;
        let mut is_return = false;
        for (address, mark) in chain {
            if address >= CONTEXT_MAX {
                match address {
                    CONTEXT_KERNEL | CONTEXT_HYPERVISOR => kernel = Some(true),
                    CONTEXT_USER => {
                        // The first address in user space is where it was interrupted, not one it returns to.
                        is_return = false;
                        kernel = Some(false);
                    }
                    _ => {}
                }
                continue;
            }
            let in_kernel = kernel.unwrap_or(address >> 63 == 1);
            let origin = if is_return { Origin::Callchain } else { Origin::Sampled };
            let mark = mark.unwrap_or(Mark { origin, is_return });
            let process_id = if in_kernel { None } else { Some(process_id) };
            let (from, until, location) = self.location(process_id, address, mark, at_ns);
            holds = holds.start.max(from)..holds.end.min(until);
            found.push(location);
            is_return = true;
        }
        holds
    }

    /// The location of an address, and since when and until when it is that.
    fn location(&mut self, process_id: Option<u32>, address: u64, mark: Mark, at_ns: i64) -> (i64, i64, u32) {
        let Mark { origin, is_return } = mark;
        let key = (process_id.unwrap_or(NONE), address, mark);
        if let Some(&known @ (from, until, _)) = self.recent.get(&key)
            && (from..until).contains(&at_ns)
        {
            return known;
        }
        let looked_up = address.wrapping_sub(u64::from(is_return));
        let (mut place, from, until) = match process_id {
            Some(process_id) => self.places.user(process_id, looked_up, at_ns),
            None => self.places.kernel(looked_up, at_ns),
        };
        if let Place::Jit { code_offset, .. } = &mut place {
            *code_offset += u64::from(is_return);
        }
        let location = Location { process_id: process_id.unwrap_or(0), address, is_return, origin, place };
        let next = self.out.locations.len() as u32;
        let id = *self.location_ids.entry(location).or_insert_with(|| {
            self.out.locations.push(location);
            next
        });
        self.recent.insert(key, (from, until, id));
        (from, until, id)
    }

    fn node(&mut self, parent: u32, location: u32) -> u32 {
        let next = self.out.nodes.len() as u32;
        *self.node_ids.entry((parent, location)).or_insert_with(|| {
            self.out.nodes.push((parent, location));
            next
        })
    }
}
