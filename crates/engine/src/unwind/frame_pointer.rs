use super::machine::Machine;
use super::step::{Base, Origin, Rule, Step};

/// The step of a function that keeps a frame pointer, which has to be taken on trust; `None` where the machine's functions
/// do not chain them.
pub(super) fn step(machine: Machine) -> Option<Step> {
    let (fp, ra, sp) = (machine.fp(), machine.ra(), machine.sp());
    // A frame record: the caller's frame pointer, and above it the return address.
    let cfa = Rule::Is(Base::Register(fp), 16);
    let record = [(ra, Rule::At(Base::Cfa, -8)), (fp, Rule::At(Base::Cfa, -16))];
    let rules: Box<[_]> = match machine {
        Machine::Amd64 => record.into(),
        // The record is at the bottom of the frame, so where that ends is not known.
        Machine::Aarch64 => record.into_iter().chain([(sp, Rule::Lost)]).collect(),
        Machine::S390x => return None,
    };
    Some(Step { origin: Origin::FramePointer, cfa, rules, kept: 0, is_signal: false })
}
