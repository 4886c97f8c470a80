use std::ops::Range;

use object::read::elf::{ElfFile, FileHeader, Rela, SectionHeader, Sym};
use object::{Endianness, SectionIndex, elf};

use super::elf_symbols::strings_range;

/// The stubs through which a module calls functions of others, named after what they call.
///
/// Symbol tables do not have them. Each stub jumps through a slot that the loader fills, and the relocation for that
/// slot names the function; so stubs are read as code, which works for `.plt`, `.plt.got` and `.plt.sec` alike.
#[derive(Debug, Default)]
pub(crate) struct PltStubs {
    /// By address.
    stubs: Vec<Stub>,
    /// Where in the file the names are.
    pub(crate) strings: Range<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Stub {
    address: u64,
    end: u64,
    target: Target,
}

/// What a stub calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    /// A dynamic symbol, by where its name is in the strings.
    Dynamic(u32),
    /// A function of the module itself of which there are several, by the address of what chooses one (an IFUNC).
    Chosen(u64),
}

/// Address of the slot a stub jumps through, and what the loader puts there.
type Slot = (u64, Target);

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
            if machine == elf::EM_X86_64 {
                let entry_bytes = if Into::<u64>::into(section.sh_entsize(endian)) == 8 { 8 } else { 16 };
                stubs.extend(x86_64_stubs(start, code, entry_bytes, &slots));
            } else if machine == elf::EM_AARCH64 {
                stubs.extend(aarch64_stubs(start, code, &slots));
            }
        }
        stubs.sort_unstable_by_key(|stub| stub.address);
        Self { stubs, strings: strings_range(file, file.elf_dynamic_symbol_table()).unwrap_or_default() }
    }

    /// First address of the stub there, and what it calls.
    pub(crate) fn find(&self, address: u64) -> Option<(u64, Target)> {
        let after = self.stubs.partition_point(|stub| stub.address <= address);
        let stub = self.stubs.get(after.checked_sub(1)?)?;
        (address < stub.end).then_some((stub.address, stub.target))
    }
}

/// The slots that relocations fill with functions, sorted.
fn slots<Elf: FileHeader<Endian = Endianness>>(file: &ElfFile<'_, Elf>) -> Vec<Slot> {
    let endian = file.endian();
    let machine = file.elf_header().e_machine(endian);
    let names = file.elf_dynamic_symbol_table();
    let mut slots: Vec<Slot> = Vec::new();
    for section in file.elf_section_table().iter() {
        let Ok(Some((relocations, symbols))) = section.rela(endian, file.data()) else { continue };
        let is_dynamic = symbols == names.section() && symbols != SectionIndex(0);
        slots.extend(relocations.iter().filter_map(|relocation| {
            let kind = relocation.r_type(endian, false);
            let chosen = (machine == elf::EM_X86_64 && kind == elf::R_X86_64_IRELATIVE)
                || (machine == elf::EM_AARCH64 && kind == elf::R_AARCH64_IRELATIVE);
            let target = if chosen {
                Target::Chosen(Into::<i64>::into(relocation.r_addend(endian)) as u64)
            } else {
                let symbol = names.symbol(relocation.symbol(endian, false).filter(|_| is_dynamic)?).ok()?;
                Target::Dynamic(symbol.st_name(endian))
            };
            Some((relocation.r_offset(endian).into(), target))
        }));
    }
    slots.sort_unstable();
    slots
}

fn target(slots: &[Slot], slot: u64) -> Option<Target> {
    slots.binary_search_by_key(&slot, |&(address, _)| address).ok().map(|at| slots[at].1)
}

/// `jmp *slot(%rip)`, after `endbr64` and a `bnd` prefix where there are any.
fn x86_64_stubs(start: u64, code: &[u8], entry_bytes: usize, slots: &[Slot]) -> Vec<Stub> {
    let stub = |(index, entry): (usize, &[u8])| {
        let address = start + (index * entry_bytes) as u64;
        let bare = entry.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(entry);
        let jump = bare.strip_prefix(&[0xf2]).unwrap_or(bare).strip_prefix(&[0xff, 0x25])?;
        let (displacement, rest) = jump.split_first_chunk::<4>()?;
        let next = address + (entry.len() - rest.len()) as u64;
        let slot = next.wrapping_add_signed(i32::from_le_bytes(*displacement).into());
        Some(Stub { address, end: address + entry.len() as u64, target: target(slots, slot)? })
    };
    code.chunks_exact(entry_bytes).enumerate().filter_map(stub).collect()
}

/// `adrp x16, page; ldr x17, [x16, #offset]`, after `bti c` where there is one.
fn aarch64_stubs(start: u64, code: &[u8], slots: &[Slot]) -> Vec<Stub> {
    const BTI_C: u32 = 0xd503_245f;
    let words: Vec<u32> = code.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let mut stubs: Vec<Stub> = Vec::new();
    for (index, pair) in words.windows(2).enumerate() {
        let (adrp, ldr) = (pair[0], pair[1]);
        if adrp & 0x9f00_001f != 0x9000_0010 || ldr & 0xffc0_03ff != 0xf940_0211 {
            continue;
        }
        let pages = (adrp >> 5 & 0x7_ffff) << 2 | adrp >> 29 & 3;
        // 21 bits with a sign, in pages of 4 KiB.
        let distance = i64::from((pages << 11) as i32 >> 11) << 12;
        let at = start + index as u64 * 4;
        let slot = (at & !0xfff).wrapping_add_signed(distance).wrapping_add(u64::from(ldr >> 10 & 0xfff) * 8);
        let Some(target) = target(slots, slot) else { continue };
        let has_bti = index > 0 && words[index - 1] == BTI_C;
        let address = if has_bti { at - 4 } else { at };
        stubs.push(Stub { address, end: address + if has_bti { 24 } else { 16 }, target });
    }
    stubs
}

#[cfg(test)]
mod tests {
    use super::{Target, aarch64_stubs, x86_64_stubs};

    #[test]
    fn aarch64_stubs_lead_to_their_slots() {
        // As GNU ld writes them for `puts` in a program: adrp x16, 0x1f000; ldr x17, [x16, #0xfb0]; add; br x17.
        let words: [u32; 5] = [0xd503_245f, 0xf000_00f0, 0xf947_da11, 0x913e_c210, 0xd61f_0220];
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let stubs = aarch64_stubs(0x5d0, &code, &[(0x1ffb0, Target::Dynamic(7))]);
        assert_eq!(stubs.len(), 1);
        assert_eq!((stubs[0].address, stubs[0].end, stubs[0].target), (0x5d0, 0x5e8, Target::Dynamic(7)));
    }

    #[test]
    fn a_slot_without_a_relocation_names_nothing() {
        let mut code = vec![0xff, 0x25, 0x0a, 0, 0, 0];
        code.resize(16, 0x90);
        assert!(x86_64_stubs(0x1000, &code, 16, &[(0x1018, Target::Chosen(1))]).is_empty());
        assert_eq!(x86_64_stubs(0x1000, &code, 16, &[(0x1010, Target::Chosen(1))]).len(), 1);
    }
}
