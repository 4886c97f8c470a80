//! Records packed with zstd (`perf record -z`). All packed records of a file hold one stream, so it is unpacked once, in
//! order, into memory or an unlinked temporary file; from there its records are read like others.

use perfuse_wire::{Cursor, Endian};
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use super::consts::RecordType;
use super::layout::{Compressed2, EventHeader};
use super::reader::{Cut, RawRecord, cut};
use perfuse_recording::Source;
use perfuse_recording::Spill;

/// No recording packs better than this; a file that claims to is made to fill disks.
const MAX_RATIO: u64 = 1000;
/// But the smallest may unpack to this.
const MIN_LIMIT_BYTES: u64 = 64 << 20;

/// What the packed records of a file hold.
#[derive(Debug, Default)]
pub struct Unpacked {
    source: Option<Source>,
    blocks: Vec<Block>,
    /// Where unpacking stopped, and why.
    pub error: Option<(u64, String)>,
}

/// One packed record, and the part of the stream whose records end in it.
#[derive(Clone, Copy, Debug)]
struct Block {
    offset: u64,
    start: u64,
    end: u64,
}

impl Unpacked {
    /// Unpacks the packed ones among these records.
    pub fn new<'a>(records: impl Iterator<Item = RawRecord<'a>>, file_bytes: u64, endian: Endian) -> Self {
        let mut unpacked = Self::default();
        let limit = file_bytes.saturating_mul(MAX_RATIO).max(MIN_LIMIT_BYTES);
        let mut spill = Spill::default();
        let mut decoder = match Decoder::new() {
            Ok(decoder) => decoder,
            Err(error) => return Self { error: Some((0, error.to_string())), ..unpacked },
        };
        for record in records.filter(|record| record.record_type.is_compressed()) {
            if let Err(error) = run(&mut decoder, payload(&record, endian), &mut spill, limit) {
                unpacked.error = Some((record.offset, error.to_string()));
                break;
            }
            unpacked.blocks.push(Block { offset: record.offset, start: 0, end: spill.len() });
        }
        match spill.finish("") {
            Ok(source) => unpacked.split(source, endian),
            Err(error) => unpacked.error = Some((0, error.to_string())),
        }
        unpacked
    }

    /// Moves the ends of blocks back to the ends of records: one that is cut by the end of a block is the next block's.
    fn split(&mut self, source: Source, endian: Endian) {
        let mut at = 0u64;
        for block in &mut self.blocks {
            block.start = at;
            let bytes = source.get(..usize::try_from(block.end).unwrap_or(usize::MAX)).unwrap_or_default();
            loop {
                match cut(bytes, at, endian, false) {
                    Ok(record) => at = at.saturating_add(record.size),
                    Err(Cut::BadSize { .. }) => {
                        self.error.get_or_insert((block.offset, "packed record of no size".to_owned()));
                        break;
                    }
                    Err(_) => break,
                }
            }
            block.end = at;
        }
        self.source = Some(source);
    }

    /// The stream.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.source.as_deref().unwrap_or_default()
    }

    /// The part of the stream whose records the packed record at that offset ends.
    #[must_use]
    pub fn range(&self, offset: u64) -> Option<(u64, u64)> {
        let index = self.blocks.binary_search_by_key(&offset, |block| block.offset).ok()?;
        self.blocks.get(index).map(|block| (block.start, block.end))
    }

    /// Offset of the packed record that a place in the stream belongs to.
    #[must_use]
    pub fn origin(&self, place: u64) -> u64 {
        let index = self.blocks.partition_point(|block| block.end <= place);
        self.blocks.get(index).map_or(0, |block| block.offset)
    }

    /// Gives back the pages of a part that a pass is done with.
    pub fn release(&self, range: std::ops::Range<usize>) {
        if let Some(source) = &self.source {
            source.release(range);
        }
    }
}

fn payload<'a>(record: &RawRecord<'a>, endian: Endian) -> &'a [u8] {
    if record.record_type == RecordType::COMPRESSED {
        return record.body;
    }
    let mut cursor = Cursor::new(record.body, record.offset.saturating_add(EventHeader::SIZE), endian);
    let header = Compressed2::read(&mut cursor);
    header.and_then(|header| cursor.bytes(header.data_size, "data")).unwrap_or_default()
}

fn run(decoder: &mut Decoder<'_>, packed: &[u8], spill: &mut Spill, limit: u64) -> std::io::Result<()> {
    let mut input = InBuffer::around(packed);
    let mut chunk = vec![0u8; 256 << 10];
    loop {
        let mut output = OutBuffer::around(chunk.as_mut_slice());
        decoder.run(&mut input, &mut output)?;
        let written = output.as_slice().len();
        spill.push(output.as_slice())?;
        if spill.len() > limit {
            return Err(std::io::Error::other("it unpacks to more than any recording does"));
        }
        // All input is taken and the decoder holds nothing back once it does not fill what it is given.
        if input.pos() >= packed.len() && written < 256 << 10 {
            return Ok(());
        }
    }
}
