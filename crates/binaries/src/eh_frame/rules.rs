//! Rules of the virtual machine as values.

use gimli::{
    CfaRule, EhFrame, EndianSlice, Operation, Register, RegisterRule, RunTimeEndian, UnitOffset,
    UnwindExpression, UnwindTableRow,
};
use perfuse_tables::{Base, Expression, Recover, Recovery};

use super::registers::Registers;
use super::table::{Says, Stub, Unsayable};

type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// Section and machine: what rules are read with.
pub(super) struct Rules<'a> {
    pub(super) section: &'a EhFrame<Slice<'a>>,
    pub(super) encoding: gimli::Encoding,
    pub(super) registers: Registers,
}

impl Rules<'_> {
    /// What a row of the machine says of the three registers, where return addresses are in a column.
    pub(super) fn of(&self, row: &UnwindTableRow<usize>, return_column: Register) -> Says {
        self.says(row, return_column).unwrap_or_else(Says::Unsayable)
    }

    fn says(&self, row: &UnwindTableRow<usize>, return_column: Register) -> Result<Says, Unsayable> {
        if return_column.0 != self.registers.ra {
            return Err(Unsayable::ReturnColumn);
        }
        let is_undefined = |rule: &RegisterRule<usize>| matches!(rule, RegisterRule::Undefined);
        let rule = |number| row.register(Register(number));
        if rule(self.registers.ra).as_ref().is_some_and(is_undefined) {
            return Ok(Says::Recovery(Recovery::Outermost));
        }
        let ra = self.recover(rule(self.registers.ra), Unsayable::RaExpression, Unsayable::RaValue)?;
        let fp = self.recover(rule(self.registers.fp), Unsayable::FpExpression, Unsayable::FpValue)?;
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                Expression { base: self.base(*register), offset: *offset, deref: false }
            }
            CfaRule::Expression(expression) => match self.simple(expression) {
                Some(cfa) => cfa,
                None => {
                    let stub = self.stub(expression).ok_or(Unsayable::CfaExpression)?;
                    return Ok(Says::Stub(Stub { ra, fp, ..stub }));
                }
            },
        };
        let signed = rule(gimli::AArch64::RA_SIGN_STATE.0);
        let ra_mangled = self.registers.signs && matches!(signed, Some(RegisterRule::Constant(1)));
        Ok(Says::Recovery(Recovery::Caller { cfa, fp, ra, ra_mangled }))
    }

    fn recover(
        &self,
        rule: Option<RegisterRule<usize>>,
        expression: Unsayable,
        value: Unsayable,
    ) -> Result<Recover, Unsayable> {
        Ok(match rule {
            None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => Recover::Same,
            Some(RegisterRule::Offset(offset)) => {
                Recover::At(Expression { base: Base::Cfa, offset, deref: true })
            }
            Some(RegisterRule::Register(register)) => {
                Recover::At(Expression { base: self.base(register), offset: 0, deref: false })
            }
            Some(RegisterRule::Expression(place)) => {
                let place = self.simple(&place).filter(|place| !place.deref).ok_or(expression)?;
                Recover::At(Expression { deref: true, ..place })
            }
            Some(RegisterRule::ValExpression(place)) => Recover::At(self.simple(&place).ok_or(expression)?),
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

    /// A register and an offset, or what memory has there: what compilers write for stacks they align.
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
    fn stub(&self, expression: &UnwindExpression<usize>) -> Option<Stub> {
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
        (sp.0 == self.registers.sp && pc.0 == self.registers.ra).then_some(Stub {
            offset,
            mask: u8::try_from(mask).ok()?,
            moves_at: u8::try_from(moves_at).ok()?,
            step: 1 << shift,
            ra: Recover::Same,
            fp: Recover::Same,
        })
    }

    /// All operations of an expression, where there are no more than so many.
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
