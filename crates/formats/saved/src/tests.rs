use arrow_array::{ArrayRef, UInt32Array};
use arrow_schema::DataType;
use bytes::Bytes;
use parquet::file::reader::ChunkReader;
use perfuse_tables::stacks;

use super::*;
use crate::parquet_file::ROW_GROUP_ROWS;
use crate::row_groups::VerifiedBytes;

#[test]
fn other_files_are_not_recognized() {
    assert!(!container::begins(
        b"PK\x03\x04 something else, longer than a header with the name of its member"
    ));
    let empty = Arc::new(Source::from_bytes("x.perfuse", Vec::new()).unwrap());
    assert!(SavedProfile::open(empty).is_err());
}

/// The sums of parts in a row, and the rest.
#[test]
fn parts_are_verified_when_they_are_read() {
    let bytes = Bytes::from_static(b"first part, second part, and the rest");
    let parts = [(10u64, crc(&bytes[..10])), (23, crc(&bytes[10..23]))];
    let opened = VerifiedBytes::new(bytes.clone(), Some(&parts), crc(&bytes)).unwrap();
    assert_eq!(opened.get_bytes(4, 30).unwrap(), bytes[4..34]);
    assert!(opened.get_bytes(30, 8).is_err());
    assert!(opened.get_bytes(u64::MAX, 2).is_err());
    assert!(VerifiedBytes::new(bytes.clone(), Some(&parts), crc(&bytes) ^ 1).is_none());
    for wrong in [[(10, parts[0].1 ^ 1), parts[1]], [(11, parts[0].1), parts[1]], [parts[1], parts[0]]] {
        assert!(VerifiedBytes::new(bytes.clone(), Some(&wrong), crc(&bytes)).is_none());
    }
    for at in 0..bytes.len() {
        let mut changed = bytes.to_vec();
        changed[at] ^= 4;
        let opened = VerifiedBytes::new(Bytes::from(changed), Some(&parts), crc(&bytes));
        assert_eq!(opened.is_some(), at < 23, "what is in no part is verified at once");
        let Some(opened) = opened else { continue };
        assert_eq!(opened.get_bytes(0, 10).is_ok(), at >= 10);
        assert_eq!(opened.get_bytes(12, 2).is_ok(), at < 10);
        assert!(opened.get_bytes(9, 2).is_err());
        assert_eq!(opened.get_read(11).is_ok(), at < 10);
        assert!(opened.get_bytes(23, 14).is_ok());
    }
}

/// A table of several row groups: rows of some are the same as of all, and a changed byte is an error of those that have it.
#[test]
fn row_groups_are_read_alone() {
    let (spec, num_rows) = (&stacks::SPEC, 300_000u32);
    let schema = spec.schema();
    let columns = schema.fields().iter().map(|field| -> ArrayRef {
        let rows = 0..num_rows;
        match (field.data_type(), field.name().as_str()) {
            (DataType::UInt32, "stack_id") => Arc::new(UInt32Array::from_iter_values(rows)),
            (DataType::UInt32, "parent_stack_id") => {
                Arc::new(UInt32Array::from_iter(rows.map(|row| row.checked_sub(1))))
            }
            (DataType::UInt32, _) => {
                Arc::new(UInt32Array::from_iter_values(rows.map(|row| row.wrapping_mul(row) % 977)))
            }
            (kind, _) => arrow_array::new_null_array(kind, num_rows as usize),
        }
    });
    let batch = RecordBatch::try_new(spec.schema(), columns.collect()).unwrap();
    let parts = (0..3).map(|part| Ok(batch.slice(part * 100_000, 100_000)));
    let mut file = Vec::new();
    assert_eq!(
        parquet_file::write(spec, spec.schema(), ROW_GROUP_ROWS, parts, &mut file).unwrap(),
        u64::from(num_rows)
    );
    let sum = crc(&file);
    let open = |file: Vec<u8>| {
        let range = 0..file.len();
        ParquetTable::open(spec, &Arc::new(Source::from_bytes("stacks", file).unwrap()), range, sum)
    };
    let rows = |table: &ParquetTable, rows: Range<u64>| {
        let batches = table.rows(Some(rows), BATCH_ROWS)?.collect::<Result<Vec<_>, _>>()?;
        Ok::<_, TableError>(batches.iter().map(RecordBatch::num_rows).sum::<usize>())
    };
    let table = open(file.clone()).unwrap();
    let read = table.rows(Some(122_870..122_890), 20).unwrap().next().unwrap().unwrap();
    assert_eq!(read, batch.slice(122_870, 20));
    let mut readable = [0; 3];
    let num_changed = 40;
    for number in 0..num_changed {
        let at = file.len() / num_changed * number;
        let mut changed = file.clone();
        changed[at] ^= 0x20;
        let Ok(table) = open(changed) else { continue };
        let first = [0, 130_000, 250_000u64];
        let found = first.map(|first| rows(&table, first..first + 10).is_ok());
        assert_eq!(found.iter().filter(|is_right| !**is_right).count(), 1, "one row group has byte {at}");
        assert!(rows(&table, 0..u64::from(num_rows)).is_err());
        for (count, is_right) in readable.iter_mut().zip(found) {
            *count += usize::from(is_right);
        }
    }
    assert!(readable.iter().all(|count| *count > num_changed / 4), "{readable:?}");
}
