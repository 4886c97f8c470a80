//! The index of a dump whose bytes become more while it is used: of a file that a running program writes, or of a stream.

use perfuse_wire::ParseError;

use super::build_index::IndexBuilder;
use super::index::DumpIndex;
use super::producer::Producer;
use super::reader::{self, FileStart, Reader, ReaderStep, TailState};

pub use super::build_index::LifeChanges;

/// The index of the records so far.
///
/// A record is added when all of its bytes are there. Whatever the pieces in which the bytes of an undamaged dump arrive, the
/// index is that of the whole dump. After damaged bytes reading resumes at the next plausible record, once there is one.
#[derive(Debug)]
pub struct GrowingIndex {
    path: String,
    open: Option<OpenIndex>,
    line_revision: u64,
}

#[derive(Debug)]
struct OpenIndex {
    start: FileStart,
    builder: IndexBuilder,
    offset: u64,
    index: u64,
    previous: Option<u64>,
    /// Number of damaged bytes in which no record was found.
    searched_bytes: usize,
}

/// What follows the bytes that are passed to [`GrowingIndex::advance`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// More bytes, which are there already and are passed next.
    Follows,
    /// Maybe more bytes, later.
    MayFollow,
    /// Nothing: what is left is read as the end of a damaged file.
    Nothing,
}

/// What an [`advance`](GrowingIndex::advance) added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advanced {
    /// Number of records.
    pub num_records: u64,
    /// How the life of code changed.
    pub life: LifeChanges,
}

impl GrowingIndex {
    /// An index without records. The path is that of the dump, or empty: some producers are recognized by it.
    #[must_use]
    pub fn new(path: &str) -> Self {
        Self { path: path.to_owned(), open: None, line_revision: 0 }
    }

    /// Reads what was added since the last call; `data` is all bytes of the dump so far, and `rest` what
    /// follows them. `None` where there is nothing new.
    ///
    /// # Errors
    /// When the data does not begin with a header.
    pub fn advance(&mut self, data: &[u8], rest: Rest) -> Result<Option<Advanced>, ParseError> {
        let open = match &mut self.open {
            Some(open) => open,
            None => match reader::read_growing_start(data, rest == Rest::Nothing)? {
                Some(start) => self.open.insert(OpenIndex {
                    start,
                    builder: IndexBuilder::new(start),
                    offset: start.first_record,
                    index: 0,
                    previous: None,
                    searched_bytes: 0,
                }),
                None => return Ok(None),
            },
        };
        let before = open.line_facts();
        let (num_before, offset_before) = (open.index, open.offset);
        open.read(data, rest);
        if open.offset == offset_before && open.index == num_before {
            return Ok(None);
        }
        let life = open.builder.settle(data, &self.path);
        if before != open.line_facts() || before.has_assumed_pairs {
            self.line_revision = self.line_revision.wrapping_add(1);
        }
        Ok(Some(Advanced { num_records: open.index.saturating_sub(num_before), life }))
    }

    /// The index; `None` before the header is complete.
    #[must_use]
    pub fn index(&self) -> Option<&DumpIndex> {
        self.open.as_ref().map(|open| open.builder.index())
    }

    /// Offset of the first byte that is not part of the index yet.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.offset)
    }

    /// A number that changes where lines of earlier code may have: how to read lines shows in the first records.
    #[must_use]
    pub fn line_revision(&self) -> u64 {
        self.line_revision
    }
}

/// What the lines of all code depend on.
#[derive(Clone, Copy, PartialEq, Eq)]
struct LineFacts {
    producer: Producer,
    skew: u64,
    has_assumed_pairs: bool,
}

impl OpenIndex {
    fn line_facts(&self) -> LineFacts {
        let index = self.builder.index();
        LineFacts {
            producer: index.producer,
            skew: index.skew,
            has_assumed_pairs: self.builder.has_assumed_pairs(),
        }
    }

    fn read(&mut self, data: &[u8], rest: Rest) {
        let mut reader =
            Reader::new(data, self.start.endian, self.offset, self.index).with_previous(self.previous);
        loop {
            if rest != Rest::Nothing {
                let damaged_bytes = data.len().saturating_sub(reader.offset() as usize);
                match reader.state_of_tail() {
                    TailState::Complete => {}
                    TailState::Incomplete => break,
                    TailState::Damaged if rest == Rest::Follows => break,
                    // Each search reads all damaged bytes: it is repeated when there are twice as many.
                    TailState::Damaged if damaged_bytes < self.searched_bytes.saturating_mul(2) => break,
                    TailState::Damaged => {
                        let found = { reader }.next();
                        if matches!(found, Some(ReaderStep::Lost { at_end: true, .. }) | None) {
                            self.searched_bytes = damaged_bytes;
                            break;
                        }
                    }
                }
            }
            let Some(step) = reader.next() else { break };
            self.searched_bytes = 0;
            self.builder.add(&step, reader.index());
        }
        (self.offset, self.index, self.previous) = (reader.offset(), reader.index(), reader.previous());
    }
}
