//! Mappings of files, and ranges of code that is in none of them.

use arrow_array::{RecordBatch, UInt64Array};
use rustc_hash::FxHashMap;

use super::super::stacks::{Frame, Stacks};
use super::fields::{mapping, profile};
use super::strings::StringTable;
use crate::protobuf::Encoder;
use perfuse_engine::stacks::StackError;
use perfuse_engine::stacks::columns::{Texts, column, numbers, text};

/// A mapping of a file.
#[derive(Clone, Copy, Debug)]
pub struct Mapping {
    start_address: u64,
    end_address: u64,
    file_offset: u64,
    path: u32,
    build_id: u32,
}

/// All mappings, by key.
#[derive(Debug, Default)]
pub struct Mappings {
    by_key: FxHashMap<u32, Mapping>,
    texts: Texts,
    /// The mapping of the main program.
    main: Option<u32>,
}

impl Mappings {
    /// Reads rows with columns `mapping_id`, `start_address`, `end_address`, `file_offset`, `path` and `build_id`. `main` is the
    /// key of the main program's.
    ///
    /// # Errors
    /// [`StackError`] where a column is not there.
    pub fn of(batches: &[RecordBatch], main: Option<u32>) -> Result<Self, StackError> {
        let mut texts = Texts::default();
        let keys = numbers(batches, "mappings", "mapping_id")?;
        let paths = text(batches, "mappings", "path", &mut texts)?;
        let build_ids = text(batches, "mappings", "build_id", &mut texts)?;
        let wide = |name| -> Result<Vec<u64>, StackError> {
            let mut values = Vec::with_capacity(keys.len());
            for batch in batches {
                let array: &UInt64Array = column(batch, "mappings", name)?;
                values.extend(array.iter().map(Option::unwrap_or_default));
            }
            Ok(values)
        };
        let (starts, ends, offsets) = (wide("start_address")?, wide("end_address")?, wide("file_offset")?);
        let row = |(row, &key): (usize, &u32)| {
            let (start_address, end_address, file_offset) = (starts[row], ends[row], offsets[row]);
            let (path, build_id) = (paths[row], build_ids[row]);
            (key, Mapping { start_address, end_address, file_offset, path, build_id })
        };
        let by_key = keys.iter().enumerate().map(row).collect();
        Ok(Self { by_key, texts, main })
    }

    fn path_of(&self, key: u32) -> Option<&str> {
        self.texts.get(self.by_key.get(&key)?.path)
    }
}

/// What a location is in: a mapping, by its key, or code of a binary, by its name and build id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Origin {
    Mapping(u32),
    Binary(u32, u32),
}

/// The mappings of a profile, in order of first use. pprof takes the first one for the main program.
pub struct MappingTable<'a> {
    stacks: &'a Stacks,
    mappings: &'a Mappings,
    order: Vec<Origin>,
    /// Lowest and highest address in it.
    spans: FxHashMap<Origin, Option<(u64, u64)>>,
    /// Their numbers, once they are written.
    ids: FxHashMap<Origin, u64>,
}

impl<'a> MappingTable<'a> {
    pub fn new(stacks: &'a Stacks, mappings: &'a Mappings) -> Self {
        let main = mappings.main.filter(|key| mappings.by_key.contains_key(key)).map(Origin::Mapping);
        let spans = main.iter().map(|&main| (main, None)).collect();
        let ids = FxHashMap::default();
        Self { stacks, mappings, order: main.into_iter().collect(), spans, ids }
    }

    /// Adds the mapping of a frame.
    pub fn add(&mut self, frame: &Frame) {
        let origin = self.origin(frame);
        let span = self.spans.entry(origin).or_insert_with(|| {
            self.order.push(origin);
            None
        });
        if let Some(address) = frame.address.or(frame.relative_address) {
            let (low, high) = span.unwrap_or((address, address));
            *span = Some((low.min(address), high.max(address)));
        }
    }

    fn origin(&self, frame: &Frame) -> Origin {
        // JIT code is in memory that is not backed by a file; its binary is the name of the process's code.
        let is_jit = self.stacks.texts.get(frame.kind) == Some("jit");
        match frame.mapping {
            key if !is_jit && self.mappings.by_key.contains_key(&key) => Origin::Mapping(key),
            _ => Origin::Binary(frame.binary, frame.build_id),
        }
    }

    /// Writes the mappings: those of the main program, then the others.
    pub fn write(mut self, title: &str, strings: &mut StringTable, out: &mut Encoder) -> Self {
        let main = self.mappings.main.and_then(|key| self.mappings.path_of(key));
        let path = |origin: &Origin| match *origin {
            Origin::Mapping(key) => self.mappings.path_of(key),
            Origin::Binary(binary, _) => self.stacks.texts.get(binary),
        };
        if main.is_some() {
            // Stable: the others keep their order.
            self.order.sort_by_key(|origin| path(origin) != main);
        }
        for (origin, id) in self.order.iter().zip(1..) {
            self.write_one(origin, id, path(origin).unwrap_or(title), strings, out);
        }
        self.ids = self.order.iter().copied().zip(1..).collect();
        self
    }

    fn write_one(&self, origin: &Origin, id: u64, path: &str, strings: &mut StringTable, out: &mut Encoder) {
        let (start, end, offset, build_id) = match *origin {
            Origin::Mapping(key) => {
                let of = &self.mappings.by_key[&key];
                (of.start_address, of.end_address, of.file_offset, self.mappings.texts.get(of.build_id))
            }
            Origin::Binary(_, build_id) => {
                let (low, high) =
                    self.spans[origin].map_or((0, 0), |(low, high)| (low, high.saturating_add(1)));
                (low, high, 0, self.stacks.texts.get(build_id))
            }
        };
        let (path, build_id) = (strings.id(path), build_id.map_or(0, |build_id| strings.id(build_id)));
        out.message(profile::MAPPING, |out| {
            out.uint(mapping::ID, id);
            out.uint(mapping::MEMORY_START, start);
            out.uint(mapping::MEMORY_LIMIT, end);
            out.uint(mapping::FILE_OFFSET, offset);
            out.uint(mapping::FILENAME, path);
            out.uint(mapping::BUILD_ID, build_id);
            // Symbols are complete: pprof need not symbolize.
            for known in [
                mapping::HAS_FUNCTIONS,
                mapping::HAS_FILENAMES,
                mapping::HAS_LINE_NUMBERS,
                mapping::HAS_INLINE_FRAMES,
            ] {
                out.uint(known, 1);
            }
        });
    }

    /// Number of the mapping of a frame, in a table that is written.
    pub fn id(&self, frame: &Frame) -> u64 {
        self.ids.get(&self.origin(frame)).copied().unwrap_or(0)
    }
}
