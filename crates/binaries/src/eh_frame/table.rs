use std::fmt;

use perfuse_tables::{Base, Expression, Recover, Recovery};

/// Functions and their rows, whoever told of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnwindTable {
    /// Functions.
    pub functions: Vec<Function>,
    /// Rows of all functions, one function's behind the other's.
    pub rows: Vec<Row>,
}

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
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
    /// `.eh_frame`: whether a state is remembered within another that is.
    pub nests_states: bool,
    /// Offset of its entry in what it was read from.
    pub entry_offset: u64,
    /// Index of its first row.
    pub first_row: u32,
    /// Rows it has.
    pub num_rows: u32,
}

/// How to unwind from an offset of a function on, up to the next row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Where it begins to hold: bytes from the function's start, or in the block that repeats.
    pub start: u32,
    /// What it says.
    pub says: Says,
}

/// What a row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// How the caller is found, or that there is none.
    Recovery(Recovery),
    /// The rows of a PLT in one expression: in each block of code the CFA moves once.
    Stub(Stub),
    /// Something a row has no word for.
    Unsayable(Unsayable),
}

/// `sp + offset + ((pc & mask) >= moves_at) * step`: linkers describe PLTs so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stub {
    /// CFA at the start of a block, from the stack pointer.
    pub offset: i64,
    /// Which bits of an address are its offset in the block.
    pub mask: u8,
    /// Offset in the block from which the CFA is further away.
    pub moves_at: u8,
    /// How much further.
    pub step: i64,
    /// Where the return address is.
    pub ra: Recover,
    /// Where the frame pointer is.
    pub fp: Recover,
}

/// What has no place in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unsayable {
    /// The CFA is an expression other than a register and an offset.
    CfaExpression,
    /// The return address is kept in another register than the ABI's.
    ReturnColumn,
    /// The return address is found by an expression.
    RaExpression,
    /// The return address is a distance from the CFA, not what memory has there.
    RaValue,
    /// The frame pointer is found by an expression.
    FpExpression,
    /// The frame pointer is a distance from the CFA, not what memory has there.
    FpValue,
    /// Its bytes have no meaning.
    Meaningless,
}

impl Unsayable {
    /// In words.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::CfaExpression => "a CFA that is an expression",
            Self::ReturnColumn => "a return address in another register than the ABI's",
            Self::RaExpression => "a return address that is an expression",
            Self::RaValue => "a return address that is a distance from the CFA",
            Self::FpExpression => "a frame pointer that is an expression",
            Self::FpValue => "a frame pointer that is a distance from the CFA",
            Self::Meaningless => "a row that says nothing",
        }
    }
}

impl fmt::Display for Unsayable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl Stub {
    /// What it says of an address.
    #[must_use]
    pub fn at(&self, pc: u64) -> Recovery {
        let moved = pc & u64::from(self.mask) >= u64::from(self.moves_at);
        self.recovery(moved)
    }

    /// What it says before and behind the place where the CFA moves.
    #[must_use]
    pub fn recovery(&self, moved: bool) -> Recovery {
        let offset = self.offset.wrapping_add(if moved { self.step } else { 0 });
        let cfa = Expression { base: Base::Sp, offset, deref: false };
        Recovery::Caller { cfa, fp: self.fp, ra: self.ra, ra_mangled: false }
    }
}

impl Says {
    /// What it says of an address.
    ///
    /// # Errors
    /// What a row has no word for.
    pub fn at(&self, pc: u64) -> Result<Recovery, Unsayable> {
        match self {
            Self::Recovery(recovery) => Ok(*recovery),
            Self::Stub(stub) => Ok(stub.at(pc)),
            Self::Unsayable(why) => Err(*why),
        }
    }
}

impl Function {
    /// Address behind its last byte.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.size.into())
    }
}

impl UnwindTable {
    /// Adds a function with its rows; what it says of where rows are is filled in.
    pub fn push(&mut self, function: Function, rows: impl IntoIterator<Item = Row>) {
        let first_row = self.rows.len();
        self.rows.extend(rows);
        let num_rows = (self.rows.len() - first_row) as u32;
        self.functions.push(Function { first_row: first_row as u32, num_rows, ..function });
    }

    /// A function's rows.
    #[must_use]
    pub fn rows(&self, function: &Function) -> &[Row] {
        let first = function.first_row as usize;
        self.rows.get(first..first + function.num_rows as usize).unwrap_or_default()
    }

    /// Sorts functions by address, so that [`find`](Self::find) finds them. Of those with one start the longest is last.
    pub fn sort(&mut self) {
        self.functions.sort_by_key(|function| (function.start, function.size));
    }

    /// The function an address is in, of a table that is sorted.
    #[must_use]
    pub fn find(&self, pc: u64) -> Option<&Function> {
        let behind = self.functions.partition_point(|function| function.start <= pc);
        self.functions[..behind].last().filter(|function| pc < function.end())
    }

    /// The row of a function that holds at an address in it.
    #[must_use]
    pub fn row_at(&self, function: &Function, pc: u64) -> Option<&Row> {
        let offset = pc.wrapping_sub(function.start);
        let offset = offset.checked_rem(function.repeat_bytes.into()).unwrap_or(offset);
        let rows = self.rows(function);
        rows[..rows.partition_point(|row| u64::from(row.start) <= offset)].last()
    }
}
