//! What a row of `unwind_rows` says, as a value: how the registers of a frame's caller are found.

use std::fmt;

/// What an offset is counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// The stack pointer, in this frame.
    Sp,
    /// The frame pointer, in this frame.
    Fp,
    /// The canonical frame address: the stack pointer before the call.
    Cfa,
    /// Another register, by its DWARF number; known in the innermost frame only.
    Register(u32),
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sp => f.write_str("sp"),
            Self::Fp => f.write_str("fp"),
            Self::Cfa => f.write_str("cfa"),
            Self::Register(number) => write!(f, "r{number}"),
        }
    }
}

/// `base + offset`, or what memory has there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Expression {
    /// What the offset is counted from.
    pub base: Base,
    /// Bytes.
    pub offset: i64,
    /// Whether the value is read from memory there.
    pub deref: bool,
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { base, offset, deref } = self;
        if *deref { write!(f, "[{base}{offset:+}]") } else { write!(f, "{base}{offset:+}") }
    }
}

/// How the caller's value of a register is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recover {
    /// It is in the register still.
    Same,
    /// It is in memory, as far from the CFA as the header says for all functions.
    Fixed(i8),
    /// A place, or a value.
    At(Expression),
}

impl Recover {
    /// The place or value; `None` where it is in the register still.
    #[must_use]
    pub fn expression(self) -> Option<Expression> {
        match self {
            Self::Same => None,
            Self::Fixed(offset) => Some(Expression { base: Base::Cfa, offset: offset.into(), deref: true }),
            Self::At(expression) => Some(expression),
        }
    }
}

impl fmt::Display for Recover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.expression() {
            Some(expression) => expression.fmt(f),
            None => f.write_str("same"),
        }
    }
}

/// What a row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recovery {
    /// There is no caller: unwinding ends here.
    Outermost,
    /// There is one.
    Caller {
        /// The CFA.
        cfa: Expression,
        /// The caller's frame pointer.
        fp: Recover,
        /// The return address.
        ra: Recover,
        /// Whether the return address is signed, and the signature has to be taken off (aarch64).
        ra_mangled: bool,
    },
}

/// Rule for finding the caller of a frame, and how the function of the frame was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameRecovery {
    /// How registers of the caller are found.
    pub recovery: Recovery,
    /// Whether a signal entered the function: its return address is the interrupted instruction, not one after a call.
    pub is_signal: bool,
}

/// `.eh_frame` recorded with JIT code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeUnwinding<'a> {
    /// Bytes of `.eh_frame`.
    pub eh_frame: &'a [u8],
    /// Address that pointers relative to `.eh_frame` assume it has.
    pub address: u64,
    /// Address of the code when it was emitted.
    pub code_address: u64,
    /// Whether it describes this code alone; else it describes all code of an object file, by address.
    pub is_own: bool,
    /// Whether numbers in it are big-endian.
    pub big_endian: bool,
}

/// Copy of the innermost part of a thread's stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserStack<'a> {
    /// Bytes from the stack pointer up.
    pub bytes: &'a [u8],
    /// Whether numbers in it are big-endian.
    pub big_endian: bool,
}
