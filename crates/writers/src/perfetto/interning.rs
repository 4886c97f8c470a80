//! Interned stacks, frames and mappings.

use super::super::stacks::{Frame, NONE, Stacks};
use super::fields::{callstack, frame, interned_data, interned_string, mapping, trace_packet};
use crate::protobuf::Encoder;

/// The data already interned in a packet sequence.
#[derive(Debug)]
pub struct PacketInterner<'a> {
    stacks: &'a Stacks,
    interned_stacks: Vec<bool>,
    interned_frames: Vec<bool>,
    /// Strings already interned, by kind.
    interned_texts: [Vec<bool>; 4],
    /// Mappings already interned, by binary and build id.
    interned_mappings: rustc_hash::FxHashMap<(u32, u32), u64>,
    path: Vec<u32>,
}

#[derive(Clone, Copy)]
enum InternedText {
    Function,
    MappingPath,
    BuildId,
    Source,
}

impl InternedText {
    const fn field(self) -> u32 {
        match self {
            Self::Function => interned_data::FUNCTION_NAMES,
            Self::MappingPath => interned_data::MAPPING_PATHS,
            Self::BuildId => interned_data::BUILD_IDS,
            Self::Source => interned_data::SOURCE_PATHS,
        }
    }
}

/// Marks a row; returns whether it was unmarked.
fn is_new(seen: &mut Vec<bool>, row: u32) -> bool {
    let row = row as usize;
    if row >= seen.len() {
        seen.resize(row + 1, false);
    }
    !std::mem::replace(&mut seen[row], true)
}

impl<'a> PacketInterner<'a> {
    /// Nothing interned yet.
    pub fn new(stacks: &'a Stacks) -> Self {
        Self {
            stacks,
            interned_stacks: vec![false; stacks.num_stacks()],
            interned_frames: vec![false; stacks.frames.len()],
            interned_texts: Default::default(),
            interned_mappings: rustc_hash::FxHashMap::default(),
            path: Vec::new(),
        }
    }

    /// Interns a stack in the first packet that needs it. Its id is its row, from 1.
    pub fn intern(&mut self, stack: u32, packet: &mut Encoder) {
        if is_new(&mut self.interned_stacks, stack) {
            packet.message(trace_packet::INTERNED_DATA, |data| self.stack(stack, data));
        }
    }

    fn stack(&mut self, stack: u32, data: &mut Encoder) {
        let mut path = std::mem::take(&mut self.path);
        path.clear();
        path.extend(self.stacks.frames_of(stack));
        path.reverse();
        for &row in &path {
            if is_new(&mut self.interned_frames, row) {
                self.frame(row, data);
            }
        }
        data.message(interned_data::CALLSTACKS, |entry| {
            entry.uint(callstack::IID, u64::from(stack) + 1);
            for &row in &path {
                entry.uint(callstack::FRAME_IDS, u64::from(row) + 1);
            }
        });
        self.path = path;
    }

    fn frame(&mut self, row: u32, data: &mut Encoder) {
        let of = self.stacks.frames[row as usize];
        let mapping = self.mapping(&of, data);
        let name = self.text(InternedText::Function, of.name, data);
        let source = self.text(InternedText::Source, of.path, data);
        let kind = match self.stacks.texts.get(of.kind) {
            Some("native") => frame::KIND_NATIVE,
            Some("kernel") => frame::KIND_KERNEL,
            Some("jit") => frame::KIND_JIT,
            _ => frame::KIND_UNKNOWN,
        };
        data.message(interned_data::FRAMES, |entry| {
            entry.uint(frame::IID, u64::from(row) + 1);
            entry.uint(frame::FUNCTION_NAME_ID, name);
            entry.uint(frame::MAPPING_ID, mapping);
            entry.uint(frame::REL_PC, of.relative_address.or(of.address).unwrap_or(0));
            if source != 0 {
                entry.uint(frame::SOURCE_PATH_IID, source);
                if of.line != NONE {
                    entry.uint(frame::LINE_NUMBER, of.line.into());
                }
            }
            entry.uint(frame::KIND, kind);
        });
    }

    /// Interns the mapping of a frame.
    fn mapping(&mut self, of: &Frame, data: &mut Encoder) -> u64 {
        let next = self.interned_mappings.len() as u64 + 1;
        let key = (of.binary, of.build_id);
        if let Some(&iid) = self.interned_mappings.get(&key) {
            return iid;
        }
        self.interned_mappings.insert(key, next);
        let path = self.text(InternedText::MappingPath, of.binary, data);
        let build_id = self.text(InternedText::BuildId, of.build_id, data);
        data.message(interned_data::MAPPINGS, |entry| {
            entry.uint(mapping::IID, next);
            entry.uint(mapping::BUILD_ID, build_id);
            if path != 0 {
                entry.uint(mapping::PATH_STRING_IDS, path);
            }
        });
        next
    }

    /// Interns a string; 0 for none.
    fn text(&mut self, kind: InternedText, text: u32, data: &mut Encoder) -> u64 {
        let Some(value) = self.stacks.texts.get(text) else { return 0 };
        if is_new(&mut self.interned_texts[kind as usize], text) {
            data.message(kind.field(), |entry| {
                entry.uint(interned_string::IID, u64::from(text) + 1);
                match kind {
                    InternedText::BuildId => entry.data(interned_string::STR, &bytes_of(value)),
                    InternedText::Function | InternedText::MappingPath | InternedText::Source => {
                        entry.data(interned_string::STR, value.as_bytes());
                    }
                }
            });
        }
        u64::from(text) + 1
    }
}

/// Hexadecimal digits as bytes, up to the first other character.
fn bytes_of(hex: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |pair: &[u8]| Some((digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?) as u8);
    hex.as_bytes().chunks(2).map_while(byte).collect()
}
