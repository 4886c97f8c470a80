//! Debug entries whose addresses are the size of an ELF header too high.

use super::{Index, NONE};
use crate::jitdump::consts::{ELF32_HEADER_SKEW, ELF64_HEADER_SKEW};
use crate::jitdump::lines::{self, Target};
use crate::jitdump::producer::Producer;
use crate::{Source, machine_pointer_bytes};

/// Whether the producer adds the size of an ELF header to its entries' addresses: no entry of any record lies before
/// that, and either the producer is known for it, or entries lie past the end of their code, or most begin exactly there.
pub(super) fn of(index: &Index, source: &Source) -> u64 {
    let pointer = machine_pointer_bytes(index.header.elf_mach);
    let skew = if pointer == Some(4) { ELF32_HEADER_SKEW } else { ELF64_HEADER_SKEW };
    let mut rows = Vec::new();
    let (mut records, mut exact, mut past) = (0u32, 0u32, false);
    for code in index.codes.iter().filter(|code| code.debug != NONE && code.size > 0).take(256) {
        let Some((_, info)) = index.debug_info(source, code) else { continue };
        let habits = lines::decode(
            &info,
            &Target { skew: 0, may_be_corrupt: false, size: u64::MAX >> 1, path: None, ..index.target(code) },
            &mut rows,
        );
        let Some(least) = rows.iter().map(|row| row.code_offset).min() else { continue };
        if habits.before > 0 || least < skew {
            // Corrupted names make V8's entries unreadable here; they say nothing either way.
            if index.producer == Producer::V8 { continue } else { return 0 }
        }
        records = records.saturating_add(1);
        exact = exact.saturating_add(u32::from(least == skew));
        past |= rows.iter().any(|row| row.code_offset > code.size && row.line > 0);
    }
    let known = index.producer == Producer::V8 || source.path.contains("llvm-IR-jit-");
    if records > 0 && (known || past || exact.saturating_mul(2) >= records) { skew } else { 0 }
}
