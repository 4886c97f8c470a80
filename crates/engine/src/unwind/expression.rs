use gimli::{EndianSlice, EvaluationResult, Location, RunTimeEndian, Value};

use super::step::Expression;

/// Operations of one evaluation: real expressions have a handful.
const MAX_OPERATIONS: u32 = 1 << 10;

/// What an expression may ask for.
pub(super) trait Context {
    /// A register of the frame.
    fn register(&self, number: u16) -> Option<u64>;
    /// A number in memory.
    fn memory(&self, address: u64, size: u8) -> Option<u64>;
    /// The CFA, where that is not what is computed.
    fn cfa(&self) -> Option<u64>;
}

/// The address an expression computes; `None` where it asks for what is not known, or makes no sense.
pub(super) fn evaluate(expression: &Expression, big_endian: bool, context: &impl Context) -> Option<u64> {
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
