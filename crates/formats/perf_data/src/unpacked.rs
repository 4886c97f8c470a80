//! Records compressed with zstd (`perf record -z`). All compressed records of a file contain parts of one stream, which is
//! unpacked once, in order, into memory or an unlinked temporary file. A directory of `perf record --threads` has a stream for
//! each of its files; each begins with a zstd frame of its own.

use perfuse_wire::{Cursor, Endian};
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use super::consts::RecordType;
use super::layout::{Compressed2, EventHeader};
use super::record::{RawEvent, RecordsEnd, accept, read_record};
use perfuse_recording::{Source, Spill, TooLarge, UnpackLimit};

/// First bytes of a zstd frame. No block inside of a frame begins with them: they would state a block that is larger than allowed.
const FRAME_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The unpacked content of the compressed records of a file.
#[derive(Debug, Default)]
pub struct Unpacked {
    source: Option<Source>,
    blocks: Vec<CompressedBlock>,
    /// Offset of the record at which unpacking stopped, and the reason.
    pub error: Option<(u64, String)>,
}

/// A compressed record, and the range of the stream whose records end in it.
#[derive(Clone, Copy, Debug)]
struct CompressedBlock {
    /// Offset of the compressed record.
    offset: u64,
    start: u64,
    end: u64,
}

impl Unpacked {
    /// Unpacks the compressed ones among `records`.
    pub fn new<'a>(records: impl Iterator<Item = RawEvent<'a>>, limit: UnpackLimit, endian: Endian) -> Self {
        let mut unpacked = Self::default();
        let mut packed_bytes = 0u64;
        let mut spill = Spill::default();
        let mut decoder = match Decoder::new() {
            Ok(decoder) => decoder,
            Err(error) => return Self { error: Some((0, error.to_string())), ..unpacked },
        };
        for record in records.filter(|record| record.record_type.is_compressed()) {
            let payload = payload(&record, endian);
            packed_bytes = packed_bytes.saturating_add(payload.len() as u64);
            let limit_bytes = limit.of_packed(packed_bytes);
            if payload.starts_with(&FRAME_MAGIC)
                && let Err(error) = decoder.reinit()
            {
                unpacked.error = Some((record.offset, error.to_string()));
                break;
            }
            if let Err(error) = unpack_block(&mut decoder, payload, &mut spill, limit_bytes) {
                unpacked.error = Some((record.offset, error.to_string()));
                break;
            }
            unpacked.blocks.push(CompressedBlock { offset: record.offset, start: 0, end: spill.len() });
        }
        match spill.finish("") {
            Ok(source) => unpacked.split_blocks(source, endian),
            Err(error) => unpacked.error = Some((0, error.to_string())),
        }
        unpacked
    }

    /// Moves the ends of blocks back to the ends of records: a record across two blocks belongs to the second one.
    fn split_blocks(&mut self, source: Source, endian: Endian) {
        let mut at = 0u64;
        for block in &mut self.blocks {
            block.start = at;
            let bytes = source.get(..usize::try_from(block.end).unwrap_or(usize::MAX)).unwrap_or_default();
            loop {
                perfuse_stopping::checkpoint();
                match read_record(bytes, at, endian, false).and_then(accept) {
                    Ok(record) => at = at.saturating_add(record.size),
                    Err(RecordsEnd::BadSize { .. } | RecordsEnd::UnknownType { .. }) => {
                        let message = "a compressed record contains a record without a valid size or type";
                        self.error.get_or_insert((block.offset, message.to_owned()));
                        break;
                    }
                    Err(_) => break,
                }
            }
            block.end = at;
        }
        self.source = Some(source);
    }

    /// The unpacked stream.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.source.as_deref().unwrap_or_default()
    }

    /// The range of the stream whose records end in the compressed record at an offset.
    #[must_use]
    pub fn range(&self, offset: u64) -> Option<(u64, u64)> {
        let index = self.blocks.binary_search_by_key(&offset, |block| block.offset).ok()?;
        self.blocks.get(index).map(|block| (block.start, block.end))
    }

    /// Offset of the compressed record that contains an offset in the stream.
    #[must_use]
    pub fn compressed_record(&self, inner_offset: u64) -> u64 {
        let index = self.blocks.partition_point(|block| block.end <= inner_offset);
        self.blocks.get(index).map_or(0, |block| block.offset)
    }

    /// Returns the pages of a range to the operating system.
    pub fn release(&self, range: std::ops::Range<usize>) {
        if let Some(source) = &self.source {
            source.release(range);
        }
    }
}

/// The compressed bytes of a record.
fn payload<'a>(record: &RawEvent<'a>, endian: Endian) -> &'a [u8] {
    if record.record_type == RecordType::COMPRESSED {
        return record.body;
    }
    let mut cursor = Cursor::new(record.body, record.offset.saturating_add(EventHeader::SIZE), endian);
    let header = Compressed2::read(&mut cursor);
    header.and_then(|header| cursor.bytes(header.data_size, "data")).unwrap_or_default()
}

/// Unpacks the bytes of one record.
fn unpack_block(
    decoder: &mut Decoder<'_>,
    compressed: &[u8],
    spill: &mut Spill,
    limit: u64,
) -> std::io::Result<()> {
    let mut input = InBuffer::around(compressed);
    let mut chunk = vec![0u8; 256 << 10];
    loop {
        perfuse_stopping::checkpoint();
        let mut output = OutBuffer::around(chunk.as_mut_slice());
        decoder.run(&mut input, &mut output)?;
        let written = output.as_slice().len();
        spill.push(output.as_slice())?;
        if spill.len() > limit {
            return Err(TooLarge { limit_bytes: limit, is_packed: true }.into());
        }
        // The decoder has consumed the input and has no more output once it does not fill the buffer.
        if input.pos() >= compressed.len() && written < 256 << 10 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use perfuse_wire::Endian;

    use super::Unpacked;
    use crate::consts::RecordType;
    use crate::record::{RawEvent, RecordLocation};
    use perfuse_recording::UnpackLimit;

    /// A record of 16 bytes.
    fn record(number: u64) -> Vec<u8> {
        [&[1u8, 0, 0, 0, 0, 0, 16, 0][..], &number.to_le_bytes()].concat()
    }

    /// What perf writes in turn: the output of one compressor after each of some inputs. The frame is never ended.
    fn compressed(inputs: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).expect("an encoder");
        let mut start = 0;
        let mut parts = Vec::new();
        for input in inputs {
            encoder.write_all(input).expect("written");
            encoder.flush().expect("flushed");
            parts.push(encoder.get_ref()[start..].to_vec());
            start = encoder.get_ref().len();
        }
        parts
    }

    #[test]
    fn each_file_of_a_directory_has_a_stream_of_its_own() {
        let first = compressed(&[record(1), [record(2), record(3)].concat()]);
        let second = compressed(&[record(4), record(5)]);
        let payloads = [first, second].concat();
        let records = payloads.iter().zip(0..).map(|(payload, at)| RawEvent {
            index: at,
            offset: at * 1000,
            location: RecordLocation::from_number(at * 1000),
            record_type: RecordType::COMPRESSED,
            misc: 0,
            size: payload.len() as u64 + 8,
            bytes: payload,
            body: payload,
            payload: &[],
        });
        let unpacked = Unpacked::new(records, UnpackLimit::default(), Endian::Little);
        assert_eq!(unpacked.error, None);
        assert_eq!(unpacked.bytes(), (1..=5).flat_map(record).collect::<Vec<_>>());
        assert_eq!(unpacked.range(2000), Some((48, 64)), "the first record of the second stream");
    }
}
