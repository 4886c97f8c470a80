//! What the disassembler promises for any bytes: no panic, and every byte belongs to exactly one instruction.

use perfuse_disassembly::{Architecture, Disassembler, Syntax};

/// ELF machines by the first byte of an input.
const MACHINES: [u16; 4] = [62, 183, 3, 0];

/// Disassembles bytes. The first byte selects machine and syntax, the next eight are the address.
///
/// # Panics
/// When instructions do not follow each other to the end of the code.
pub(crate) fn disassemble(bytes: &[u8]) {
    let Some((&[choice, ref address @ ..], code)) = bytes.split_first_chunk::<9>() else { return };
    let architecture = Architecture::of_elf_machine(MACHINES[usize::from(choice % 4)]);
    let syntax = if choice & 4 == 0 { Syntax::Att } else { Syntax::Intel };
    let mut address_bytes = [0; 8];
    address_bytes.copy_from_slice(address);
    let mut decoder = Disassembler::new(architecture, code, u64::from_le_bytes(address_bytes), syntax);
    let (mut end, mut text) = (0, String::new());
    while let Some(one) = decoder.next(&mut text) {
        assert_eq!(one.offset, end, "an instruction starts where the one before it ends");
        assert!(one.size > 0 && !text.is_empty() && !text.contains('\n'));
        end += one.size;
    }
    assert_eq!(end, code.len(), "the last instruction ends with the code");
}
