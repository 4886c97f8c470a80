//! Unwind tables in memory: functions, and rows that state how a caller is found from each of their instructions.

use std::fmt;

use perfuse_tables::{Base, Expression, Recover, Recovery};

/// Functions and their rows, from `.eh_frame` or from another source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnwindTable {
    /// Functions.
    pub functions: Vec<UnwindFunction>,
    /// Rows of all functions, function by function.
    pub rows: Vec<UnwindRow>,
}

/// A function with unwind rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnwindFunction {
    /// First address.
    pub start: u64,
    /// Size in bytes.
    pub size: u32,
    /// Size in bytes of the block of code that repeats; 0 where none does.
    pub repeat_bytes: u8,
    /// Whether the kernel enters it to deliver a signal.
    pub is_signal: bool,
    /// Whether return addresses are signed with key B (aarch64).
    pub is_key_b: bool,
    /// Whether its instructions in `.eh_frame` remember a state while another is remembered.
    pub nests_states: bool,
    /// Offset of its entry in the section or file it was read from.
    pub entry_offset: u64,
    /// Index of its first row.
    pub first_row: u32,
    /// Number of its rows.
    pub num_rows: u32,
}

/// How to unwind from an offset of a function up to the start of the next row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnwindRow {
    /// First offset it applies to: bytes from the start of the function, or of the block that repeats.
    pub start: u32,
    /// How the caller is found there.
    pub rule: RowRule,
}

/// How a row finds the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowRule {
    /// How the caller is found, or that there is none.
    Recovery(Recovery),
    /// The rows of a PLT in one expression: in each block of code the CFA moves once.
    Plt(PltRule),
    /// A rule that a row cannot represent.
    Unrepresentable(Unrepresentable),
}

/// `sp + offset + ((pc & mask) >= moves_at) * step`: how linkers describe PLTs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PltRule {
    /// CFA at the start of a block, from the stack pointer.
    pub offset: i64,
    /// Which bits of an address are its offset in the block.
    pub mask: u8,
    /// Offset in the block from which the CFA is `step` bytes further away.
    pub moves_at: u8,
    /// Change of the CFA, in bytes.
    pub step: i64,
    /// Where the return address is.
    pub ra: Recover,
    /// Where the frame pointer is.
    pub fp: Recover,
}

/// Why a rule cannot be represented in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unrepresentable {
    /// The CFA is an expression other than a register and an offset.
    CfaExpression,
    /// The return address is in another register than the ABI's.
    ReturnColumn,
    /// The return address is found by an expression.
    RaExpression,
    /// The return address is a distance from the CFA, not what memory has there.
    RaValue,
    /// The frame pointer is found by an expression.
    FpExpression,
    /// The frame pointer is a distance from the CFA, not what memory has there.
    FpValue,
    /// Its bytes are not valid.
    Invalid,
}

impl Unrepresentable {
    /// A description for messages.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::CfaExpression => "a CFA that is an expression",
            Self::ReturnColumn => "a return address in another register than the ABI's",
            Self::RaExpression => "a return address that is an expression",
            Self::RaValue => "a return address that is a distance from the CFA",
            Self::FpExpression => "a frame pointer that is an expression",
            Self::FpValue => "a frame pointer that is a distance from the CFA",
            Self::Invalid => "a row that is not valid",
        }
    }
}

impl fmt::Display for Unrepresentable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl PltRule {
    /// The rule at an address.
    #[must_use]
    pub fn at(&self, pc: u64) -> Recovery {
        let moved = pc & u64::from(self.mask) >= u64::from(self.moves_at);
        self.recovery(moved)
    }

    /// The rule in the part of a block before (`moved` false) or after the CFA moves.
    #[must_use]
    pub fn recovery(&self, moved: bool) -> Recovery {
        let offset = self.offset.wrapping_add(if moved { self.step } else { 0 });
        let cfa = Expression { base: Base::Sp, offset, deref: false };
        Recovery::Caller { cfa, fp: self.fp, ra: self.ra, ra_mangled: false }
    }
}

impl RowRule {
    /// The rule at an address.
    ///
    /// # Errors
    /// When the rule cannot be represented.
    pub fn at(&self, pc: u64) -> Result<Recovery, Unrepresentable> {
        match self {
            Self::Recovery(recovery) => Ok(*recovery),
            Self::Plt(rule) => Ok(rule.at(pc)),
            Self::Unrepresentable(why) => Err(*why),
        }
    }
}

impl UnwindFunction {
    /// Address after its last byte.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.size.into())
    }
}

impl UnwindTable {
    /// Adds a function with its rows; `first_row` and `num_rows` of `function` are replaced.
    pub fn push(&mut self, function: UnwindFunction, rows: impl IntoIterator<Item = UnwindRow>) {
        let first_row = self.rows.len();
        self.rows.extend(rows);
        let num_rows = self.rows.len().saturating_sub(first_row) as u32;
        self.functions.push(UnwindFunction { first_row: first_row as u32, num_rows, ..function });
    }

    /// A function's rows.
    #[must_use]
    pub fn rows(&self, function: &UnwindFunction) -> &[UnwindRow] {
        let first = function.first_row as usize;
        self.rows.get(first..first.saturating_add(function.num_rows as usize)).unwrap_or_default()
    }

    /// Sorts functions by address, so that [`find`](Self::find) finds them. Of those with one start the longest is last.
    pub fn sort(&mut self) {
        self.functions.sort_by_key(|function| (function.start, function.size));
    }

    /// The function that contains an address; the table must be sorted.
    #[must_use]
    pub fn find(&self, pc: u64) -> Option<&UnwindFunction> {
        let num_started = self.functions.partition_point(|function| function.start <= pc);
        self.functions.get(..num_started)?.last().filter(|function| pc < function.end())
    }

    /// The row of a function that applies to an address in it.
    #[must_use]
    pub fn row_at(&self, function: &UnwindFunction, pc: u64) -> Option<&UnwindRow> {
        let offset = pc.wrapping_sub(function.start);
        let offset = offset.checked_rem(function.repeat_bytes.into()).unwrap_or(offset);
        let rows = self.rows(function);
        rows.get(..rows.partition_point(|row| u64::from(row.start) <= offset))?.last()
    }
}
