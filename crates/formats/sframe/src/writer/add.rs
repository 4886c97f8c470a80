//! Adds functions whose rows are given as recovery rules, each written in the shortest form its version has.

use super::contents::{OwnedFre, SectionContents, SectionFunction};
use super::unsupported::Unsupported;
use crate::consts::{
    Abi, S390X_CFA_ADJUSTMENT, S390X_CFA_SCALE, SFRAME_FDE_TYPE_DEFAULT, SFRAME_FDE_TYPE_FLEX,
};
use crate::records::FdeInfo;
use crate::recovery::{Base, Expression, Recover, Recovery, RowContext};
use crate::row::FreInfo;

/// A function to add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewFunction {
    /// First address.
    pub start: u64,
    /// Size in bytes.
    pub size: u32,
    /// Size in bytes of the block of code that repeats; 0 for code that does not repeat.
    pub repeat_bytes: u8,
    /// Whether it is a signal frame.
    pub is_signal: bool,
    /// Whether return addresses are signed with key B (aarch64).
    pub is_key_b: bool,
}

/// A state of a section's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    functions: usize,
    blocks: usize,
}

impl SectionContents {
    /// The current state, for [`roll_back`](Self::roll_back).
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint { functions: self.functions.len(), blocks: self.blocks.len() }
    }

    /// Removes what was added since.
    pub fn roll_back(&mut self, checkpoint: Checkpoint) {
        self.functions.truncate(checkpoint.functions);
        self.blocks.truncate(checkpoint.blocks);
    }

    /// Adds a function; in version 3 with FLEX rows where DEFAULT rows cannot represent it.
    ///
    /// # Errors
    /// The index of the first row that this version cannot represent, and why; no index where the reason is the
    /// function.
    pub fn add(
        &mut self,
        function: NewFunction,
        rows: &[(u32, Recovery)],
    ) -> Result<(), (Option<usize>, Unsupported)> {
        if function.is_signal && self.version < 3 {
            return Err((None, Unsupported::SignalFrame));
        }
        if self.version >= 3 && rows.len() > usize::from(u16::MAX) {
            return Err((None, Unsupported::TooManyRows));
        }
        let repeats = function.repeat_bytes != 0;
        let last_start = rows.iter().map(|(start, _)| *start).max().unwrap_or(0);
        let max_offset = last_start.max(if repeats { function.repeat_bytes.into() } else { function.size });
        let fre_type = match max_offset {
            0..=0xff => 0,
            0x100..=0xffff => 1,
            _ => 2,
        };
        let entry = SectionFunction {
            start: function.start,
            size: function.size,
            info: FdeInfo::new(fre_type, repeats, function.is_key_b, function.is_signal),
            fde_type: SFRAME_FDE_TYPE_DEFAULT,
            repeat_bytes: function.repeat_bytes,
            padding: 0,
            block: 0,
        };
        let context = self.context(&entry);
        let (fde_type, rows) = match encode_rows(rows, &context, SFRAME_FDE_TYPE_DEFAULT) {
            Err(_) if self.version >= 3 => {
                (SFRAME_FDE_TYPE_FLEX, encode_rows(rows, &context, SFRAME_FDE_TYPE_FLEX)?)
            }
            positional_words => (SFRAME_FDE_TYPE_DEFAULT, positional_words?),
        };
        self.push(SectionFunction { fde_type, ..entry }, rows);
        Ok(())
    }
}

/// The rows for some recoveries, with one FDE type.
fn encode_rows(
    rows: &[(u32, Recovery)],
    context: &RowContext,
    fde_type: u8,
) -> Result<Vec<OwnedFre>, (Option<usize>, Unsupported)> {
    let context = RowContext { fde_type, ..*context };
    let row = |(index, (start, recovery)): (usize, &(u32, Recovery))| {
        row_of(*start, recovery, &context).map_err(|why| (Some(index), why))
    };
    rows.iter().enumerate().map(row).collect()
}

/// The row for a recovery, for a version, an ABI and an FDE type.
///
/// # Errors
/// What the version or the FDE type cannot represent.
pub fn row_of(start: u32, recovery: &Recovery, context: &RowContext) -> Result<OwnedFre, Unsupported> {
    let Recovery::Caller { cfa, fp, ra, ra_mangled } = recovery else {
        return match context.version {
            1 => Err(Unsupported::Outermost),
            _ => Ok(OwnedFre { start, info: FreInfo::new(false, 0, 0, false), words: Vec::new() }),
        };
    };
    let words = if context.fde_type == SFRAME_FDE_TYPE_DEFAULT {
        positional_words(cfa, fp, ra, context)?
    } else {
        control_words(cfa, fp, ra, context)?
    };
    let from_sp = cfa.base == Base::Sp;
    let size_code = words.iter().map(|word| word.size_code()).max().unwrap_or(0);
    let info = FreInfo::new(from_sp, words.len() as u8, size_code, *ra_mangled);
    Ok(OwnedFre { start, info, words: words.into_iter().map(EncodedWord::value).collect() })
}

