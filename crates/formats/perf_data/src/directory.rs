//! Directories of `perf record --threads`, read as one file.
//!
//! `data` is a complete file whose records are those of perf itself; each `data.N` is a stream of kernel records without a header.
//! The source made of them is `data`, then all records, then a copy of the table of feature sections: offsets in the header and
//! in that table stay valid, and only the position and size of the records change.

use std::io;
use std::path::{Path, PathBuf};

use perfuse_recording::{Source, Spill, UnpackLimit};
use perfuse_wire::Endian;

use super::consts::{PIPE_HEADER_BYTES, byte_order};
use super::layout::{FileHeader, Section};
use super::record::read_record;

/// Name of the file with the header.
pub const MAIN_FILE: &str = "data";
/// Offset of the position and size of the records in the header.
const DATA_SECTION_OFFSET: usize = 40;

/// Reads a directory as one source. An incomplete record of a stream is placed at the end, where reading reports it.
///
/// # Errors
/// `InvalidData` where `data` has no complete header, and errors of the file system.
pub fn read(directory: &Path, limit: UnpackLimit) -> io::Result<Source> {
    let main = open(&directory.join(MAIN_FILE), limit)?;
    let header = DirectoryHeader::read(&main).ok_or_else(|| {
        let message = format!("{MAIN_FILE} in the directory is not a complete perf.data file");
        io::Error::new(io::ErrorKind::InvalidData, message)
    })?;
    let (before, after) = main.split_at_checked(DATA_SECTION_OFFSET).unwrap_or_default();
    let own_records = main.get(header.records.clone()).unwrap_or_default();
    let streams =
        stream_paths(directory)?.iter().map(|path| open(path, limit)).collect::<io::Result<Vec<_>>>()?;
    let mut parts = vec![own_records];
    let mut incomplete_record: &[u8] = &[];
    for stream in &streams {
        let (records, rest) = split_complete(stream, header.endian);
        parts.push(records);
        incomplete_record = if rest.is_empty() { incomplete_record } else { rest };
    }
    parts.push(incomplete_record);
    let num_bytes = parts.iter().fold(0u64, |sum, part| sum.saturating_add(part.len() as u64));
    let mut out = Spill::default();
    out.push(before)?;
    for word in [main.len() as u64, num_bytes] {
        out.push(&match header.endian {
            Endian::Little => word.to_le_bytes(),
            Endian::Big => word.to_be_bytes(),
        })?;
    }
    out.push(after.get(Section::SIZE as usize..).unwrap_or_default())?;
    for part in parts {
        out.push(part)?;
    }
    let feature_table = main.get(header.records.end..).unwrap_or_default();
    out.push(feature_table.get(..header.feature_table_bytes).unwrap_or(feature_table))?;
    let mut source = out.finish(&directory.to_string_lossy())?;
    source.unpack_limit = limit;
    Ok(source)
}

/// The facts of the header that determine how the files are joined.
struct DirectoryHeader {
    endian: Endian,
    /// The records in `data`.
    records: std::ops::Range<usize>,
    feature_table_bytes: usize,
}

impl DirectoryHeader {
    /// `None` where the header is not complete, or is that of a pipe.
    fn read(main: &[u8]) -> Option<Self> {
        let endian = byte_order(main)?;
        let header = FileHeader::read(&mut perfuse_wire::Cursor::new(main, 0, endian)).ok()?;
        if header.size == PIPE_HEADER_BYTES {
            return None;
        }
        let start = usize::try_from(header.data_offset).ok()?.min(main.len());
        let end = match usize::try_from(header.data_size).ok()? {
            0 => main.len(),
            size => start.saturating_add(size).min(main.len()),
        };
        let bits = [header.features_0, header.features_1, header.features_2, header.features_3];
        let num_features: u32 = bits.iter().map(|word| word.count_ones()).sum();
        let feature_table_bytes = (num_features as usize).saturating_mul(Section::SIZE as usize);
        Some(Self { endian, records: start..end, feature_table_bytes })
    }
}

/// The streams of a directory: regular files named `data.` and a suffix, in the order of their numbers.
fn stream_paths(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut streams = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(suffix) = name.strip_prefix("data.")
            && entry.file_type()?.is_file()
        {
            streams.push((suffix.parse::<u64>().unwrap_or(u64::MAX), name, entry.path()));
        }
    }
    streams.sort();
    Ok(streams.into_iter().map(|(_, _, path)| path).collect())
}

/// The complete records of a stream, and the bytes after them.
fn split_complete(stream: &[u8], endian: Endian) -> (&[u8], &[u8]) {
    let mut offset = 0u64;
    let end = loop {
        match read_record(stream, offset, endian, false) {
            Ok(record) => offset = offset.saturating_add(record.size),
            Err(_) => break offset,
        }
    };
    stream.split_at_checked(usize::try_from(end).unwrap_or(usize::MAX)).unwrap_or((stream, &[]))
}

/// A file of the directory. An empty one cannot be mapped.
fn open(path: &Path, limit: UnpackLimit) -> io::Result<Source> {
    match std::fs::metadata(path)?.len() {
        0 => Source::from_bytes(&path.to_string_lossy(), Vec::new()),
        _ => Source::open_within(&path.to_string_lossy(), limit),
    }
}
