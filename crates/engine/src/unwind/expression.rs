//! DWARF expressions.

use gimli::{EndianSlice, EvaluationResult, Location, RunTimeEndian, Value};

use super::step::DwarfExpression;

/// Most operations of one evaluation; real expressions have a handful.
const MAX_OPERATIONS: u32 = 1 << 10;

/// Values that an expression may read.
pub(super) trait EvaluationContext {
    /// A register of the frame.
    fn register(&self, number: u16) -> Option<u64>;
    /// A number in memory.
    fn memory(&self, address: u64, size: u8) -> Option<u64>;
    /// The CFA, unless the expression computes it.
    fn cfa(&self) -> Option<u64>;
}

/// Evaluates an expression; `None` where it reads an unknown value or is malformed.
pub(super) fn evaluate(
    expression: &DwarfExpression,
    big_endian: bool,
    context: &impl EvaluationContext,
) -> Option<u64> {
    let endian = if big_endian { RunTimeEndian::Big } else { RunTimeEndian::Little };
    let bytes = EndianSlice::new(&expression.bytes, endian);
    let mut evaluation = gimli::Expression(bytes).evaluation(expression.encoding);
    evaluation.set_max_iterations(MAX_OPERATIONS);
    if let Some(cfa) = context.cfa() {
        evaluation.set_initial_value(cfa);
    }
    let mut result = evaluation.evaluate().ok()?;
    loop {
        result = match result {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresRegister { register, .. } => {
                evaluation.resume_with_register(Value::Generic(context.register(register.0)?))
            }
            EvaluationResult::RequiresMemory { address, size, .. } => {
                evaluation.resume_with_memory(Value::Generic(context.memory(address, size)?))
            }
            EvaluationResult::RequiresCallFrameCfa => evaluation.resume_with_call_frame_cfa(context.cfa()?),
            _ => return None,
        }
        .ok()?;
    }
    match evaluation.as_result() {
        [piece] => match piece.location {
            Location::Address { address } => Some(address),
            Location::Value { value } => value.to_u64(u64::MAX).ok(),
            _ => None,
        },
        _ => None,
    }
}