#[derive(Clone, Copy)]
enum EncodedWord {
    Offset(i32),
    Control(u32),
}

impl EncodedWord {
    /// The smallest size code that fits.
    fn size_code(&self) -> u8 {
        let (byte, two) = match *self {
            Self::Offset(offset) => (i8::try_from(offset).is_ok(), i16::try_from(offset).is_ok()),
            Self::Control(control) => (u8::try_from(control).is_ok(), u16::try_from(control).is_ok()),
        };
        if byte { 0 } else { 2u8.saturating_sub(two.into()) }
    }

    fn value(self) -> i32 {
        match self {
            Self::Offset(offset) => offset,
            Self::Control(control) => control.cast_signed(),
        }
    }
}

fn offset(offset: i64) -> Result<EncodedWord, Unsupported> {
    i32::try_from(offset).map(EncodedWord::Offset).map_err(|_| Unsupported::OffsetSize)
}

/// The word for a CFA offset.
fn cfa_offset(value: i64, context: &RowContext) -> Result<EncodedWord, Unsupported> {
    if context.abi != Abi::S390X_ENDIAN_BIG {
        return offset(value);
    }
    let from_sp = value.saturating_sub(S390X_CFA_ADJUSTMENT);
    match from_sp % S390X_CFA_SCALE {
        0 => offset(from_sp / S390X_CFA_SCALE),
        _ => Err(Unsupported::CfaScale),
    }
}

/// The words of a DEFAULT row.
fn positional_words(
    cfa: &Expression,
    fp: &Recover,
    ra: &Recover,
    context: &RowContext,
) -> Result<Vec<EncodedWord>, Unsupported> {
    if cfa.deref || !matches!(cfa.base, Base::Sp | Base::Fp) {
        return Err(Unsupported::CfaBase);
    }
    let is_s390x = context.abi == Abi::S390X_ENDIAN_BIG;
    let saved = |rule: &Recover| match rule {
        Recover::At(Expression { base: Base::Cfa, offset: at, deref: true }) => offset(*at).map(Some),
        Recover::At(Expression { base, offset: 0, deref: false }) if is_s390x && context.version == 2 => {
            let number = match base {
                Base::Register(number) => *number,
                Base::Sp => 15,
                Base::Fp => 11,
                Base::Cfa => return Err(Unsupported::RegisterOfCfa),
            };
            Ok(Some(EncodedWord::Offset((number << 1 | 1).cast_signed())))
        }
        Recover::At(_) => Err(Unsupported::RegisterPlace),
        Recover::Fixed(at) => Ok(Some(EncodedWord::Offset((*at).into()))),
        Recover::Same => Ok(None),
    };
    let mut words = vec![cfa_offset(cfa.offset, context)?];
    let mut pending = 0u8;
    for (rule, fixed) in [(ra, context.fixed_ra), (fp, context.fixed_fp)] {
        if fixed != 0 {
            // A fixed offset of the header is not repeated in rows.
            match rule {
                Recover::Same => continue,
                Recover::Fixed(at) if *at == fixed => continue,
                Recover::At(Expression { base: Base::Cfa, offset, deref: true })
                    if *offset == fixed.into() =>
                {
                    continue;
                }
                _ => return Err(Unsupported::FixedOffset),
            }
        }
        match saved(rule)? {
            Some(word) if pending == 0 => words.push(word),
            Some(word) if is_s390x => words.extend([EncodedWord::Offset(0), word]),
            Some(_) => return Err(Unsupported::FpWithoutRa),
            None => pending = pending.saturating_add(1),
        }
    }
    Ok(words)
}

/// The words of a FLEX row.
fn control_words(
    cfa: &Expression,
    fp: &Recover,
    ra: &Recover,
    context: &RowContext,
) -> Result<Vec<EncodedWord>, Unsupported> {
    let registers = context.abi.registers().ok_or(Unsupported::UnknownRegisters)?;
    let pair = |expression: &Expression, value: EncodedWord| {
        let (named, number) = match expression.base {
            Base::Cfa => (0, 0),
            Base::Sp => (1, registers.sp),
            Base::Fp => (1, registers.fp),
            Base::Register(number) => (1, number),
        };
        [EncodedWord::Control(number.wrapping_shl(3) | u32::from(expression.deref) << 1 | named), value]
    };
    if cfa.base == Base::Cfa {
        return Err(Unsupported::CfaOfItself);
    }
    let mut words = pair(cfa, cfa_offset(cfa.offset, context)?).to_vec();
    match (ra, fp) {
        (Recover::At(Expression { base: Base::Cfa, deref: false, .. }), _) => {
            return Err(Unsupported::RaOnStack);
        }
        (Recover::At(ra), _) => words.extend(pair(ra, offset(ra.offset)?)),
        (_, Recover::At(_)) => words.push(EncodedWord::Control(0)),
        _ => {}
    }
    if let Recover::At(fp) = fp {
        words.extend(pair(fp, offset(fp.offset)?));
    }
    Ok(words)
}
