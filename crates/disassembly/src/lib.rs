//! Machine code as instructions: text in the form of `objdump -d`, control flow, targets. Knows no file format.
//!
//! A [`Disassembler`] returns one [`Instruction`] at a time and allocates nothing from the size of the code. Bytes that are no
//! instruction are instructions of flow [`Flow::Bad`], so every byte of the code belongs to exactly one.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::panic
    )
)]

mod aarch64;
mod bytes;
#[cfg(test)]
mod tests;
mod x86;

/// An instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// 64-bit x86.
    X86_64,
    /// 32-bit x86.
    X86,
    /// 64-bit Arm, little-endian instructions.
    Aarch64,
    /// Any other: its code is listed as bytes.
    Other,
}

impl Architecture {
    /// The instruction set of an ELF `e_machine`.
    #[must_use]
    pub fn of_elf_machine(machine: u16) -> Self {
        match machine {
            62 => Self::X86_64,
            3 => Self::X86,
            183 => Self::Aarch64,
            _ => Self::Other,
        }
    }

    /// Its name, as perf and Linux write it; `bytes` where code is listed as bytes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::X86 => "x86",
            Self::Aarch64 => "aarch64",
            Self::Other => "bytes",
        }
    }
}

/// How x86 instructions are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Syntax {
    /// AT&T, as `objdump -d` and perf.
    #[default]
    Att,
    /// Intel.
    Intel,
}

/// What follows an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The next instruction.
    Next,
    /// The target alone.
    Jump,
    /// The target, or the next instruction.
    Branch,
    /// An address in a register or in memory.
    IndirectJump,
    /// The target, which returns to the next instruction.
    Call,
    /// An address in a register or in memory, which returns to the next instruction.
    IndirectCall,
    /// What follows the call: an address on the stack or in a register.
    Return,
    /// Nothing: it traps.
    Trap,
    /// The bytes are not an instruction.
    Bad,
}

impl Flow {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Next,
        Self::Jump,
        Self::Branch,
        Self::IndirectJump,
        Self::Call,
        Self::IndirectCall,
        Self::Return,
        Self::Trap,
        Self::Bad,
    ];

    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Next => "next",
            Self::Jump => "jump",
            Self::Branch => "branch",
            Self::IndirectJump => "indirect_jump",
            Self::Call => "call",
            Self::IndirectCall => "indirect_call",
            Self::Return => "return",
            Self::Trap => "trap",
            Self::Bad => "bad",
        }
    }
}

/// What is needed of an instruction beside its text: where it is, and what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Offset from the start of the code.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
    /// What follows it.
    pub flow: Flow,
    /// Address that it jumps to, calls, loads or refers to relative to itself; `None` where it has none in its bytes.
    pub target: Option<u64>,
    /// A 64-bit constant that may be an address.
    pub constant: Option<u64>,
}

/// Decodes code, one instruction after the other.
#[allow(missing_debug_implementations, reason = "the decoders have no useful one")]
pub struct Disassembler<'a> {
    decoder: Decoder<'a>,
}

enum Decoder<'a> {
    X86(Box<x86::X86Decoder<'a>>),
    Aarch64(aarch64::Aarch64Decoder<'a>),
    Bytes(bytes::ByteLister<'a>),
}

impl<'a> Disassembler<'a> {
    /// Decodes code that is, or was, at an address.
    #[must_use]
    pub fn new(architecture: Architecture, code: &'a [u8], address: u64, syntax: Syntax) -> Self {
        let decoder = match architecture {
            Architecture::X86_64 => Decoder::X86(Box::new(x86::X86Decoder::new(64, code, address, syntax))),
            Architecture::X86 => Decoder::X86(Box::new(x86::X86Decoder::new(32, code, address, syntax))),
            Architecture::Aarch64 => Decoder::Aarch64(aarch64::Aarch64Decoder::new(code, address)),
            Architecture::Other => Decoder::Bytes(bytes::ByteLister::new(code)),
        };
        Self { decoder }
    }

    /// The next instruction, whose text replaces what `text` contained; `None` at the end of the code.
    pub fn next(&mut self, text: &mut String) -> Option<Instruction> {
        text.clear();
        match &mut self.decoder {
            Decoder::X86(decoder) => decoder.next(text),
            Decoder::Aarch64(decoder) => decoder.next(text),
            Decoder::Bytes(lister) => lister.next(text),
        }
    }
}
