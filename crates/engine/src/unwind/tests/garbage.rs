use proptest::prelude::*;

use super::{
    PreparedStep, Registers, StackCopy, StepId, StepSource, Stop, UnwindStep, UnwoundFrame, unwind_stack,
};
use crate::unwind::step::DwarfExpression;
use crate::unwind::walk::{RestoredRegisters, unwind_with};
use crate::unwind::{FrameOrigin, MAX_FRAMES, Machine, UnwindBase, UnwindRule, step::frame_pointer_step};

/// The same step at every address.
struct Always(Option<PreparedStep>);

impl StepSource for Always {
    fn find(&mut self, _pc: u64, _all_registers: bool) -> Option<StepId> {
        self.0.as_ref().map(|_| StepId(0))
    }

    fn step(&self, _id: StepId) -> Option<&PreparedStep> {
        self.0.as_ref()
    }

    fn is_code(&self, _address: u64) -> bool {
        true
    }

    fn memory(&self, address: u64, _size: u8) -> Option<u64> {
        address.is_multiple_of(3).then_some(address)
    }
}

fn machines() -> impl Strategy<Value = Machine> {
    prop_oneof![Just(Machine::Amd64), Just(Machine::Aarch64), Just(Machine::S390x)]
}

fn bases() -> impl Strategy<Value = UnwindBase> {
    let encoding = gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 4 };
    let expression =
        move |bytes: Vec<u8>| UnwindBase::Expression(DwarfExpression { bytes: bytes.into(), encoding });
    prop_oneof![
        Just(UnwindBase::Cfa),
        any::<u8>().prop_map(UnwindBase::Register),
        prop::collection::vec(any::<u8>(), 0..24).prop_map(expression),
    ]
}

fn rules() -> impl Strategy<Value = UnwindRule> {
    let offset = prop_oneof![-64i64..64, any::<i64>()];
    prop_oneof![
        Just(UnwindRule::Undefined),
        (bases(), offset.clone()).prop_map(|(base, offset)| UnwindRule::Value(base, offset)),
        (bases(), offset).prop_map(|(base, offset)| UnwindRule::Memory(base, offset)),
    ]
}

fn steps() -> impl Strategy<Value = UnwindStep> {
    let saved = prop::collection::vec((any::<u8>(), rules()), 0..6);
    (rules(), saved, any::<u64>(), any::<bool>()).prop_map(|(cfa, rules, unchanged, is_signal)| UnwindStep {
        origin: FrameOrigin::EhFrame,
        cfa,
        rules: rules.into(),
        unchanged,
        is_signal,
    })
}

fn unwind(
    registers: &Registers,
    start: u64,
    bytes: &[u8],
    step: Option<UnwindStep>,
) -> (Vec<UnwoundFrame>, Stop) {
    let stack = StackCopy { start, bytes, big_endian: registers.machine() == Machine::S390x };
    let mut frames = Vec::new();
    let step = step.map(|step| PreparedStep::new(step, registers.machine()));
    let stop = unwind_stack(registers, &stack, &mut Always(step), &mut frames);
    (frames, stop)
}

proptest! {
    #[test]
    fn any_step_on_any_registers_ends(
        machine in machines(),
        values in prop::collection::vec(any::<u64>(), 40),
        pc in any::<u64>(),
        start in prop_oneof![0u64..1 << 40, any::<u64>()],
        stack in prop::collection::vec(any::<u8>(), 0..512),
        step in steps(),
    ) {
        let mut registers = Registers::new(machine, pc);
        values.iter().zip(0..).for_each(|(value, number)| registers.set(number, *value));
        registers.set(machine.sp(), start);
        let (frames, _) = unwind(&registers, start, &stack, Some(step));
        prop_assert!((1..=MAX_FRAMES).contains(&frames.len()));
        prop_assert!(frames[1..].iter().all(|frame| frame.pc >> 63 == 0));
    }

    /// Frames as those in programs: a CFA above the stack pointer, words below it.
    #[test]
    fn words_of_a_frame_are_restored_as_by_their_rules(
        machine in machines(),
        values in prop::collection::vec(any::<u64>(), 40),
        stack in prop::collection::vec(0x1000u64..0x9000, 0..64),
        above in 0i64..80,
        base in 0u8..33,
        saved in prop::collection::vec((0u8..40, -10i64..2), 0..8),
        unchanged in any::<u64>(),
    ) {
        let bytes: Vec<u8> = stack.iter().flat_map(|word| word.to_le_bytes()).collect();
        let stack = StackCopy { start: 0x7000, bytes: &bytes, big_endian: false };
        let mut registers = Registers::new(machine, 0x1000);
        values.iter().zip(0..).for_each(|(value, number)| registers.set(number, *value % 0x400 + 0x7000));
        registers.set(machine.sp(), 0x7000);
        let ra = (machine.ra(), -1);
        let rules = saved.iter().chain([&ra]).map(|&(register, words)| {
            (register, UnwindRule::Memory(UnwindBase::Cfa, words * 8))
        });
        let step = UnwindStep {
            origin: FrameOrigin::EhFrame,
            cfa: UnwindRule::Value(UnwindBase::Register(base), above),
            rules: rules.collect(),
            unchanged,
            is_signal: false,
        };
        let walk = |by_rules, restored| {
            let mut prepared = PreparedStep::new(step.clone(), machine);
            if by_rules {
                prepared.saved = None;
            }
            let mut frames = Vec::new();
            let stop = unwind_with(&registers, &stack, &mut Always(Some(prepared)), &mut frames, restored);
            (frames, stop)
        };
        let all = walk(true, RestoredRegisters::Described);
        prop_assert_eq!(walk(false, RestoredRegisters::Described), all.clone());
        let (frames, stop) = walk(false, RestoredRegisters::Frame);
        if stop != Stop::LostRegister {
            prop_assert_eq!((frames, stop), all);
        }
    }

    #[test]
    fn frame_pointers_never_go_round(machine in machines(), stack in prop::collection::vec(0u64..64, 0..64)) {
        let bytes: Vec<u8> = stack.iter().flat_map(|word| (0x7000 + word * 8).to_le_bytes()).collect();
        let mut registers = Registers::new(machine, 0x1000);
        registers.set(machine.sp(), 0x7000);
        registers.set(machine.fp(), 0x7000);
        let (frames, _) = unwind(&registers, 0x7000, &bytes, frame_pointer_step(machine));
        prop_assert!(frames.len() <= stack.len() + 2);
    }
}
