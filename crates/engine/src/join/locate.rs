//! Step 1 of the join: what every address of every call chain belongs to, and the chains as a tree.

use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, PrimitiveArray, RecordBatch};
use perfuse_tables::access::{ColumnError, lists, numbers};
use perfuse_tables::context::{
    CONTEXT_GUEST_KERNEL, CONTEXT_GUEST_USER, CONTEXT_HYPERVISOR, CONTEXT_KERNEL, CONTEXT_MAX, CONTEXT_USER,
    CONTEXT_USER_DEFERRED,
};
use rustc_hash::FxHashMap;

use crate::NONE;
use crate::address_spaces::{AddressSpaces, Region};
use crate::unwind::{Chains, FrameOrigin, UnwoundAddress};

/// A distinct code location of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// Key of the process; 0 for locations in the kernel, which all processes share.
    pub process_id: u32,
    /// The address as recorded.
    pub address: u64,
    /// Whether it is a return address; the call precedes it.
    pub is_return: bool,
    /// Whether it was executed in the kernel, as its chain states. Those of 32-bit machines are not in the upper half.
    pub in_kernel: bool,
    /// How the address was found.
    pub origin: FrameOrigin,
    /// What it belongs to.
    pub region: Region,
}

impl Location {
    /// Whether it is in the kernel, by its chain or by its half of the address space.
    #[must_use]
    pub fn is_kernel(&self) -> bool {
        self.in_kernel || self.address >> 63 == 1
    }
}

/// Samples whose chains are a tree of locations.
#[derive(Debug, Default)]
pub struct LocatedSamples {
    /// Distinct locations.
    pub locations: Vec<Location>,
    /// `(parent node or NONE, location)`; a parent precedes its children.
    pub nodes: Vec<(u32, u32)>,
    /// The samples as recorded, without their addresses, and the innermost node of each.
    pub samples: Vec<(RecordBatch, Vec<u32>)>,
    /// Keys of the code objects that samples are in, sorted.
    pub code_objects: Vec<u32>,
    /// Location of each address in a column of addresses, for the columns of [`AddressColumn`] in their order.
    pub points: Vec<Vec<u32>>,
}

/// A column of addresses that are not in a chain: batches with `process_id`, `ts_ns` and `source_id`.
pub struct AddressColumn<'a> {
    /// The batches.
    pub batches: Box<dyn Iterator<Item = RecordBatch> + 'a>,
    /// Names of their columns of addresses.
    pub columns: &'a [&'static str],
}

/// Finds what every address of every chain belongs to.
///
/// # Errors
/// When a batch is not of table `callchains`.
pub fn locate(
    callchains: impl Iterator<Item = Result<Chains, ColumnError>>,
    points: Vec<AddressColumn<'_>>,
    spaces: AddressSpaces<'_>,
) -> Result<LocatedSamples, ColumnError> {
    let mut locator = ChainLocator {
        spaces,
        out: LocatedSamples::default(),
        location_ids: FxHashMap::default(),
        first_children: Vec::new(),
        node_ids: FxHashMap::default(),
        recent: FxHashMap::default(),
        last_chains: FxHashMap::default(),
        locations: Vec::new(),
    };
    for chains in callchains {
        let Chains { mut batch, unwound } = chains?;
        let nodes = locator.locate_batch(&batch, &unwound)?;
        for no_longer_needed in ["addresses", "user_stack"] {
            if let Ok(at) = batch.schema().index_of(no_longer_needed) {
                batch.remove_column(at);
            }
        }
        locator.out.samples.push((batch, nodes));
    }
    for AddressColumn { batches, columns } in points {
        let first = locator.out.points.len();
        locator.out.points.resize(first.saturating_add(columns.len()), Vec::new());
        for batch in batches {
            for (column, at) in columns.iter().zip(first..) {
                locator.locate_points(&batch, column, at)?;
            }
        }
    }
    let mut out = locator.out;
    let code_object = |location: &Location| match location.region {
        Region::Jit { code_object_id, .. } => Some(code_object_id),
        _ => None,
    };
    out.code_objects = out.locations.iter().filter_map(code_object).collect();
    out.code_objects.sort_unstable();
    out.code_objects.dedup();
    Ok(out)
}

struct ChainLocator<'a> {
    spaces: AddressSpaces<'a>,
    out: LocatedSamples,
    location_ids: FxHashMap<Location, u32>,
    /// First child of each node, [`NONE`] without one: most have one or none.
    first_children: Vec<u32>,
    /// Roots, and other children by parent and location.
    node_ids: FxHashMap<(u32, u32), u32>,
    /// Latest location of an address, and the time in which it is valid.
    recent: FxHashMap<ChainAddress, (i64, i64, u32)>,
    /// Previous chain of each thread: most of the next one is equal to it.
    last_chains: FxHashMap<u32, Vec<LocatedAddress>>,
    locations: Vec<(i64, i64, u32)>,
}

