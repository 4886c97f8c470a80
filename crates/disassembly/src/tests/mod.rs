//! Tests of the decoders: every byte belongs to one instruction; texts as GNU objdump has them.

use proptest::prelude::*;

use crate::{Architecture, Disassembler, Flow, Instruction, Syntax};

fn listed(architecture: Architecture, code: &[u8], address: u64) -> Vec<(Instruction, String)> {
    let mut decoder = Disassembler::new(architecture, code, address, Syntax::Att);
    let (mut all, mut text) = (Vec::new(), String::new());
    while let Some(one) = decoder.next(&mut text) {
        all.push((one, text.clone()));
    }
    all
}

fn texts(architecture: Architecture, code: &[u8]) -> Vec<String> {
    listed(architecture, code, 0x1000).into_iter().map(|(_, text)| text).collect()
}

#[test]
fn x86_texts_are_those_of_objdump() {
    // objdump 2.40 -D -b binary -m i386:x86-64 --adjust-vma=0x1000
    let code = [
        0x55, 0x48, 0x89, 0xe5, 0x48, 0x8b, 0x04, 0x0b, 0xd1, 0xe9, 0x6b, 0xc0, 0x0c, 0xf3, 0xa4, 0xf2, 0xae,
        0x74, 0x02, 0xff, 0xd0, 0xe8, 0x00, 0x00, 0x00, 0x00, 0x6a, 0x10, 0xc3,
    ];
    let expected = [
        "push %rbp",
        "mov %rsp,%rbp",
        "mov (%rbx,%rcx,1),%rax",
        "shr %ecx",
        "imul $0xc,%eax,%eax",
        "rep movsb %ds:(%rsi),%es:(%rdi)",
        "repnz scas %es:(%rdi),%al",
        "je 1015",
        "call *%rax",
        "call 101a",
        "push $0x10",
        "ret",
    ];
    assert_eq!(texts(Architecture::X86_64, &code), expected);
}

#[test]
fn aarch64_texts_are_those_of_objdump() {
    // aarch64-linux-gnu-objdump 2.40 -D -b binary -m aarch64 --adjust-vma=0x1000
    let words: [u32; 6] = [0xa9bf_7bfd, 0x9400_0002, 0x5400_0062, 0x8b21_40c1, 0x3860_c822, 0xd65f_03c0];
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let all = listed(Architecture::Aarch64, &code, 0x1000);
    let texts: Vec<&str> = all.iter().map(|(_, text)| text.as_str()).collect();
    let expected = [
        "stp x29, x30, [sp, #-16]!",
        "bl 100c",
        "b.cs 1014",
        "add x1, x6, w1, uxtw",
        "ldrb w2, [x1, w0, sxtw]",
        "ret",
    ];
    assert_eq!(texts, expected);
    let flows: Vec<Flow> = all.iter().map(|(one, _)| one.flow).collect();
    assert_eq!(flows, [Flow::Next, Flow::Call, Flow::Branch, Flow::Next, Flow::Next, Flow::Return]);
}

#[test]
fn targets_and_constants() {
    // call 0x2000; mov 0x10(%rip),%rax; movabs $0x7f0011223344,%r10; jmp *%r10
    let code = [
        0xe8, 0xfb, 0x0f, 0, 0, 0x48, 0x8b, 0x05, 0x10, 0, 0, 0, 0x49, 0xba, 0x44, 0x33, 0x22, 0x11, 0, 0x7f,
        0, 0, 0x41, 0xff, 0xe2,
    ];
    let all = listed(Architecture::X86_64, &code, 0x1000);
    let facts: Vec<_> = all.iter().map(|(one, _)| (one.flow, one.target, one.constant)).collect();
    let expected = [
        (Flow::Call, Some(0x2000), None),
        (Flow::Next, Some(0x101c), None),
        (Flow::Next, None, Some(0x7f00_1122_3344)),
        (Flow::IndirectJump, None, None),
    ];
    assert_eq!(facts, expected);
}

#[test]
fn code_that_is_cut_is_listed_to_its_end() {
    assert_eq!(texts(Architecture::X86_64, &[0x90, 0xe8, 0]), ["nop", "(bad)", "(bad)"]);
    assert_eq!(texts(Architecture::Aarch64, &[0xc0, 0x03, 0x5f, 0xd6, 1, 2]), ["ret", ".byte 0x1, 0x2"]);
    assert_eq!(texts(Architecture::Other, &[1, 2, 3]), [".byte 0x1, 0x2, 0x3"]);
    assert!(texts(Architecture::X86_64, &[]).is_empty());
}

proptest! {
    #[test]
    fn every_byte_belongs_to_one_instruction(
        code in prop::collection::vec(any::<u8>(), 0..300),
        address in prop_oneof![any::<u64>(), Just(0), Just(u64::MAX), Just(0x7f00_0000_0000)],
        machine in prop_oneof![Just(62), Just(3), Just(183), any::<u16>()],
    ) {
        for syntax in [Syntax::Att, Syntax::Intel] {
            let mut decoder = Disassembler::new(Architecture::of_elf_machine(machine), &code, address, syntax);
            let (mut end, mut text) = (0, String::new());
            while let Some(one) = decoder.next(&mut text) {
                prop_assert_eq!(one.offset, end);
                prop_assert!(one.size > 0 && !text.is_empty() && !text.contains('\n'));
                end += one.size;
            }
            prop_assert_eq!(end, code.len());
        }
    }
}
