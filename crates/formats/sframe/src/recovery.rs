//! What a row means: how the caller's registers are found. This is what unwinders and tables take.

use std::fmt;

use super::consts::{
    Abi, Registers, S390X_CFA_ADJUSTMENT, S390X_CFA_SCALE, SFRAME_FDE_TYPE_DEFAULT, SFRAME_FDE_TYPE_FLEX,
};
use super::row::{Fre, FreInfo};

pub use perfuse_tables::{Base, Expression, Recover, Recovery};

/// Why a row has no meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InvalidRow {
    /// The ABI is not known, so neither are its registers.
    Abi,
    /// The type of the function is not known.
    FdeType,
    /// There are words nobody defined.
    ExtraWords,
    /// A control word has no offset behind it.
    NoOffset,
    /// The CFA is counted from the CFA.
    CfaFromItself,
}

impl fmt::Display for InvalidRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Abi => "the ABI is not known",
            Self::FdeType => "the type of its function is not known",
            Self::ExtraWords => "it has words that nobody defined",
            Self::NoOffset => "a control word has no offset",
            Self::CfaFromItself => "the CFA is counted from itself",
        })
    }
}

/// Where a row has a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegisterSlot {
    /// Nowhere: it was not saved.
    Same,
    /// As far from the CFA as in every row.
    Fixed(i8),
    /// In the word of that index.
    Word(usize),
}

/// What of a section and a function the meaning of rows depends on.
#[derive(Clone, Copy, Debug)]
pub struct RowContext {
    /// Version of the format.
    pub version: u8,
    /// ABI.
    pub abi: Abi,
    /// From the header; 0 where rows tell.
    pub fixed_fp: i8,
    /// From the header; 0 where rows tell.
    pub fixed_ra: i8,
    /// DEFAULT or FLEX.
    pub fde_type: u8,
}

impl RowContext {
    /// What a row says.
    ///
    /// # Errors
    /// [`Meaningless`] where it says nothing.
    #[inline]
    pub fn interpret(&self, row: &Fre<'_>) -> Result<Recovery, InvalidRow> {
        if row.info.num_words() == 0 {
            return Ok(Recovery::Outermost);
        }
        match self.fde_type {
            SFRAME_FDE_TYPE_DEFAULT => self.from_positional_words(row),
            SFRAME_FDE_TYPE_FLEX => self.from_control_words(row),
            _ => Err(InvalidRow::FdeType),
        }
    }

    fn from_positional_words(&self, row: &Fre<'_>) -> Result<Recovery, InvalidRow> {
        let base = if row.info.cfa_from_sp() { Base::Sp } else { Base::Fp };
        let offset = self.cfa_offset(row.word(0).ok_or(InvalidRow::NoOffset)?);
        let [ra, fp] = self.register_slots(row.info)?.map(|slot| match slot {
            RegisterSlot::Same => Recover::Same,
            RegisterSlot::Fixed(offset) => Recover::Fixed(offset),
            RegisterSlot::Word(index) => row.word(index).map_or(Recover::Same, |word| self.saved(word)),
        });
        let cfa = Expression { base, offset, deref: false };
        Ok(Recovery::Caller { cfa, fp, ra, ra_mangled: row.info.ra_mangled() })
    }

    /// Where a row by position has the return address and the frame pointer: each has the next word behind the CFA's, unless
    /// it is fixed or words are at an end.
    pub(super) fn register_slots(&self, info: FreInfo) -> Result<[RegisterSlot; 2], InvalidRow> {
        let num_words = usize::from(info.num_words());
        let mut next = 1usize;
        let register_slots = [self.fixed_ra, self.fixed_fp].map(|fixed| match fixed {
            0 => {
                let word = next;
                next = next.saturating_add(1);
                if word < num_words { RegisterSlot::Word(word) } else { RegisterSlot::Same }
            }
            fixed => RegisterSlot::Fixed(fixed),
        });
        if num_words > next { Err(InvalidRow::ExtraWords) } else { Ok(register_slots) }
    }

    /// Where a register is saved. s390x: 0 for nowhere, and in version 2 an odd number for a register that keeps it.
    fn saved(&self, word: i32) -> Recover {
        if self.abi == Abi::S390X_ENDIAN_BIG {
            if word == 0 {
                return Recover::Same;
            }
            if self.version == 2 && word & 1 == 1 {
                let base = Base::Register((word >> 1).cast_unsigned());
                return Recover::At(Expression { base, offset: 0, deref: false });
            }
        }
        Recover::At(Expression { base: Base::Cfa, offset: word.into(), deref: true })
    }

    fn cfa_offset(&self, word: i32) -> i64 {
        if self.abi == Abi::S390X_ENDIAN_BIG {
            i64::from(word).saturating_mul(S390X_CFA_SCALE).saturating_add(S390X_CFA_ADJUSTMENT)
        } else {
            word.into()
        }
    }

    fn from_control_words(&self, row: &Fre<'_>) -> Result<Recovery, InvalidRow> {
        let registers = self.abi.registers().ok_or(InvalidRow::Abi)?;
        let mut next = 0usize;
        let mut pair = |fixed: i8, is_last: bool| -> Result<Recover, InvalidRow> {
            let default = if fixed == 0 { Recover::Same } else { Recover::Fixed(fixed) };
            let Some(control) = row.control(next) else { return Ok(default) };
            let offset = row.word(next.saturating_add(1));
            // What stands behind a control word 0 is the next control word; nothing is behind the last one but its offset.
            if control == 0 && !(is_last && offset.is_some()) {
                next = next.saturating_add(1);
                return Ok(default);
            }
            next = next.saturating_add(2);
            Ok(Recover::At(expression(control, offset.ok_or(InvalidRow::NoOffset)?, registers)))
        };
        let Recover::At(mut cfa) = pair(0, false)? else { return Err(InvalidRow::CfaFromItself) };
        let ra = pair(self.fixed_ra, false)?;
        let fp = pair(self.fixed_fp, true)?;
        if cfa.base == Base::Cfa {
            return Err(InvalidRow::CfaFromItself);
        }
        if usize::from(row.info.num_words()) > next {
            return Err(InvalidRow::ExtraWords);
        }
        cfa.offset = self.cfa_offset(cfa.offset as i32);
        Ok(Recovery::Caller { cfa, fp, ra, ra_mangled: row.info.ra_mangled() })
    }
}

/// A control word: bit 0 says that it names a register, bit 1 that memory is read, bits 3 and up are the register's number.
fn expression(control: u32, offset: i32, registers: Registers) -> Expression {
    let base = match (control & 1, control >> 3) {
        (0, _) => Base::Cfa,
        (_, number) if number == registers.sp => Base::Sp,
        (_, number) if number == registers.fp => Base::Fp,
        (_, number) => Base::Register(number),
    };
    Expression { base, offset: offset.into(), deref: control & 2 != 0 }
}
