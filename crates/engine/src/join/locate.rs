use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use perfuse_tables::access::{ColumnError, lists, numbers};
use rustc_hash::FxHashMap;

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
        last: FxHashMap::default(),
        locations: Vec::new(),
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
    recent: FxHashMap<Address, (i64, i64, u32)>,
    /// The chain before of each thread: most of the next one is the same.
    last: FxHashMap<u32, Vec<Walked>>,
    locations: Vec<(i64, i64, u32)>,
}

/// An address of a chain, with all that tells what it is at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Address {
    /// [`NONE`] in the kernel.
    process_id: u32,
    address: u64,
    mark: Mark,
}

/// An address of a chain that was walked from the outermost one.
#[derive(Clone, Copy, Debug)]
struct Walked {
    address: Address,
    node: u32,
    /// While nothing from the outermost to here is replaced.
    from_ns: i64,
    until_ns: i64,
}

/// Threads whose last chain is kept.
const MAX_THREADS: usize = 1 << 12;

impl Walk<'_> {
    fn batch(&mut self, batch: &RecordBatch, marks: &[Option<Mark>]) -> Result<Vec<u32>, ColumnError> {
        let times = numbers::<Int64Type>(batch, "ts_ns")?;
        let processes = numbers::<UInt32Type>(batch, "process_id")?;
        let threads = numbers::<UInt32Type>(batch, "thread_id")?;
        let chains = lists(batch, "addresses")?;
        let values = chains.values().as_any().downcast_ref::<arrow_array::PrimitiveArray<UInt64Type>>();
        let values = values.ok_or(ColumnError { column: "addresses" })?.values();
        let offsets = chains.value_offsets();
        let mut chain = Vec::new();
        let mut nodes = Vec::with_capacity(batch.num_rows());
        for row in 0..batch.num_rows() {
            let range = offsets[row] as usize..offsets[row + 1] as usize;
            let (addresses, marks) = (&values[range.clone()], marks.get(range).unwrap_or_default());
            told(addresses, marks, processes.value(row), &mut chain);
            if self.last.len() >= MAX_THREADS {
                self.last.clear();
            }
            let mut last = self.last.remove(&threads.value(row)).unwrap_or_default();
            nodes.push(self.chain(&chain, times.value(row), &mut last));
            self.last.insert(threads.value(row), last);
        }
        Ok(nodes)
    }

    /// The node of a chain, innermost first. `walked` is the chain before of the thread, and then this one, outermost first.
    fn chain(&mut self, chain: &[Address], at_ns: i64, walked: &mut Vec<Walked>) -> u32 {
        let is_same = |(walked, address): &(&Walked, &Address)| {
            walked.address == **address && (walked.from_ns..walked.until_ns).contains(&at_ns)
        };
        let num_same = walked.iter().zip(chain.iter().rev()).take_while(is_same).count();
        walked.truncate(num_same);
        let mut locations = std::mem::take(&mut self.locations);
        locations.clear();
        // Innermost first, as they are numbered.
        let others = &chain[..chain.len() - num_same];
        locations.extend(others.iter().map(|address| self.location(*address, at_ns)));
        let (mut node, mut since, mut until) =
            walked.last().map_or((NONE, i64::MIN, i64::MAX), |it| (it.node, it.from_ns, it.until_ns));
        for (&address, &(from_ns, until_ns, location)) in others.iter().zip(&locations).rev() {
            node = self.node(node, location);
            (since, until) = (since.max(from_ns), until.min(until_ns));
            walked.push(Walked { address, node, from_ns: since, until_ns: until });
        }
        self.locations = locations;
        node
    }

    /// The location of an address, and since when and until when it is that.
    fn location(&mut self, known: Address, at_ns: i64) -> (i64, i64, u32) {
        if let Some(&found @ (from, until, _)) = self.recent.get(&known)
            && (from..until).contains(&at_ns)
        {
            return found;
        }
        let Address { process_id, address, mark: Mark { origin, is_return } } = known;
        let looked_up = address.wrapping_sub(u64::from(is_return));
        let (process_id, (mut place, from, until)) = match process_id {
            NONE => (0, self.places.kernel(looked_up, at_ns)),
            _ => (process_id, self.places.user(process_id, looked_up, at_ns)),
        };
        if let Place::Jit { code_offset, .. } = &mut place {
            *code_offset += u64::from(is_return);
        }
        let location = Location { process_id, address, is_return, origin, place };
        let next = self.out.locations.len() as u32;
        let id = *self.location_ids.entry(location).or_insert_with(|| {
            self.out.locations.push(location);
            next
        });
        self.recent.insert(known, (from, until, id));
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

/// The addresses of a chain without its markers, each with what these and its place among them tell.
fn told(addresses: &[u64], marks: &[Option<Mark>], process_id: u32, chain: &mut Vec<Address>) {
    chain.clear();
    let mut kernel = None;
    let mut is_return = false;
    for (at, &address) in addresses.iter().enumerate() {
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
        let mark = marks.get(at).copied().flatten().unwrap_or(Mark { origin, is_return });
        chain.push(Address { process_id: if in_kernel { NONE } else { process_id }, address, mark });
        is_return = true;
    }
}
