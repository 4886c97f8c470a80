use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use super::frame_pointer;
use super::machine::Machine;
use super::module::{Formats, Module, UserStack};
use super::step::Step;
use super::walk::{Code, StepId};
use crate::join::{Place, Places};
use crate::mappings::Mapping;
use perfuse_binaries::symbolize::{Module as Symbols, Symbolizer};

/// Everything that stacks are unwound through, opened once and shared by threads.
pub struct Modules<'a> {
    places: Places<'a>,
    symbolizer: &'a Symbolizer,
    formats: &'a dyn Formats,
    /// By index in the mappings' modules.
    modules: Vec<OnceLock<Opened>>,
}

struct Opened {
    symbols: Arc<Symbols>,
    rules: Option<Module>,
}

impl<'a> Modules<'a> {
    /// Nothing is opened yet.
    #[must_use]
    pub fn new(places: Places<'a>, symbolizer: &'a Symbolizer, formats: &'a dyn Formats) -> Self {
        let modules = places.mappings.modules.iter().map(|_| OnceLock::new()).collect();
        Self { places, symbolizer, formats, modules }
    }

    fn opened(&self, mapping: &Mapping) -> &Opened {
        let index = mapping.module as usize;
        self.modules[index].get_or_init(|| {
            let module = &self.places.mappings.modules[index];
            let symbols = self.symbolizer.module(&module.path, module.build_id.as_deref());
            let images = symbols.images();
            let rules = images.and_then(|(image, debug)| Module::open(image, debug, self.formats));
            Opened { symbols, rules }
        })
    }
}

/// Addresses known at the most: a recording with more different ones than that is looked up again.
const MAX_KNOWN: usize = 1 << 19;

/// What one thread of ours has looked up, and the process it is looking at.
pub struct Lookup<'a> {
    modules: &'a Modules<'a>,
    /// Of the process that is looked at.
    here: Addresses,
    /// Of the other ones.
    elsewhere: FxHashMap<u32, Addresses>,
    /// Of files, by module and whether it was asked for all registers.
    rows: FxHashMap<(u32, bool), BTreeMap<u64, (u64, StepId)>>,
    /// Each but once: a program has many addresses and few ways to get out of a function.
    steps: Vec<Arc<Step>>,
    step_ids: FxHashMap<Arc<Step>, StepId>,
    num_known: usize,
    process_id: u32,
    at_ns: i64,
    machine: Machine,
}

/// What is known of a process's addresses: from anything that tells of them, and from what tells of all registers.
#[derive(Default)]
struct Addresses {
    any: FxHashMap<u64, Known>,
    all_registers: FxHashMap<u64, Known>,
}

/// A step, and for how long it holds.
#[derive(Clone, Copy)]
struct Known {
    from_ns: i64,
    until_ns: i64,
    step: Option<StepId>,
}

impl<'a> Lookup<'a> {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(modules: &'a Modules<'a>) -> Self {
        Self {
            modules,
            here: Addresses::default(),
            elsewhere: FxHashMap::default(),
            rows: FxHashMap::default(),
            steps: Vec::new(),
            step_ids: FxHashMap::default(),
            num_known: 0,
            process_id: 0,
            at_ns: 0,
            machine: Machine::Amd64,
        }
    }

    /// Looks at a process at a time.
    pub fn look_at(&mut self, process_id: u32, at_ns: i64, machine: Machine) {
        // Steps are of one machine's registers.
        if self.num_known >= MAX_KNOWN || machine != self.machine {
            *self = Self { process_id, machine, ..Self::new(self.modules) };
        }
        if process_id != self.process_id {
            let there = self.elsewhere.remove(&process_id).unwrap_or_default();
            let left = std::mem::replace(&mut self.here, there);
            self.elsewhere.insert(self.process_id, left);
            self.process_id = process_id;
        }
        self.at_ns = at_ns;
    }