/// An address of a chain, with everything else that determines its location at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ChainAddress {
    /// In the kernel its [`kernel_key`].
    process_id: u32,
    address: u64,
    found_by: UnwoundAddress,
}

/// What stands for a process in addresses of a kernel with a number: numbers of processes are far below.
fn kernel_key(kernel: u32) -> u32 {
    NONE.saturating_sub(kernel.min(MAX_KERNELS))
}

/// Recordings beyond so many share a kernel.
const MAX_KERNELS: u32 = 1 << 16;

/// An address of a located chain.
#[derive(Clone, Copy, Debug)]
struct LocatedAddress {
    address: ChainAddress,
    node: u32,
    /// Time in which all locations from the outermost to this one are valid.
    from_ns: i64,
    until_ns: i64,
}

/// Most threads whose previous chain is retained.
const MAX_THREADS: usize = 1 << 12;

impl ChainLocator<'_> {
    /// Innermost node of each row.
    fn locate_batch(
        &mut self,
        batch: &RecordBatch,
        unwound: &[Option<UnwoundAddress>],
    ) -> Result<Vec<u32>, ColumnError> {
        let times = numbers::<Int64Type>(batch, "ts_ns")?.values();
        let processes = numbers::<UInt32Type>(batch, "process_id")?.values();
        let threads = numbers::<UInt32Type>(batch, "thread_id")?.values();
        let sources = numbers::<UInt32Type>(batch, "source_id")?.values();
        let chains = lists(batch, "addresses")?;
        let addresses = chains.values().as_any().downcast_ref::<PrimitiveArray<UInt64Type>>();
        let addresses = addresses.ok_or(ColumnError { column: "addresses" })?.values();
        let mut chain = Vec::new();
        let mut nodes = Vec::with_capacity(batch.num_rows());
        let offsets = chains.value_offsets();
        let ranges = offsets.iter().zip(offsets.iter().skip(1));
        let rows = times.iter().zip(processes.iter()).zip(threads.iter()).zip(sources.iter()).zip(ranges);
        for ((((&at_ns, &process_id), &thread_id), &source_id), (&start, &end)) in rows {
            perfuse_stopping::checkpoint();
            let kernel = kernel_key(self.spaces.mappings.kernel_of(source_id));
            let range = start as usize..end as usize;
            let found_by = unwound.get(range.clone()).unwrap_or_default();
            let addresses = addresses.get(range).unwrap_or_default();
            split_chain(addresses, found_by, process_id, kernel, &mut chain);
            if self.last_chains.len() >= MAX_THREADS {
                self.last_chains.clear();
            }
            let mut last = self.last_chains.remove(&thread_id).unwrap_or_default();
            nodes.push(self.locate_chain(&chain, at_ns, &mut last));
            self.last_chains.insert(thread_id, last);
        }
        Ok(nodes)
    }

    /// The node of a chain, which is innermost first. `located` is the previous chain of the thread, outermost first, and is
    /// replaced by this one.
    fn locate_chain(&mut self, chain: &[ChainAddress], at_ns: i64, located: &mut Vec<LocatedAddress>) -> u32 {
        let is_same = |(located, address): &(&LocatedAddress, &ChainAddress)| located.address == **address;
        let num_same = located.iter().zip(chain.iter().rev()).take_while(is_same).count();
        located.truncate(num_same);
        let is_over = |located: &mut LocatedAddress| !(located.from_ns..located.until_ns).contains(&at_ns);
        while located.pop_if(is_over).is_some() {}
        let num_same = located.len();
        let mut locations = std::mem::take(&mut self.locations);
        locations.clear();
        // Locations are numbered innermost first.
        let others = chain.get(..chain.len().saturating_sub(num_same)).unwrap_or_default();
        locations.extend(others.iter().map(|address| self.location(*address, at_ns)));
        let (mut node, mut since, mut until) =
            located.last().map_or((NONE, i64::MIN, i64::MAX), |it| (it.node, it.from_ns, it.until_ns));
        for (&address, &(from_ns, until_ns, location)) in others.iter().zip(&locations).rev() {
            node = self.node(node, location);
            (since, until) = (since.max(from_ns), until.min(until_ns));
            located.push(LocatedAddress { address, node, from_ns: since, until_ns: until });
        }
        self.locations = locations;
        node
    }

    /// Adds the location of each address of a column to the list of points at an index; [`NONE`] for null.
    fn locate_points(
        &mut self,
        batch: &RecordBatch,
        column: &'static str,
        at: usize,
    ) -> Result<(), ColumnError> {
        let times = numbers::<Int64Type>(batch, "ts_ns")?.values();
        let processes = numbers::<UInt32Type>(batch, "process_id")?.values();
        let sources = numbers::<UInt32Type>(batch, "source_id")?.values();
        let addresses = numbers::<UInt64Type>(batch, column)?;
        let found_by = UnwoundAddress { origin: FrameOrigin::Sampled, is_return: false };
        let rows = times.iter().zip(processes.iter()).zip(sources.iter());
        for (address, ((&at_ns, &process_id), &source_id)) in addresses.iter().zip(rows) {
            perfuse_stopping::checkpoint();
            let location = address.filter(|&address| address < CONTEXT_MAX).map(|address| {
                let kernel = || kernel_key(self.spaces.mappings.kernel_of(source_id));
                let process_id = if address >> 63 == 1 { kernel() } else { process_id };
                self.location(ChainAddress { process_id, address, found_by }, at_ns).2
            });
            if let Some(points) = self.out.points.get_mut(at) {
                points.push(location.unwrap_or(NONE));
            }
        }
        Ok(())
    }

    /// The location of an address, and the time in which it is valid.
    fn location(&mut self, key: ChainAddress, at_ns: i64) -> (i64, i64, u32) {
        if let Some(&found @ (from, until, _)) = self.recent.get(&key)
            && (from..until).contains(&at_ns)
        {
            return found;
        }
        let ChainAddress { process_id, address, found_by: UnwoundAddress { origin, is_return } } = key;
        let call_address = address.wrapping_sub(u64::from(is_return));
        let kernel = Some(NONE.wrapping_sub(process_id)).filter(|&kernel| kernel <= MAX_KERNELS);
        let (process_id, (mut region, from, until)) = match kernel {
            _ if address == CONTEXT_USER_DEFERRED => (process_id, (Region::Deferred, i64::MIN, i64::MAX)),
            Some(kernel) => (0, self.spaces.find_kernel(kernel, call_address, at_ns)),
            None => (process_id, self.spaces.find_user(process_id, call_address, at_ns)),
        };
        if let Region::Jit { code_offset, .. } = &mut region {
            *code_offset = code_offset.wrapping_add(u64::from(is_return));
        }
        let in_kernel = kernel.is_some();
        let location = Location { process_id, address, is_return, in_kernel, origin, region };
        let next = self.out.locations.len() as u32;
        let id = *self.location_ids.entry(location).or_insert_with(|| {
            self.out.locations.push(location);
            next
        });
        self.recent.insert(key, (from, until, id));
        (from, until, id)
    }

    fn node(&mut self, parent: u32, location: u32) -> u32 {
        let nodes = &mut self.out.nodes;
        let next = nodes.len() as u32;
        let node = match self.first_children.get_mut(parent as usize) {
            Some(first @ &mut NONE) => {
                *first = next;
                next
            }
            Some(&mut first) if nodes.get(first as usize) == Some(&(parent, location)) => first,
            _ => *self.node_ids.entry((parent, location)).or_insert(next),
        };
        if node == next {
            nodes.push((parent, location));
            self.first_children.push(NONE);
        }
        node
    }
}

