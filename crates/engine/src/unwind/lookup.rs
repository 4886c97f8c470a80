//! Steps by address: what a process has at an address determines how the function there is left.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use perfuse_binaries::symbolize::{Module as Symbols, Symbolizer};
use perfuse_tables::UserStack;
use rustc_hash::FxHashMap;

use super::module::{UnwindModule, UnwindSources, code_step};
use super::registers::Machine;
use super::step::{PreparedStep, UnwindStep, frame_pointer_step};
use super::walk::{StepId, StepSource};
use crate::address_spaces::{AddressSpaces, Region};
use crate::mappings::Mapping;

/// All files that stacks are unwound through, opened once and shared by threads.
pub struct UnwindModules<'a> {
    spaces: AddressSpaces<'a>,
    symbolizer: &'a Symbolizer,
    sources: &'a dyn UnwindSources,
    /// By index in [`Mappings::files`](crate::mappings::Mappings::files).
    modules: Vec<OnceLock<OpenedModule>>,
}

struct OpenedModule {
    symbols: Arc<Symbols>,
    unwinding: Option<UnwindModule>,
}

impl<'a> UnwindModules<'a> {
    /// Files are opened when an address in them is looked up.
    #[must_use]
    pub fn new(
        spaces: AddressSpaces<'a>,
        symbolizer: &'a Symbolizer,
        sources: &'a dyn UnwindSources,
    ) -> Self {
        let modules = spaces.mappings.files.iter().map(|_| OnceLock::new()).collect();
        Self { spaces, symbolizer, sources, modules }
    }

    fn opened(&self, mapping: &Mapping) -> Option<&OpenedModule> {
        let module = self.modules.get(mapping.file as usize)?;
        let file = self.spaces.mappings.file(mapping)?;
        Some(module.get_or_init(|| {
            let symbols = self.symbolizer.module(&file.path, file.build_id.as_deref());
            let images = symbols.images();
            let unwinding = images.and_then(|(image, debug)| UnwindModule::open(image, debug, self.sources));
            OpenedModule { symbols, unwinding }
        }))
    }
}

/// Addresses remembered at most; with more distinct ones the cache is emptied.
const MAX_CACHED: usize = 1 << 19;

/// Steps that one worker has looked up, and the process it unwinds now.
pub struct StepLookup<'a> {
    modules: &'a UnwindModules<'a>,
    /// Of the current process.
    current: AddressCache,
    /// Of other processes.
    others: FxHashMap<u32, AddressCache>,
    /// Address ranges of files and their steps, by file and whether all registers are needed.
    rows: FxHashMap<(u32, bool), BTreeMap<u64, (u64, StepId)>>,
    /// Distinct steps: a program has many addresses and few distinct steps.
    steps: Vec<PreparedStep>,
    step_ids: FxHashMap<UnwindStep, StepId>,
    num_cached: usize,
    process_id: u32,
    at_ns: i64,
    machine: Machine,
}

/// Steps of a process by address: from any information, and from information about all registers.
#[derive(Default)]
struct AddressCache {
    any: FxHashMap<u64, CachedStep>,
    all_registers: FxHashMap<u64, CachedStep>,
}

/// A step, and the time in which it is valid.
#[derive(Clone, Copy)]
struct CachedStep {
    from_ns: i64,
    until_ns: i64,
    step: Option<StepId>,
}

impl<'a> StepLookup<'a> {
    /// Starts with an empty cache.
    #[must_use]
    pub fn new(modules: &'a UnwindModules<'a>) -> Self {
        Self {
            modules,
            current: AddressCache::default(),
            others: FxHashMap::default(),
            rows: FxHashMap::default(),
            steps: Vec::new(),
            step_ids: FxHashMap::default(),
            num_cached: 0,
            process_id: 0,
            at_ns: 0,
            machine: Machine::Amd64,
        }
    }

    /// Makes a process at a time the current one.
    pub fn set_process(&mut self, process_id: u32, at_ns: i64, machine: Machine) {
        // Steps are of one machine's registers.
        if self.num_cached >= MAX_CACHED || machine != self.machine {
            *self = Self { process_id, machine, ..Self::new(self.modules) };
        }
        if process_id != self.process_id {
            let next = self.others.remove(&process_id).unwrap_or_default();
            let previous = std::mem::replace(&mut self.current, next);
            self.others.insert(self.process_id, previous);
            self.process_id = process_id;
        }
        self.at_ns = at_ns;
    }

