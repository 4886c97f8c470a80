use proptest::prelude::*;

use super::{
    FoundStep, GivenSteps, PreviousWalk, Registers, StackCopy, StepId, StepSource, UnwindStep, amd64,
};
use super::{UnwoundFrame, unwind_stack, words};
use crate::unwind::{FrameOrigin, Stop, UnwindBase, UnwindRule};

const TOP: u64 = 0x7fff_0000;
const RBX: u8 = 3;

/// The step of a function: frames of `number % 4 + 2` words, of which every second function saves `rbx` below the return address.
fn step(number: u64) -> UnwindStep {
    if number == 0 {
        return UnwindStep::outermost(FrameOrigin::EhFrame, 16);
    }
    let mut rules = vec![(16, UnwindRule::Memory(UnwindBase::Cfa, -8))];
    let mut unchanged = !(1 << 16);
    match number % 5 {
        0 => unchanged = 0,
        1 => rules.push((12, UnwindRule::Value(UnwindBase::Register(RBX), 0))),
        2 | 3 => rules.push((RBX, UnwindRule::Memory(UnwindBase::Cfa, -16))),
        _ => {}
    }
    let cfa = UnwindRule::Value(UnwindBase::Register(7), size(number).cast_signed());
    UnwindStep { origin: FrameOrigin::EhFrame, cfa, rules: rules.into(), unchanged, is_signal: number == 9 }
}

fn address(number: u64) -> u64 {
    (number + 1) << 12
}

fn size(number: u64) -> u64 {
    (number % 4 + 2) * 8
}

fn program() -> GivenSteps {
    // A return address is looked up one byte before it, the address after a signal is not.
    (0..10).fold(GivenSteps::default(), |code, number| {
        let pc = address(number);
        code.at(pc + 0xf, step(number)).at(pc + 0x10, step(number))
    })
}

/// Registers and stack of functions called one by another, the outermost first, each with the rest of its frame.
fn stack(calls: &[(u64, u64)]) -> (Registers, Vec<u64>) {
    let mut below = Vec::new();
    for (&(caller, _), &(callee, rest)) in calls.iter().zip(&calls[1..]) {
        below.push(address(caller) + 0x10);
        below.extend(std::iter::repeat_n(rest, size(callee) as usize / 8 - 1));
    }
    below.reverse();
    let pc = address(calls.last().unwrap().0) + 0xf;
    let mut registers = amd64(pc, TOP - below.len() as u64 * 8, 0);
    registers.set(RBX, calls.last().unwrap().1);
    (registers, below)
}

fn walk(
    (registers, stack): &(Registers, Vec<u64>),
    code: &mut impl StepSource,
    previous: &mut PreviousWalk,
) -> (Vec<UnwoundFrame>, Stop) {
    let copy = StackCopy { start: registers.sp().unwrap(), bytes: &words(stack), big_endian: false };
    let mut frames = Vec::new();
    let stop = unwind_stack(registers, &copy, code, previous, &mut frames);
    (frames, stop)
}

proptest! {
    /// Stacks of which each begins as the previous one does, with words that change anywhere.
    #[test]
    fn walks_are_those_without_a_previous_one(
        stacks in prop::collection::vec(
            (0usize..12, prop::collection::vec((1u64..10, 0u64..3), 0..6), prop::option::of((any::<prop::sample::Index>(), 0u64..0xb011))),
            1..24,
        ),
    ) {
        let mut calls = vec![(0, 0)];
        let (mut code, mut previous) = (program(), PreviousWalk::default());
        for (common, called, changed) in stacks {
            calls.truncate(common.max(1));
            calls.extend(called);
            let mut copied = stack(&calls);
            if let Some((at, word)) = changed.filter(|_| !copied.1.is_empty()) {
                let at = at.index(copied.1.len());
                copied.1[at] = word;
            }
            let alone = walk(&copied, &mut code, &mut PreviousWalk::default());
            prop_assert_eq!(walk(&copied, &mut code, &mut previous), alone);
        }
    }
}

#[test]
fn steps_of_outer_frames_are_not_looked_for_again() {
    let (mut code, mut previous) = (program(), PreviousWalk::default());
    let mut frames_and_looked_for = |calls: &[(u64, u64)]| {
        let before = code.found.len();
        let (frames, stop) = walk(&stack(calls), &mut code, &mut previous);
        assert_eq!((frames.len(), stop), (calls.len(), Stop::Outermost));
        (frames, code.found.len() - before)
    };
    let (frames, looked_for) = frames_and_looked_for(&[(0, 0), (2, 1), (3, 2), (4, 5)]);
    assert_eq!(looked_for, 4);
    assert_eq!(frames_and_looked_for(&[(0, 0), (2, 1), (3, 2), (4, 5)]), (frames.clone(), 0));
    // The third function calls another one, which saves the register that the first left as it was.
    let (other, looked_for) = frames_and_looked_for(&[(0, 0), (2, 1), (3, 2), (7, 5)]);
    assert_eq!((&other[1..], looked_for), (&frames[1..], 1));
    // It was called from the same place with another register: frames outside of it are looked for again.
    assert_eq!(frames_and_looked_for(&[(0, 0), (2, 9), (3, 2), (7, 5)]), (other, 4));
}

/// Code of which a function is replaced.
struct Replaced {
    now: i64,
    steps: [GivenSteps; 2],
}

const REPLACED_AT: i64 = 100;

impl Replaced {
    fn is_new(&self) -> usize {
        usize::from(self.now >= REPLACED_AT)
    }
}

impl StepSource for Replaced {
    fn find(&mut self, pc: u64, all_registers: bool) -> Option<FoundStep> {
        let (from_ns, until_ns) =
            if self.now < REPLACED_AT { (i64::MIN, REPLACED_AT) } else { (REPLACED_AT, i64::MAX) };
        let code = &mut self.steps[usize::from(self.now >= REPLACED_AT)];
        code.find(pc, all_registers).map(|found| FoundStep { from_ns, until_ns, ..found })
    }

    fn at_ns(&self) -> i64 {
        self.now
    }

    fn step(&self, id: StepId) -> Option<&UnwindStep> {
        self.steps[self.is_new()].step(id)
    }

    fn is_code(&self, _address: u64) -> bool {
        true
    }

    fn memory(&self, _address: u64, _size: u8) -> Option<u64> {
        None
    }
}

#[test]
fn code_that_was_replaced_is_looked_up_again() {
    let copied = stack(&[(0, 0), (1, 1), (2, 2), (3, 1)]);
    // The second function returns to another place on the stack.
    let new = program().at(address(1) + 0xf, step(0));
    let mut code = Replaced { now: 50, steps: [program(), new] };
    let mut previous = PreviousWalk::default();
    let lens = [50, 60, 150, 160, 50].map(|now| {
        code.now = now;
        walk(&copied, &mut code, &mut previous).0.len()
    });
    assert_eq!(lens, [4, 4, 3, 3, 4]);
    assert_eq!(code.steps.map(|steps| steps.found.len()), [8, 3]);
}
