//! Records and table entries that are added to a recording.

use linux_perf_data::Feature;
use linux_perf_event_reader::constants as abi;
use perfuse_wire::{Endian, Put};

use super::{InjectError, InjectedBuildId, InjectedMmap};
use crate::attribute::Attribute;
use crate::consts::{RecordType, misc};
use crate::layout::{BuildIdEvent, EventHeader, Mmap, Mmap2Protection};
use crate::reader::File;

/// Longest path in a record: `PATH_MAX`.
const MAX_PATH_BYTES: usize = 4096;
/// Longest build id.
const MAX_BUILD_ID_BYTES: usize = 20;
/// Build-id entries pad their names to this.
const BUILD_ID_NAME_ALIGN: usize = 64;
/// `PROT_READ | PROT_EXEC`.
const PROT: u32 = 5;
/// `MAP_PRIVATE`.
const MAP_FLAGS: u32 = 2;

/// Sizes `struct perf_event_attr` has had, one a version of the kernel's interface.
const ATTR_SIZES: [usize; 9] = [64, 72, 80, 96, 104, 112, 120, 128, 136];
/// Where it states its own size.
const ATTR_SIZE_OFFSET: usize = 4;

/// An attribute in the oldest size that holds all it says: perf refuses a file whose attributes are longer than those it
/// knows, even by zeros.
pub fn shortest(attribute: &[u8], endian: Endian) -> Vec<u8> {
    let said = attribute.iter().rposition(|&byte| byte != 0).map_or(0, |last| last.saturating_add(1));
    let size = ATTR_SIZES.into_iter().find(|&size| size >= said).unwrap_or(attribute.len());
    let mut shortest = attribute.get(..size).unwrap_or(attribute).to_vec();
    let (mut stated, len) = (Vec::new(), u32::try_from(shortest.len()).unwrap_or(0));
    stated.put_u32(len, endian);
    if let Some(place) = shortest.get_mut(ATTR_SIZE_OFFSET..).and_then(|rest| rest.get_mut(..stated.len())) {
        place.copy_from_slice(&stated);
    }
    shortest
}

/// A mapping as a record.
pub struct Added {
    /// Since when it holds.
    pub ts_ns: u64,
    /// The record.
    pub bytes: Vec<u8>,
}

/// MMAP2 records, in time order, as the event they are told by has them.
pub fn encode_mmaps(
    mmaps: &[InjectedMmap],
    of: &Attribute,
    endian: Endian,
) -> Result<Vec<Added>, InjectError> {
    let mut added = mmaps
        .iter()
        .map(|mmap| Ok(Added { ts_ns: mmap.ts_ns, bytes: encode_mmap(mmap, of, endian)? }))
        .collect::<Result<Vec<_>, InjectError>>()?;
    added.sort_by_key(|mmap| mmap.ts_ns);
    Ok(added)
}

fn encode_mmap(mmap: &InjectedMmap, of: &Attribute, endian: Endian) -> Result<Vec<u8>, InjectError> {
    let mut body = Vec::new();
    let &InjectedMmap { pid, tid, start_address: addr, size: len, file_offset: pgoff, .. } = mmap;
    Mmap { pid, tid, addr, len, pgoff }.write(&mut body, endian);
    let mut flags = misc::USER;
    match &mmap.build_id {
        Some(id) => {
            flags |= misc::MMAP_BUILD_ID;
            body.extend_from_slice(&[id_len(id)?, 0, 0, 0]);
            put_build_id(&mut body, id);
        }
        None => body.extend_from_slice(&[0; 24]),
    }
    Mmap2Protection { prot: PROT, flags: MAP_FLAGS }.write(&mut body, endian);
    put_name(&mut body, &mmap.path, 8)?;
    put_sample_id(&mut body, mmap, of, endian);
    record(RecordType::MMAP2.0, flags, &body, endian)
}