    /// Copy of a stack, by its source and number.
    pub(super) fn user_stack(
        &self,
        source_id: u32,
        number: u64,
        registers: &mut Vec<u64>,
    ) -> Option<UserStack<'a>> {
        self.modules.sources.user_stack(source_id, number, registers)
    }

    fn in_file(&self, mapping: u32) -> Option<(&'a Mapping, &'a OpenedModule)> {
        let mapping = self.modules.spaces.mappings.rows.get(mapping as usize)?;
        Some((mapping, self.modules.opened(mapping)?))
    }

    /// Finds the step in the unwinding information of a region, else by the frame pointer.
    fn find_in_region(&mut self, region: Region, pc: u64, all_registers: bool) -> Option<StepId> {
        let found = match region {
            Region::Jit { code_object_id, code_offset } => {
                let code = self.modules.sources.code(code_object_id);
                let step = code.and_then(|code| code_step(&code, code_offset, self.machine));
                step.map(|step| self.step_id(step))
            }
            Region::Mapped { mapping } => self.find_in_file(mapping, pc, all_registers),
            Region::Anonymous { .. } | Region::Unmapped { .. } | Region::Kernel | Region::Deferred => None,
        };
        found.or_else(|| frame_pointer_step(self.machine).map(|step| self.step_id(step)))
    }

    fn find_in_file(&mut self, mapping: u32, pc: u64, all_registers: bool) -> Option<StepId> {
        let (mapping, OpenedModule { symbols, unwinding }) = self.in_file(mapping)?;
        let unwinding = unwinding.as_ref()?;
        let address = symbols.address(symbols.position(pc, mapping.start, mapping.file_offset))?;
        let key = (mapping.file, all_registers);
        let row = self.rows.get(&key).and_then(|rows| rows.range(..=address).next_back());
        if let Some((_, (_, step))) = row.filter(|(_, (end, _))| address < *end) {
            return Some(*step);
        }
        let (range, step) = unwinding.step(address, all_registers)?;
        let step = self.step_id(step);
        if let Some(range) = range {
            self.rows.entry(key).or_default().insert(range.start, (range.end, step));
        }
        Some(step)
    }

    fn step_id(&mut self, step: UnwindStep) -> StepId {
        if let Some(id) = self.step_ids.get(&step) {
            return *id;
        }
        let id = StepId(self.steps.len() as u32);
        self.steps.push(PreparedStep::new(step.clone(), self.machine));
        self.step_ids.insert(step, id);
        id
    }
}

impl StepSource for StepLookup<'_> {
    #[inline]
    fn find(&mut self, pc: u64, all_registers: bool) -> Option<StepId> {
        let cache = if all_registers { &self.current.all_registers } else { &self.current.any };
        if let Some(cached) = cache.get(&pc)
            && (cached.from_ns..cached.until_ns).contains(&self.at_ns)
        {
            return cached.step;
        }
        let (region, from_ns, until_ns) = self.modules.spaces.find_user(self.process_id, pc, self.at_ns);
        let step = self.find_in_region(region, pc, all_registers);
        let cache = if all_registers { &mut self.current.all_registers } else { &mut self.current.any };
        cache.insert(pc, CachedStep { from_ns, until_ns, step });
        self.num_cached = self.num_cached.saturating_add(1);
        step
    }

    #[inline]
    fn step(&self, id: StepId) -> Option<&PreparedStep> {
        self.steps.get(id.0 as usize)
    }

    fn is_code(&self, address: u64) -> bool {
        match self.modules.spaces.find_user(self.process_id, address, self.at_ns).0 {
            Region::Jit { .. } | Region::Anonymous { .. } => true,
            Region::Kernel | Region::Unmapped { .. } | Region::Deferred => false,
            Region::Mapped { mapping } => self.in_file(mapping).is_some_and(|(mapping, opened)| {
                let position = opened.symbols.position(address, mapping.start, mapping.file_offset);
                opened.unwinding.as_ref().is_none_or(|unwinding| unwinding.is_code(position))
            }),
        }
    }

    fn memory(&self, address: u64, size: u8) -> Option<u64> {
        let region = self.modules.spaces.find_user(self.process_id, address, self.at_ns).0;
        let Region::Mapped { mapping } = region else { return None };
        let (mapping, opened) = self.in_file(mapping)?;
        let position = opened.symbols.position(address, mapping.start, mapping.file_offset);
        opened.unwinding.as_ref()?.number(position, size)
    }
}
