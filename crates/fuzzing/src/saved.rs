//! Saved profiles: as files, and tables that are written and read.

use std::sync::Arc;

use perfuse_formats::registry;
use perfuse_formats::saved::parquet_file::{self, BATCH_ROWS, ParquetTable};
use perfuse_formats::saved::{SavedProfile, crc};
use perfuse_formats::{Rate, Source};
use perfuse_profile::saved::{JOINED_TABLES, JoinedRows, SavedFacts};
use perfuse_profile::{Profile, ProfileInput, StreamError};

use crate::profiles::{everything, profile_of};

/// Opens a saved profile with all its tables and recordings. Ten bytes before the file state which rows the join made: first
/// and number, of each of five tables; without them, all rows. Checksums are made right, so that changes reach more than them.
pub(crate) fn opened(bytes: &[u8]) {
    let (rows, file) = match bytes.split_first_chunk::<10>() {
        Some((rows, file)) if !bytes.starts_with(b"PK") => (Some(*rows), file),
        _ => (None, bytes),
    };
    let mut file = file.to_vec();
    correct_checksums(&mut file);
    let Ok(source) = Source::from_bytes("fuzz", file) else { return };
    let Ok(saved) = registry::open(Arc::new(source)) else { return };
    let Some(profile) = saved.as_any().downcast_ref::<SavedProfile>() else { return };
    let mut inputs = Vec::new();
    for member in profile.members().iter().filter(|member| member.name.starts_with("inputs/")) {
        let Some(packed) = profile.bytes(&member.name) else { continue };
        let Ok(source) = Source::from_bytes(&member.name, packed.to_vec()) else { continue };
        let Ok(recording) = registry::open(Arc::new(source)) else { continue };
        if !recording.as_any().is::<SavedProfile>() {
            inputs.push(ProfileInput {
                clock: recording.clock(Rate::Auto),
                recording,
                pid: None,
                definitions: None,
            });
        }
    }
    let mut joined = JoinedRows::default();
    for (number, (table, range)) in JOINED_TABLES.iter().zip(&mut joined.rows).enumerate() {
        let num_rows = profile.parquet(table).ok().flatten().map_or(0, |table| table.num_rows);
        *range = rows.map_or(0..num_rows, |rows| {
            let start = u64::from(rows[2 * number]);
            start..start + u64::from(rows[2 * number + 1])
        });
    }
    let facts = SavedFacts { joined: Some(joined), named: Vec::new(), partial: Vec::new() };
    if let Ok(profile) = Profile::of_saved(inputs, &saved, &facts) {
        everything(&profile);
        let _ = profile.saved_facts();
    }
}

/// Corrects the checksums of the members of a zip file: <https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT>.
fn correct_checksums(file: &mut [u8]) {
    let number = |file: &[u8], at: usize, size: usize| -> Option<usize> {
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(file.get(at..at.checked_add(size)?)?);
        usize::try_from(u64::from_le_bytes(bytes)).ok()
    };
    let entries: Vec<usize> =
        file.windows(4).enumerate().filter(|(_, four)| four == b"PK\x01\x02").map(|(at, _)| at).collect();
    for entry in entries {
        let corrected = || -> Option<(usize, u32)> {
            let (size, header) = (number(file, entry + 20, 4)?, number(file, entry + 42, 4)?);
            let data = header + 30 + number(file, header + 26, 2)? + number(file, header + 28, 2)?;
            Some((header, crc(file.get(data..data.checked_add(size)?)?)))
        };
        let Some((header, checksum)) = corrected() else { continue };
        for at in [entry + 16, header + 14] {
            if let Some(field) = file.get_mut(at..at + 4) {
                field.copy_from_slice(&checksum.to_le_bytes());
            }
        }
    }
}

/// Writes each table of a profile of one recording as in a saved profile, and reads it.
///
/// # Panics
/// When a table cannot be written or read, or has other rows.
pub(crate) fn tables(bytes: &[u8]) {
    let Some(profile) = profile_of(&[bytes]) else { return };
    for spec in perfuse_tables::TABLES {
        let Ok(Some(batches)) = profile.table(spec.name, true) else { continue };
        let Ok(batches) = batches.collect::<Result<Vec<_>, StreamError>>() else { continue };
        if batches.iter().all(|batch| batch.num_rows() == 0) {
            continue;
        }
        let (schema, mut file) = (batches[0].schema(), Vec::new());
        let rows = batches.iter().cloned().map(Ok);
        let num_rows = parquet_file::write(spec, schema, rows, &mut file).expect("the table can be written");
        let (name, range, sum) = (spec.name, 0..file.len(), crc(&file));
        let source = Arc::new(Source::from_bytes("written", file).expect("bytes are a source"));
        let table = ParquetTable::open(spec, &source, range, sum).expect("the table can be opened");
        assert_eq!(table.num_rows, num_rows, "rows of {name}");
        let read = table.rows(None, BATCH_ROWS).expect("rows can be read");
        let read: Vec<_> = read.map(|batch| batch.expect("a batch can be read")).collect();
        assert_eq!(read.iter().map(|batch| batch.num_rows() as u64).sum::<u64>(), num_rows, "rows of {name}");
        if let ([written], [read]) = (batches.as_slice(), read.as_slice()) {
            for (field, (before, after)) in
                written.schema().fields().iter().zip(written.columns().iter().zip(read.columns()))
            {
                assert!(before == after, "column {} of {name} is another", field.name());
            }
        }
    }
}
