//! Register rules of the call frame machine, as values of [`RowRule`].

use gimli::{
    CfaRule, EhFrame, EndianSlice, Operation, Register, RegisterRule, RunTimeEndian, UnitOffset,
    UnwindExpression, UnwindTableRow,
};
use object::Architecture;
use perfuse_tables::{Base, Expression, Recover, Recovery};

use super::table::{PltRule, RowRule, Unrepresentable};

/// Bytes of a section in the byte order of its file.
pub(super) type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// DWARF numbers of the registers that unwinding needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DwarfRegisters {
    /// Stack pointer.
    pub sp: u16,
    /// Frame pointer.
    pub fp: u16,
    /// Return address.
    pub ra: u16,
    /// Whether return addresses may be signed (aarch64).
    pub signs: bool,
}

impl DwarfRegisters {
    /// amd64.
    pub const X86_64: Self = Self { sp: 7, fp: 6, ra: 16, signs: false };
    /// aarch64, in either byte order.
    pub const AARCH64: Self = Self { sp: 31, fp: 29, ra: 30, signs: true };
    /// s390x.
    pub const S390X: Self = Self { sp: 15, fp: 11, ra: 14, signs: false };

    /// The registers of a machine; `None` for machines that are not supported.
    pub(super) fn of(architecture: Architecture) -> Option<Self> {
        match architecture {
            Architecture::X86_64 => Some(Self::X86_64),
            Architecture::Aarch64 => Some(Self::AARCH64),
            Architecture::S390x => Some(Self::S390X),
            _ => None,
        }
    }
}

/// Translates the rules of rows: a section and the registers of its machine.
pub(super) struct RuleReader<'a> {
    pub(super) section: &'a EhFrame<Slice<'a>>,
    pub(super) encoding: gimli::Encoding,
    pub(super) registers: DwarfRegisters,
}

impl RuleReader<'_> {
    /// The rules of a row for CFA, return address and frame pointer; return addresses are in `return_column`.
    pub(super) fn rule(&self, row: &UnwindTableRow<usize>, return_column: Register) -> RowRule {
        self.translate(row, return_column).unwrap_or_else(RowRule::Unrepresentable)
    }

    fn translate(
        &self,
        row: &UnwindTableRow<usize>,
        return_column: Register,
    ) -> Result<RowRule, Unrepresentable> {
        if return_column.0 != self.registers.ra {
            return Err(Unrepresentable::ReturnColumn);
        }
        let is_undefined = |rule: &RegisterRule<usize>| matches!(rule, RegisterRule::Undefined);
        let rule = |number| row.register(Register(number));
        if rule(self.registers.ra).as_ref().is_some_and(is_undefined) {
            return Ok(RowRule::Recovery(Recovery::Outermost));
        }
        let ra =
            self.recover(rule(self.registers.ra), Unrepresentable::RaExpression, Unrepresentable::RaValue)?;
        let fp =
            self.recover(rule(self.registers.fp), Unrepresentable::FpExpression, Unrepresentable::FpValue)?;
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                Expression { base: self.base(*register), offset: *offset, deref: false }
            }
            CfaRule::Expression(expression) => match self.simple(expression) {
                Some(cfa) => cfa,
                None => {
                    let rule = self.plt_rule(expression).ok_or(Unrepresentable::CfaExpression)?;
                    return Ok(RowRule::Plt(PltRule { ra, fp, ..rule }));
                }
            },
        };
        let signed = rule(gimli::AArch64::RA_SIGN_STATE.0);
        let ra_mangled = self.registers.signs && matches!(signed, Some(RegisterRule::Constant(1)));
        Ok(RowRule::Recovery(Recovery::Caller { cfa, fp, ra, ra_mangled }))
    }

    /// How a register is recovered; `expression` and `value` are the reasons for rules that a row cannot represent.
    fn recover(
        &self,
        rule: Option<RegisterRule<usize>>,
        expression: Unrepresentable,
        value: Unrepresentable,
    ) -> Result<Recover, Unrepresentable> {
        Ok(match rule {
            None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => Recover::Same,
            Some(RegisterRule::Offset(offset)) => {
                Recover::At(Expression { base: Base::Cfa, offset, deref: true })
            }
            Some(RegisterRule::Register(register)) => {
                Recover::At(Expression { base: self.base(register), offset: 0, deref: false })
            }
            Some(RegisterRule::Expression(address)) => {
                let address = self.simple(&address).filter(|address| !address.deref).ok_or(expression)?;
                Recover::At(Expression { deref: true, ..address })
            }
            Some(RegisterRule::ValExpression(value)) => Recover::At(self.simple(&value).ok_or(expression)?),
            Some(RegisterRule::ValOffset(_)) => return Err(value),
            Some(_) => return Err(expression),
        })
    }

    fn base(&self, register: Register) -> Base {
        match register.0 {
            number if number == self.registers.sp => Base::Sp,
            number if number == self.registers.fp => Base::Fp,
            number => Base::Register(number.into()),
        }
    }

    /// A register plus an offset, or the memory at that address: what compilers write for stacks they align.
    fn simple(&self, expression: &UnwindExpression<usize>) -> Option<Expression> {
        let (base, offset, deref) = match self.operations(expression, 2)?.as_slice() {
            [Operation::RegisterOffset { register, offset, base_type: UnitOffset(0) }] => {
                (*register, *offset, false)
            }
            [
                Operation::RegisterOffset { register, offset, base_type: UnitOffset(0) },
                Operation::Deref { size: 8, space: false, .. },
            ] => (*register, *offset, true),
            _ => return None,
        };
        Some(Expression { base: self.base(base), offset, deref })
    }

    /// `sp + offset + ((pc & mask) >= moves_at) << shift`, as GNU ld writes it for a PLT.
    fn plt_rule(&self, expression: &UnwindExpression<usize>) -> Option<PltRule> {
        use Operation::{And, Ge, Plus, RegisterOffset, Shl, UnsignedConstant};
        let operations = self.operations(expression, 9)?;
        let &[
            RegisterOffset { register: sp, offset, .. },
            RegisterOffset { register: pc, offset: 0, .. },
            UnsignedConstant { value: mask },
            And,
            UnsignedConstant { value: moves_at },
            Ge,
            UnsignedConstant { value: shift @ 0..=8 },
            Shl,
            Plus,
        ] = operations.as_slice()
        else {
            return None;
        };
        (sp.0 == self.registers.sp && pc.0 == self.registers.ra).then_some(PltRule {
            offset,
            mask: u8::try_from(mask).ok()?,
            moves_at: u8::try_from(moves_at).ok()?,
            step: 1 << shift,
            ra: Recover::Same,
            fp: Recover::Same,
        })
    }

    /// All operations of an expression; `None` where there are more than `max`.
    fn operations(
        &self,
        expression: &UnwindExpression<usize>,
        max: usize,
    ) -> Option<Vec<Operation<Slice<'_>>>> {
        let mut operations = expression.get(self.section).ok()?.operations(self.encoding);
        let mut all = Vec::with_capacity(max);
        while let Some(operation) = operations.next().ok()? {
            if all.len() == max {
                return None;
            }
            all.push(operation);
        }
        Some(all)
    }
}
