//! The rules of a row of `unwind_rows`: how to compute the registers of a frame's caller.

use std::fmt;

/// Base of an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// The stack pointer in this frame.
    Sp,
    /// The frame pointer in this frame.
    Fp,
    /// The canonical frame address: the stack pointer before the call.
    Cfa,
    /// Another register, by its DWARF number. Its value is known only in the innermost frame.
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

/// `base + offset`, or the value in memory at that address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Expression {
    /// Base of the offset.
    pub base: Base,
    /// Offset in bytes.
    pub offset: i64,
    /// Whether the value is read from memory at that address.
    pub deref: bool,
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { base, offset, deref } = self;
        if *deref { write!(f, "[{base}{offset:+}]") } else { write!(f, "{base}{offset:+}") }
    }
}

/// Rule for the caller's value of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recover {
    /// The register is unchanged.
    Same,
    /// The value is in memory, at an offset from the CFA that the file's header defines for all functions.
    Fixed(i8),
    /// The value of an expression.
    At(Expression),
}

impl Recover {
    /// The expression; `None` for an unchanged register.
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

/// The rules of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recovery {
    /// There is no caller: unwinding ends here.
    Outermost,
    /// There is a caller.
    Caller {
        /// The CFA.
        cfa: Expression,
        /// The caller's frame pointer.
        fp: Recover,
        /// The return address.
        ra: Recover,
        /// Whether the return address is signed, so that the signature must be removed (aarch64).
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