/// What every record of an event with `sample_id_all` ends with; perf sorts by the time in it.
fn put_sample_id(body: &mut Vec<u8>, mmap: &InjectedMmap, of: &Attribute, endian: Endian) {
    if of.shape.sample_id_bytes == 0 {
        return;
    }
    let id = of.ids.first().copied().unwrap_or(0);
    if of.shape.has(abi::PERF_SAMPLE_TID) {
        body.put_i32(mmap.pid, endian);
        body.put_i32(mmap.tid, endian);
    }
    for (bit, word) in [
        (abi::PERF_SAMPLE_TIME, mmap.ts_ns),
        (abi::PERF_SAMPLE_ID, id),
        (abi::PERF_SAMPLE_STREAM_ID, id),
        (abi::PERF_SAMPLE_CPU, 0),
        (abi::PERF_SAMPLE_IDENTIFIER, id),
    ] {
        if of.shape.has(bit) {
            body.put_u64(word, endian);
        }
    }
}

/// The recording's own table, then the added files.
pub fn build_id_section(
    file: &File,
    mmaps: &[InjectedMmap],
    added: &[InjectedBuildId],
) -> Result<Vec<u8>, InjectError> {
    let mut section = Vec::new();
    if let Some(table) = file.features.cursor(Feature::BUILD_ID, &file.source, file.endian) {
        section.extend_from_slice(table.rest());
    }
    let mut put = |flags: u16, path: &str, id: &[u8]| -> Result<(), InjectError> {
        let mut body = Vec::new();
        BuildIdEvent { pid: -1 }.write(&mut body, file.endian);
        put_build_id(&mut body, id);
        body.extend_from_slice(&[id_len(id)?, 0, 0, 0]);
        put_name(&mut body, path, BUILD_ID_NAME_ALIGN)?;
        section.extend(record(0, flags | misc::BUILD_ID_SIZE, &body, file.endian)?);
        Ok(())
    };
    for entry in &file.survey().build_ids {
        put(entry.misc, &String::from_utf8_lossy(&entry.path), &entry.id)?;
    }
    let from_mmaps = mmaps.iter().filter_map(|mmap| Some((mmap.path.as_str(), mmap.build_id.as_deref()?)));
    let given = added.iter().map(|entry| (entry.path.as_str(), entry.build_id.as_slice()));
    let mut files: Vec<_> = from_mmaps.chain(given).collect();
    files.sort_unstable();
    files.dedup();
    for (path, id) in files {
        put(misc::USER, path, id)?;
    }
    Ok(section)
}

fn record(type_: u32, misc: u16, body: &[u8], endian: Endian) -> Result<Vec<u8>, InjectError> {
    let size = (EventHeader::SIZE as usize).saturating_add(body.len());
    let size = u16::try_from(size).map_err(|_| InjectError::TooLong(format!("a record of {size} bytes")))?;
    let mut bytes = Vec::with_capacity(usize::from(size));
    EventHeader { type_, misc, size }.write(&mut bytes, endian);
    bytes.extend_from_slice(body);
    Ok(bytes)
}

fn id_len(id: &[u8]) -> Result<u8, InjectError> {
    let len = u8::try_from(id.len()).ok().filter(|&len| usize::from(len) <= MAX_BUILD_ID_BYTES);
    len.ok_or_else(|| InjectError::TooLong(format!("a build id of {} bytes", id.len())))
}

fn put_build_id(body: &mut Vec<u8>, id: &[u8]) {
    let end = body.len().saturating_add(MAX_BUILD_ID_BYTES);
    body.extend_from_slice(id);
    body.resize(end, 0);
}

/// A name with at least one NUL, padded so that what follows is aligned.
fn put_name(body: &mut Vec<u8>, name: &str, align: usize) -> Result<(), InjectError> {
    if name.len() >= MAX_PATH_BYTES {
        return Err(InjectError::TooLong(format!("a path of {} bytes", name.len())));
    }
    let padded = name.len().saturating_add(1).next_multiple_of(align);
    let end = body.len().saturating_add(padded);
    body.extend_from_slice(name.as_bytes());
    body.resize(end, 0);
    Ok(())
}
