//! Debug entries whose addresses are the size of an ELF header too high.

use super::{Index, NONE};
use crate::consts::{ELF32_HEADER_SKEW, ELF64_HEADER_SKEW};
use crate::producer::Producer;
use perfuse_recording::{Source, machine_pointer_bytes};

/// Whether the producer adds the size of an ELF header to its entries' addresses: no record's first entry lies before
/// that (later ones may be unreadable in V8's corrupted records), and either the producer is known for it, or entries lie past
/// the end of their code, or most records begin exactly there.
pub(super) fn of(index: &Index, source: &Source) -> u64 {
    let pointer = machine_pointer_bytes(index.header.elf_mach);
    let skew = if pointer == Some(4) { ELF32_HEADER_SKEW } else { ELF64_HEADER_SKEW };
    let (mut records, mut exact, mut past) = (0u32, 0u32, false);
    for code in index.codes.iter().filter(|code| code.debug != NONE && code.size > 0).take(256) {
        let Some((_, info)) = index.debug_info(source, code) else { continue };
        let mut entries = info.walk().map_while(Result::ok);
        let Some(first) = entries.next() else { continue };
        let offset = first.fixed.code_addr.wrapping_sub(code.start);
        if !(skew..=code.size.saturating_add(skew)).contains(&offset) {
            return 0;
        }
        records = records.saturating_add(1);
        exact = exact.saturating_add(u32::from(offset == skew));
        let end = code.start.saturating_add(code.size);
        past |= entries.any(|entry| entry.fixed.code_addr > end && entry.fixed.line > 0);
    }
    let known = index.producer == Producer::V8 || source.path.contains("llvm-IR-jit-");
    if records > 0 && (known || past || exact.saturating_mul(2) >= records) { skew } else { 0 }
}