    /// The copy of a stack that a source has under a number.
    pub(super) fn user_stack(
        &self,
        source_id: u32,
        number: u64,
        registers: &mut Vec<u64>,
    ) -> Option<UserStack<'a>> {
        self.modules.formats.user_stack(source_id, number, registers)
    }

    fn mapped(&self, address: u64) -> Option<(&'a Mapping, &'a Opened)> {
        match self.modules.places.user(self.process_id, address, self.at_ns).0 {
            Place::Mapped { mapping } => {
                let mapping = &self.modules.places.mappings.rows[mapping as usize];
                Some((mapping, self.modules.opened(mapping)))
            }
            _ => None,
        }
    }

    /// What lies at an address says how to get out of the function there, or else the frame pointer.
    fn look_up(&mut self, place: Place, pc: u64, all_registers: bool) -> Option<StepId> {
        let told = match place {
            Place::Jit { code_object_id, code_offset } => {
                let code = self.modules.formats.code(code_object_id);
                code.and_then(|code| code.step(code_offset, self.machine)).map(|step| self.step_id(step))
            }
            Place::Mapped { mapping } => self.look_up_mapped(mapping, pc, all_registers),
            Place::Anonymous { .. } | Place::Unmapped | Place::Kernel => None,
        };
        told.or_else(|| frame_pointer::step(self.machine).map(|step| self.step_id(step)))
    }

    fn look_up_mapped(&mut self, mapping: u32, pc: u64, all_registers: bool) -> Option<StepId> {
        let modules = self.modules;
        let mapping = &modules.places.mappings.rows[mapping as usize];
        let Opened { symbols, rules } = modules.opened(mapping);
        let rules = rules.as_ref()?;
        let address = symbols.address(symbols.position(pc, mapping.start, mapping.file_offset))?;
        let key = (mapping.module, all_registers);
        let row = self.rows.get(&key).and_then(|rows| rows.range(..=address).next_back());
        if let Some((_, (_, step))) = row.filter(|(_, (end, _))| address < *end) {
            return Some(*step);
        }
        let (range, step) = rules.step(address, all_registers)?;
        let step = self.step_id(step);
        if let Some(range) = range {
            self.rows.entry(key).or_default().insert(range.start, (range.end, step));
        }
        Some(step)
    }

    fn step_id(&mut self, step: Step) -> StepId {
        if let Some(id) = self.step_ids.get(&step) {
            return *id;
        }
        let (id, step) = (StepId(self.steps.len() as u32), Arc::new(step));
        self.steps.push(Arc::clone(&step));
        self.step_ids.insert(step, id);
        id
    }
}

impl Code for Lookup<'_> {
    #[inline]
    fn find(&mut self, pc: u64, all_registers: bool) -> Option<StepId> {
        let known = if all_registers { &self.here.all_registers } else { &self.here.any };
        if let Some(known) = known.get(&pc)
            && (known.from_ns..known.until_ns).contains(&self.at_ns)
        {
            return known.step;
        }
        let (place, from_ns, until_ns) = self.modules.places.user(self.process_id, pc, self.at_ns);
        let step = self.look_up(place, pc, all_registers);
        let known = if all_registers { &mut self.here.all_registers } else { &mut self.here.any };
        known.insert(pc, Known { from_ns, until_ns, step });
        self.num_known += 1;
        step
    }

    #[inline]
    fn step(&self, id: StepId) -> &Step {
        &self.steps[id.0 as usize]
    }

    fn is_code(&self, address: u64) -> bool {
        match self.modules.places.user(self.process_id, address, self.at_ns).0 {
            Place::Jit { .. } | Place::Anonymous { .. } => true,
            Place::Kernel | Place::Unmapped => false,
            Place::Mapped { mapping } => {
                let mapping = &self.modules.places.mappings.rows[mapping as usize];
                let Opened { symbols, rules } = self.modules.opened(mapping);
                let position = symbols.position(address, mapping.start, mapping.file_offset);
                rules.as_ref().is_none_or(|rules| rules.is_code(position))
            }
        }
    }

    fn memory(&self, address: u64, size: u8) -> Option<u64> {
        let (mapping, opened) = self.mapped(address)?;
        let position = opened.symbols.position(address, mapping.start, mapping.file_offset);
        opened.rules.as_ref()?.number(position, size)
    }
}