/// Fills `chain` with the addresses of a recorded chain without its markers, each with its process and origin.
fn split_chain(
    addresses: &[u64],
    unwound: &[Option<UnwoundAddress>],
    process_id: u32,
    kernel_key: u32,
    chain: &mut Vec<ChainAddress>,
) {
    chain.clear();
    let mut kernel = None;
    let mut is_return = false;
    let mut unwound = unwound.iter().copied();
    for &address in addresses {
        let unwound = unwound.next().flatten();
        if address >= CONTEXT_MAX {
            match address {
                CONTEXT_KERNEL | CONTEXT_HYPERVISOR => kernel = Some(true),
                // All addresses of a guest's process, its kernel's too, are in the address space of that process.
                CONTEXT_GUEST_KERNEL | CONTEXT_GUEST_USER => kernel = Some(false),
                CONTEXT_USER => {
                    // The first address in user space is the interrupted one, not a return address.
                    is_return = false;
                    kernel = Some(false);
                }
                CONTEXT_USER_DEFERRED => {
                    let found_by = UnwoundAddress { origin: FrameOrigin::Callchain, is_return: false };
                    chain.push(ChainAddress { process_id, address, found_by });
                }
                _ => {}
            }
            continue;
        }
        let in_kernel = kernel.unwrap_or(address >> 63 == 1);
        let origin = if is_return { FrameOrigin::Callchain } else { FrameOrigin::Sampled };
        let found_by = unwound.unwrap_or(UnwoundAddress { origin, is_return });
        chain.push(ChainAddress {
            process_id: if in_kernel { kernel_key } else { process_id },
            address,
            found_by,
        });
        is_return = true;
    }
}
