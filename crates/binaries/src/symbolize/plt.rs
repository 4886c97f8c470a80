//! The stubs of a procedure linkage table (PLT).

use std::ops::Range;

use object::read::elf::{ElfFile, FileHeader, Rela, SectionHeader, Sym};
use object::{Endianness, SectionIndex, elf};

use super::elf_symbols::strings_range;

/// The stubs through which a module calls functions of others, named after their target.
///
/// Symbol tables do not have them. Each stub jumps through a slot that the loader fills, and the relocation for that
/// slot names the function; so stubs are read as code, which works for `.plt`, `.plt.got` and `.plt.sec` alike.
#[derive(Debug, Default)]
pub(crate) struct PltStubs {
    /// By address.
    stubs: Vec<PltStub>,
    /// Range of the file with the names.
    pub(crate) strings: Range<usize>,
}

/// A stub: its range of addresses, and its target.
#[derive(Clone, Copy, Debug)]
struct PltStub {
    address: u64,
    end: u64,
    target: StubTarget,
}

/// The function that a stub calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StubTarget {
    /// A dynamic symbol, by the offset of its name in the strings.
    Dynamic(u32),
    /// One of several functions of the module itself, by the address of the function that selects it (an IFUNC).
    Resolver(u64),
    /// The loader, which finds a function when it is first called: what precedes the stubs of `.plt`, named as the section.
    Loader,
}

/// Address of the slot that a stub jumps through, and the function that the loader stores there.
type PltSlot = (u64, StubTarget);

impl PltStubs {
    /// Reads the stubs of x86-64 and AArch64; other machines have none here.
    pub(crate) fn read<Elf: FileHeader<Endian = Endianness>>(file: &ElfFile<'_, Elf>) -> Self {
        let endian = file.endian();
        let machine = file.elf_header().e_machine(endian);
        let slots = slots(file);
        let mut stubs = Vec::new();
        for section in file.elf_section_table().iter() {
            let name = file.elf_section_table().section_name(endian, section).unwrap_or_default();
            let Ok(code) = section.data(endian, file.data()) else { continue };
            let start: u64 = section.sh_addr(endian).into();
            if !matches!(name, b".plt" | b".plt.got" | b".plt.sec")
                || start.checked_add(code.len() as u64).is_none()
            {
                continue;
            }
            let of_section = match machine {
                elf::EM_X86_64 => x86_64_stubs(start, code, &slots),
                elf::EM_AARCH64 => aarch64_stubs(start, code, &slots),
                _ => continue,
            };
            let first =
                of_section.first().map_or(start.saturating_add(code.len() as u64), |stub| stub.address);
            if name == b".plt" && first > start {
                stubs.push(PltStub { address: start, end: first, target: StubTarget::Loader });
            }
            stubs.extend(of_section);
        }
        stubs.sort_unstable_by_key(|stub| stub.address);
        Self { stubs, strings: strings_range(file, file.elf_dynamic_symbol_table()).unwrap_or_default() }
    }

    /// First address after the stub that contains an address.
    pub(crate) fn end(&self, address: u64) -> Option<u64> {
        let after = self.stubs.partition_point(|stub| stub.address <= address);
        let stub = self.stubs.get(after.checked_sub(1)?)?;
        (address < stub.end).then_some(stub.end)
    }

    /// The stub that contains an address: its first address and its target.
    pub(crate) fn find(&self, address: u64) -> Option<(u64, StubTarget)> {
        let after = self.stubs.partition_point(|stub| stub.address <= address);
        let stub = self.stubs.get(after.checked_sub(1)?)?;
        (address < stub.end).then_some((stub.address, stub.target))
    }
}

/// The slots that relocations fill with functions, sorted.
fn slots<Elf: FileHeader<Endian = Endianness>>(file: &ElfFile<'_, Elf>) -> Vec<PltSlot> {
    let endian = file.endian();
    let machine = file.elf_header().e_machine(endian);
    let names = file.elf_dynamic_symbol_table();
    let mut slots: Vec<PltSlot> = Vec::new();
    for section in file.elf_section_table().iter() {
        let Ok(Some((relocations, symbols))) = section.rela(endian, file.data()) else { continue };
        let is_dynamic = symbols == names.section() && symbols != SectionIndex(0);
        slots.extend(relocations.iter().filter_map(|relocation| {
            let kind = relocation.r_type(endian, false);
            let is_resolver = (machine == elf::EM_X86_64 && kind == elf::R_X86_64_IRELATIVE)
                || (machine == elf::EM_AARCH64 && kind == elf::R_AARCH64_IRELATIVE);
            let target = if is_resolver {
                StubTarget::Resolver(Into::<i64>::into(relocation.r_addend(endian)) as u64)
            } else {
                let symbol = names.symbol(relocation.symbol(endian, false).filter(|_| is_dynamic)?).ok()?;
                StubTarget::Dynamic(symbol.st_name(endian))
            };
            Some((relocation.r_offset(endian).into(), target))
        }));
    }
    slots.sort_unstable();
    slots
}

fn target(slots: &[PltSlot], slot: u64) -> Option<StubTarget> {
    slots.binary_search_by_key(&slot, |&(address, _)| address).ok().and_then(|at| Some(slots.get(at)?.1))
}

