//! Interprets rows: how the caller's registers are recovered. Unwinders and tables use this.

use std::fmt;

use super::consts::{
    Abi, AbiRegisters, S390X_CFA_ADJUSTMENT, S390X_CFA_SCALE, SFRAME_FDE_TYPE_DEFAULT, SFRAME_FDE_TYPE_FLEX,
};
use super::row::{Fre, FreInfo};

pub use perfuse_addresses::unwinding::{Base, Expression, Recover, Recovery};

/// Why a row cannot be interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InvalidRow {
    /// The ABI is unknown, and with it its registers.
    Abi,
    /// The FDE type is unknown.
    FdeType,
    /// There are more words than the format defines.
    ExtraWords,
    /// A control word is not followed by an offset.
    NoOffset,
    /// The CFA is relative to itself.
    CfaFromItself,
}

impl fmt::Display for InvalidRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Abi => "the ABI is unknown",
            Self::FdeType => "the FDE type is unknown",
            Self::ExtraWords => "it has more words than the format defines",
            Self::NoOffset => "a control word has no offset",
            Self::CfaFromItself => "the CFA is relative to itself",
        })
    }
}

/// Where a row stores the offset of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegisterSlot {
    /// Not stored: the register was not saved.
    Same,
    /// At a fixed offset from the CFA, given by the header.
    Fixed(i8),
    /// In the word with this index.
    Word(usize),
}

/// The properties of a unit and a function that the interpretation of rows depends on.
#[derive(Clone, Copy, Debug)]
pub struct RowContext {
    /// Version of the format.
    pub version: u8,
    /// ABI.
    pub abi: Abi,
    /// Fixed offset of the frame pointer from the CFA, from the header; 0 where rows contain it.
    pub fixed_fp: i8,
    /// Fixed offset of the return address from the CFA, from the header; 0 where rows contain it.
    pub fixed_ra: i8,
    /// FDE type: DEFAULT or FLEX.
    pub fde_type: u8,
}

impl RowContext {
    /// Interprets a row.
    ///
    /// # Errors
    /// [`InvalidRow`] where the row has no defined meaning.
    #[inline]
    pub fn interpret(&self, row: &Fre<'_>) -> Result<Recovery, InvalidRow> {
        if row.info.num_words() == 0 {
            return Ok(Recovery::Outermost);
        }
        match self.fde_type {
            SFRAME_FDE_TYPE_DEFAULT => self.interpret_positional_words(row),
            SFRAME_FDE_TYPE_FLEX => self.interpret_control_words(row),
            _ => Err(InvalidRow::FdeType),
        }
    }

    /// Interprets a DEFAULT row.
    fn interpret_positional_words(&self, row: &Fre<'_>) -> Result<Recovery, InvalidRow> {
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

    /// The slots of return address and frame pointer in a DEFAULT row: each is the next word after that of the CFA,
    /// unless it is fixed or there are no more words.
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

    /// How a register is recovered from its word. s390x: 0 means not saved, and in version 2 an odd number means
    /// saved in a register.
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

    /// The CFA offset in bytes.
    fn cfa_offset(&self, word: i32) -> i64 {
        if self.abi == Abi::S390X_ENDIAN_BIG {
            i64::from(word).saturating_mul(S390X_CFA_SCALE).saturating_add(S390X_CFA_ADJUSTMENT)
        } else {
            word.into()
        }
    }

    /// Interprets a FLEX row.
    fn interpret_control_words(&self, row: &Fre<'_>) -> Result<Recovery, InvalidRow> {
        let registers = self.abi.registers().ok_or(InvalidRow::Abi)?;
        let mut next = 0usize;
        let mut pair = |fixed: i8, is_last: bool| -> Result<Recover, InvalidRow> {
            let default = if fixed == 0 { Recover::Same } else { Recover::Fixed(fixed) };
            let Some(control) = row.control(next) else { return Ok(default) };
            let offset = row.word(next.saturating_add(1));
            // A control word 0 is followed by the next control word. The last control word is followed by its offset
            // only.
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

/// Decodes a control word: bit 0 means that it names a register, bit 1 that memory is read, bits 3 and up are the
/// register number.
fn expression(control: u32, offset: i32, registers: AbiRegisters) -> Expression {
    let base = match (control & 1, control >> 3) {
        (0, _) => Base::Cfa,
        (_, number) if number == registers.sp => Base::Sp,
        (_, number) if number == registers.fp => Base::Fp,
        (_, number) => Base::Register(number),
    };
    Expression { base, offset: offset.into(), deref: control & 2 != 0 }
}
