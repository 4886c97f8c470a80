//! Sections made of what a JITDUMP tells of unwinding through its code.

use perfuse_binaries::eh_frame::{self, Registers, SectionBytes, UnwindFunction, UnwindTable};
use perfuse_formats::jitdump::JitDump;
use perfuse_formats::jitdump::consts::RecordTag;
use perfuse_formats::jitdump::records::UnwindingInfo;
use perfuse_formats::sframe::writer::SectionContents;
use perfuse_formats::{Position, Recording};
use perfuse_wire::Endian;

use super::synthesis::{LeftOut, of_table};

/// A section of the code that is there at the end of a dump, by the unwinding records before it; and what has no place in
/// it. `None` for a machine that SFrame is not defined for.
pub fn of_dump(dump: &JitDump, version: u8) -> Option<(SectionContents, Vec<LeftOut>)> {
    let index = dump.index();
    let (arch, registers) = match (index.header.elf_mach, index.endian) {
        // CPython writes no machine; what it has unwinding records for is amd64.
        (0 | 62, Endian::Little) => ("x86_64", Registers::X86_64),
        (183, Endian::Little) => ("aarch64", Registers::AARCH64),
        (183, Endian::Big) => ("aarch64_be", Registers::AARCH64),
        (22, Endian::Big) => ("s390x", Registers::S390X),
        _ => return None,
    };
    let endian = match index.endian {
        Endian::Little => eh_frame::RunTimeEndian::Little,
        Endian::Big => eh_frame::RunTimeEndian::Big,
    };
    let mut table = UnwindTable::default();
    let mut left_out = Vec::new();
    let unwinding = unwinding_records(dump);
    for code in index.codes.iter().filter(|code| code.retired == u64::MAX) {
        let before = unwinding.partition_point(|(offset, _)| *offset < code.offset);
        let Some((offset, record)) = before.checked_sub(1).map(|at| unwinding[at]) else { continue };
        // One record is about the code that follows it, and no other.
        let is_next = index.codes[..index.codes.partition_point(|other| other.offset < code.offset)].last();
        if is_next.is_some_and(|previous| previous.offset > offset) {
            continue;
        }
        let Some(raw) = index.record_at(dump.source(), offset, record) else { continue };
        let Ok(info) = UnwindingInfo::decode(raw.cursor()) else { continue };
        let (read, unread) =
            eh_frame::read(SectionBytes { data: info.parts().1, address: 0, endian, registers });
        left_out.extend(unread.into_iter().map(|unread| (Some(code.start), None, unread.why, true)));
        add(&mut table, &read, code.start, code.size);
    }
    let (contents, more) = of_table(&table, arch, version);
    left_out.extend(more);
    left_out.sort_by_key(|(function, row, ..)| (*function, *row));
    Some((contents, left_out))
}

/// Offset and index of each record.
fn unwinding_records(dump: &JitDump) -> Vec<(u64, u64)> {
    let name = RecordTag::JIT_CODE_UNWINDING_INFO.name();
    let mut at = Position::default();
    let records = std::iter::from_fn(|| dump.next_record(&mut at));
    records.filter(|record| Some(&*record.name) == name).map(|record| (record.offset, record.index)).collect()
}

/// Adds what was read of a piece of code. Producers lay code and record out in different ways, so its first function begins
/// where the code does.
fn add(table: &mut UnwindTable, read: &UnwindTable, start: u64, size: u64) {
    let Some(first) = read.functions.first().map(|function| function.start) else { return };
    for function in &read.functions {
        let offset = function.start.wrapping_sub(first);
        if let Some(left) = size.checked_sub(offset).filter(|left| *left > 0) {
            let size = function.size.min(u32::try_from(left).unwrap_or(u32::MAX));
            let moved = UnwindFunction { start: start.wrapping_add(offset), size, ..*function };
            table.push(moved, read.rows(function).iter().copied().filter(|row| row.start < size));
        }
    }
}