/// `jmp *slot(%rip)`, after `endbr64` and a `bnd` prefix where there are any. A stub has 16 bytes; 8 where only a `nop` of two
/// bytes follows, as the stubs of IFUNCs in static programs, whose section states no size.
fn x86_64_stubs(start: u64, code: &[u8], slots: &[PltSlot]) -> Vec<PltStub> {
    const STEP: usize = 8;
    let stub = |index: usize| {
        let at = index.checked_mul(STEP)?;
        let address = start.checked_add(at as u64)?;
        let entry = code.get(at..)?;
        let bare = entry.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(entry);
        let jump = bare.strip_prefix(&[0xf2]).unwrap_or(bare).strip_prefix(&[0xff, 0x25])?;
        let (displacement, rest) = jump.split_first_chunk::<4>()?;
        let next = address.checked_add(entry.len().checked_sub(rest.len())? as u64)?;
        let slot = next.wrapping_add_signed(i32::from_le_bytes(*displacement).into());
        let len = if rest.starts_with(&[0x66, 0x90]) { STEP } else { STEP.checked_mul(2)? };
        let end = address.checked_add(len.min(entry.len()) as u64)?;
        Some(PltStub { address, end, target: target(slots, slot)? })
    };
    (0..code.len() / STEP).filter_map(stub).collect()
}

/// `adrp x16, page; ldr x17, [x16, #offset]`, after `bti c` where there is one.
fn aarch64_stubs(start: u64, code: &[u8], slots: &[PltSlot]) -> Vec<PltStub> {
    const BTI_C: u32 = 0xd503_245f;
    let words: Vec<u32> = code.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let mut stubs: Vec<PltStub> = Vec::new();
    let mut before = 0;
    let addresses = (0..).map(|index: u64| start.saturating_add(index.saturating_mul(4)));
    for ((&adrp, &ldr), at) in words.iter().zip(words.iter().skip(1)).zip(addresses) {
        let has_bti = std::mem::replace(&mut before, adrp) == BTI_C;
        if adrp & 0x9f00_001f != 0x9000_0010 || ldr & 0xffc0_03ff != 0xf940_0211 {
            continue;
        }
        let pages = (adrp >> 5 & 0x7_ffff) << 2 | adrp >> 29 & 3;
        // 21 bits with a sign, in pages of 4 KiB.
        let distance = i64::from((pages << 11) as i32 >> 11) << 12;
        let offset = u64::from(ldr >> 10 & 0xfff) << 3;
        let slot = (at & !0xfff).wrapping_add_signed(distance).wrapping_add(offset);
        let Some(target) = target(slots, slot) else { continue };
        let (address, size) = if has_bti { (at.saturating_sub(4), 24) } else { (at, 16) };
        stubs.push(PltStub { address, end: address.saturating_add(size), target });
    }
    stubs
}

#[cfg(test)]
mod tests {
    use super::{StubTarget, aarch64_stubs, x86_64_stubs};

    #[test]
    fn aarch64_stubs_lead_to_their_slots() {
        // As GNU ld writes them for `puts` in a program: adrp x16, 0x1f000; ldr x17, [x16, #0xfb0]; add; br x17.
        let words: [u32; 5] = [0xd503_245f, 0xf000_00f0, 0xf947_da11, 0x913e_c210, 0xd61f_0220];
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let stubs = aarch64_stubs(0x5d0, &code, &[(0x1ffb0, StubTarget::Dynamic(7))]);
        assert_eq!(stubs.len(), 1);
        assert_eq!((stubs[0].address, stubs[0].end, stubs[0].target), (0x5d0, 0x5e8, StubTarget::Dynamic(7)));
    }

    #[test]
    fn a_slot_without_a_relocation_has_no_name() {
        let mut code = vec![0xff, 0x25, 0x0a, 0, 0, 0];
        code.resize(16, 0x90);
        assert!(x86_64_stubs(0x1000, &code, &[(0x1018, StubTarget::Resolver(1))]).is_empty());
        assert_eq!(x86_64_stubs(0x1000, &code, &[(0x1010, StubTarget::Resolver(1))]).len(), 1);
    }

    #[test]
    fn stubs_of_8_bytes_are_recognised_by_what_follows_the_jump() {
        // As GNU ld writes them for IFUNCs in a static program, and the lazy stubs of a dynamic one.
        let short = [0xff, 0x25, 0xe2, 0x3f, 0x0a, 0, 0x66, 0x90];
        let slots = [(0xa5000, StubTarget::Resolver(1)), (0xa5008, StubTarget::Resolver(2))];
        let stubs = x86_64_stubs(0x1018, &[short, short].concat(), &slots);
        let found: Vec<_> = stubs.iter().map(|stub| (stub.address, stub.end, stub.target)).collect();
        let expected = [(0x1018, 0x1020, StubTarget::Resolver(1)), (0x1020, 0x1028, StubTarget::Resolver(2))];
        assert_eq!(found, expected);
        let lazy = [0xff, 0x25, 0xca, 0x2f, 0, 0, 0x68, 0, 0, 0, 0, 0xe9, 0xe0, 0xff, 0xff, 0xff];
        let stubs = x86_64_stubs(0x1030, &lazy, &[(0x4000, StubTarget::Dynamic(7))]);
        assert_eq!(stubs.iter().map(|stub| (stub.address, stub.end)).collect::<Vec<_>>(), [(0x1030, 0x1040)]);
    }
}
