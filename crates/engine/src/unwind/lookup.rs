use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use super::frame_pointer;
use super::machine::Machine;
use super::module::{Formats, Module, UserStack};
use super::step::Step;
use super::walk::{Code, StepId};
use crate::join::{Place, Places};
use crate::mappings::Mapping;
use crate::symbolize::{Module as Symbols, Symbolizer};

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

    fn step(&self, place: Place, pc: u64, machine: Machine, all_registers: bool) -> Option<Step> {
        let told = match place {
            Place::Jit { code_object_id, code_offset } => {
                self.formats.code(code_object_id).and_then(|code| code.step(code_offset, machine))
            }
            Place::Mapped { mapping } => {
                let mapping = &self.places.mappings.rows[mapping as usize];
                let Opened { symbols, rules } = self.opened(mapping);
                let position = symbols.position(pc, mapping.start, mapping.file_offset);
                rules.as_ref().and_then(|rules| rules.step(symbols.address(position)?, all_registers))
            }
            Place::Anonymous { .. } | Place::Unmapped | Place::Kernel => None,
        };
        told.or_else(|| frame_pointer::step(machine))
    }
}

/// Steps known at the most: a recording with more different addresses than that is looked up again.
const MAX_KNOWN: usize = 1 << 19;

/// What one thread of ours has looked up, and the process it is looking at.
pub struct Lookup<'a> {
    modules: &'a Modules<'a>,
    known: FxHashMap<(u32, u64, bool), Known>,
    steps: Vec<Step>,
    process_id: u32,
    at_ns: i64,
    machine: Machine,
}

/// A step, and for how long it holds.
struct Known {
    from_ns: i64,
    until_ns: i64,
    step: Option<StepId>,
}

impl<'a> Lookup<'a> {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(modules: &'a Modules<'a>) -> Self {
        let (known, steps) = Default::default();
        Self { modules, known, steps, process_id: 0, at_ns: 0, machine: Machine::Amd64 }
    }

    /// Looks at a process at a time.
    pub fn look_at(&mut self, process_id: u32, at_ns: i64, machine: Machine) {
        (self.process_id, self.at_ns, self.machine) = (process_id, at_ns, machine);
        if self.steps.len() >= MAX_KNOWN {
            self.known.clear();
            self.steps.clear();
        }
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
}

impl Code for Lookup<'_> {
    #[inline]
    fn find(&mut self, pc: u64, all_registers: bool) -> Option<StepId> {
        let key = (self.process_id, pc, all_registers);
        if let Some(known) = self.known.get(&key)
            && (known.from_ns..known.until_ns).contains(&self.at_ns)
        {
            return known.step;
        }
        let (place, from_ns, until_ns) = self.modules.places.user(self.process_id, pc, self.at_ns);
        let step = self.modules.step(place, pc, self.machine, all_registers).map(|step| {
            self.steps.push(step);
            StepId(self.steps.len() as u32 - 1)
        });
        self.known.insert(key, Known { from_ns, until_ns, step });
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
