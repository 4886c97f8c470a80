//! Locations and functions, each once.

use rustc_hash::FxHashMap;

use super::super::stacks::{Frame, NONE, Stacks};
use super::fields::{function, line, location, profile};
use super::mappings::{MappingTable, Mappings};
use super::strings::StringTable;
use crate::protobuf::Encoder;

/// Locations of stacks, numbered from 1 in order of first use.
#[derive(Debug)]
pub struct LocationTable<'a> {
    stacks: &'a Stacks,
    mappings: &'a Mappings,
    title: &'a str,
    /// By frames, innermost first: a location has the function at an address and the calls inlined into it.
    locations: FxHashMap<Box<[u32]>, u64>,
    /// Locations of the last requested stack.
    found: Vec<u64>,
}

/// Name, system name, file and line of a function.
type Function = (u32, u32, u32, u32);

impl<'a> LocationTable<'a> {
    /// None yet.
    pub fn new(stacks: &'a Stacks, mappings: &'a Mappings, title: &'a str) -> Self {
        Self { stacks, mappings, title, locations: FxHashMap::default(), found: Vec::new() }
    }

    /// The locations of a stack, innermost first.
    pub fn locations(&mut self, stack: u32) -> &[u64] {
        let Self { stacks, locations, found, .. } = self;
        found.clear();
        let mut frames: Vec<u32> = Vec::new();
        let mut end = |frames: &mut Vec<u32>| {
            if frames.is_empty() {
                return;
            }
            let next = locations.len() as u64 + 1;
            let id = match locations.get(frames.as_slice()) {
                Some(&id) => id,
                None => *locations.entry(frames.as_slice().into()).or_insert(next),
            };
            found.push(id);
            frames.clear();
        };
        for row in stacks.frames_of(stack) {
            frames.push(row);
            if stacks.frames[row as usize].inline_depth == 0 {
                end(&mut frames);
            }
        }
        end(&mut frames);
        found
    }

    /// Writes the tables.
    pub fn write(&self, strings: &mut StringTable, out: &mut Encoder) {
        let mut functions: FxHashMap<Function, u64> = FxHashMap::default();
        let mut locations: Vec<_> = self.locations.iter().collect();
        locations.sort_unstable_by_key(|(_, id)| **id);
        let outer = |frames: &[u32]| frames.last().map(|&row| self.stacks.frames[row as usize]);
        let mut mappings = MappingTable::new(self.stacks, self.mappings);
        for frame in locations.iter().filter_map(|(frames, _)| outer(frames)) {
            mappings.add(&frame);
        }
        let mappings = mappings.write(self.title, strings, out);
        for (frames, &id) in locations {
            let lines: Vec<_> =
                frames.iter().map(|&row| self.line(row, &mut functions, strings, out)).collect();
            let Some(outer) = outer(frames) else { continue };
            out.message(profile::LOCATION, |out| {
                out.uint(location::ID, id);
                out.uint(location::MAPPING_ID, mappings.id(&outer));
                if let Some(address) = outer.address.or(outer.relative_address) {
                    out.uint(location::ADDRESS, address);
                }
                for (function, at, column) in lines {
                    out.message(location::LINE, |out| {
                        out.uint(line::FUNCTION_ID, function);
                        out.int(line::LINE, at);
                        if column > 0 {
                            out.int(line::COLUMN, column);
                        }
                    });
                }
            });
        }
    }

    /// Function, line and column of a frame.
    fn line(
        &self,
        row: u32,
        functions: &mut FxHashMap<Function, u64>,
        strings: &mut StringTable,
        out: &mut Encoder,
    ) -> (u64, i64, i64) {
        let Frame { name, system_name, path, start_line, line, column, .. } =
            self.stacks.frames[row as usize];
        let next = functions.len() as u64 + 1;
        let id = *functions.entry((name, system_name, path, start_line)).or_insert(next);
        if id == next {
            let [name, system_name, path] = [name, system_name, path].map(|text| self.string(text, strings));
            out.message(profile::FUNCTION, |out| {
                out.uint(function::ID, id);
                out.uint(function::NAME, name);
                out.uint(function::SYSTEM_NAME, system_name);
                out.uint(function::FILENAME, path);
                out.int(function::START_LINE, number(start_line));
            });
        }
        (id, number(line), number(column))
    }

    fn string(&self, text: u32, strings: &mut StringTable) -> u64 {
        self.stacks.texts.get(text).map_or(0, |text| strings.id(text))
    }
}

/// 0 stands for none.
fn number(value: u32) -> i64 {
    if value == NONE { 0 } else { value.into() }
}
