use super::{GivenSteps, StackCopy, UnwoundFrame, amd64, unwind_stack, unwound, words};
use crate::unwind::{
    FrameOrigin, Machine, Registers, Stop, UnwindBase, UnwindRule, UnwindStep, step::frame_pointer_step,
};

/// A frame of amd64 whose CFA is so far above the stack pointer.
fn sp_step(origin: FrameOrigin, above: i64) -> UnwindStep {
    let (cfa, rules) = (
        UnwindRule::Value(UnwindBase::Register(7), above),
        Box::from([(16, UnwindRule::Memory(UnwindBase::Cfa, -8))]),
    );
    UnwindStep { origin, cfa, rules, unchanged: !(1 << 16), is_signal: false }
}

/// The step of a function that saves rbx, and of one whose CFA is by rbx, as of glibc's `_dl_runtime_resolve`.
fn steps_with_rbx() -> [UnwindStep; 2] {
    let saved = |(register, at)| (register, UnwindRule::Memory(UnwindBase::Cfa, at));
    let saves =
        UnwindStep { rules: [(16, -8), (3, -16)].map(saved).into(), ..sp_step(FrameOrigin::EhFrame, 16) };
    let cfa = UnwindRule::Value(UnwindBase::Register(3), 8);
    [saves, UnwindStep { cfa, ..sp_step(FrameOrigin::EhFrame, 8) }]
}

fn pcs(frames: &[UnwoundFrame]) -> Vec<(u64, FrameOrigin)> {
    frames.iter().map(|frame| (frame.pc, frame.origin)).collect()
}

#[test]
fn each_frame_states_its_origin() {
    let code = GivenSteps::default()
        .at(0x1010, sp_step(FrameOrigin::SFrame, 8))
        .at(0x200f, sp_step(FrameOrigin::EhFrame, 16))
        .at(0x300f, UnwindStep::outermost(FrameOrigin::EhFrame, 16));
    let (frames, stop) = unwound(&amd64(0x1010, 0x7000, 0), &words(&[0x2010, 1, 0x3010]), &mut { code });
    let found =
        [(0x1010, FrameOrigin::Sampled), (0x2010, FrameOrigin::SFrame), (0x3010, FrameOrigin::EhFrame)];
    assert_eq!((pcs(&frames), stop), (found.to_vec(), Stop::Outermost));
}

#[test]
fn an_interrupted_address_is_not_a_return_address() {
    let mut handler = sp_step(FrameOrigin::EhFrame, 8);
    handler.is_signal = true;
    let code =
        GivenSteps::default().at(0x1010, handler).at(0x2000, UnwindStep::outermost(FrameOrigin::EhFrame, 16));
    let (frames, stop) = unwound(&amd64(0x1010, 0x7000, 0), &words(&[0x2000]), &mut { code });
    assert_eq!((frames[1].pc, frames[1].is_return, stop), (0x2000, false, Stop::Outermost));
}

/// glibc's rules for `__restore_rt` begin one byte before it, because unwinders look up the byte before a return address.
#[test]
fn the_code_that_a_signal_handler_returns_to_begins_at_the_return_address() {
    let mut trampoline = sp_step(FrameOrigin::EhFrame, 8);
    trampoline.is_signal = true;
    let code = GivenSteps::default()
        .at(0x1010, sp_step(FrameOrigin::EhFrame, 8))
        .at(0x1fff, trampoline)
        .at(0x3010, sp_step(FrameOrigin::EhFrame, 8))
        .at(0x400f, UnwindStep::outermost(FrameOrigin::EhFrame, 16));
    let stack = words(&[0x2000, 0x3010, 0x4010]);
    let (frames, stop) = unwound(&amd64(0x1010, 0x7000, 0), &stack, &mut { code });
    let found: Vec<_> = frames.iter().map(|frame| (frame.pc, frame.is_return)).collect();
    assert_eq!(found, [(0x1010, false), (0x2000, false), (0x3010, false), (0x4010, true)]);
    assert_eq!(stop, Stop::Outermost);
}

#[test]
fn a_cut_stack_is_distinguished_from_a_bad_address() {
    let step = |above| GivenSteps::default().at(0x1010, sp_step(FrameOrigin::EhFrame, above));
    let stop = |above| unwound(&amd64(0x1010, 0x7000, 0), &words(&[1, 2]), &mut step(above)).1;
    assert_eq!(stop(24), Stop::Cut, "just after the copy");
    assert_eq!(stop(1 << 40), Stop::BadRead, "far away");
}

#[test]
fn a_frame_does_not_lie_below_what_it_called() {
    for above in [0, -8] {
        let code = GivenSteps::default().at(0x1010, sp_step(FrameOrigin::EhFrame, above));
        let stop = unwound(&amd64(0x1010, 0x7000, 0), &words(&[0x1011]), &mut { code }).1;
        assert_eq!(stop, Stop::NotMonotonic, "{above}");
    }
}

/// Rules may swap registers: all see what there was before.
#[test]
fn rules_see_the_registers_of_the_frame() {
    let mut swapped = sp_step(FrameOrigin::EhFrame, 8);
    let (rbx, r12) =
        (UnwindRule::Value(UnwindBase::Register(12), 0), UnwindRule::Value(UnwindBase::Register(3), 0));
    swapped.rules = Box::from([(16, UnwindRule::Memory(UnwindBase::Cfa, -8)), (3, rbx), (12, r12)]);
    let by_r12 = UnwindStep {
        cfa: UnwindRule::Value(UnwindBase::Register(12), 8),
        ..sp_step(FrameOrigin::EhFrame, 8)
    };
    let mut registers = amd64(0x1010, 0x7000, 0);
    registers.set(3, 0x7010);
    registers.set(12, 0);
    let mut code = GivenSteps::default().at(0x1010, swapped).at(0x200f, by_r12);
    let (frames, _) = unwound(&registers, &words(&[0x2010, 0, 0x3010]), &mut code);
    assert_eq!(frames.last().map(|frame| (frame.pc, frame.sp)), Some((0x3010, 0x7018)));
}

#[test]
fn return_addresses_in_the_kernels_half_are_refused() {
    for ra in [u64::MAX, 1 << 63, (-512i64) as u64] {
        let code = GivenSteps::default().at(0x1010, sp_step(FrameOrigin::EhFrame, 8));
        let (frames, stop) = unwound(&amd64(0x1010, 0x7000, 0), &words(&[ra]), &mut { code });
        assert_eq!((frames.len(), stop), (1, Stop::BadReturnAddress));
    }
}

#[test]
fn frame_pointers_are_followed_as_far_as_they_lead_to_code() {
    let stack = words(&[0x7020, 0x2010, 0, 0, 0x7030, 0x3010, 0, 0xdead]);
    let mut code = GivenSteps { frame_pointer: frame_pointer_step(Machine::Amd64), ..GivenSteps::default() };
    let (frames, stop) = unwound(&amd64(0x1010, 0x7000, 0x7000), &stack, &mut code);
    assert_eq!((frames.len(), stop), (3, Stop::NoRule), "0xdead is not code");
    let (_, stop) = unwound(&amd64(0x1010, 0x7000, 0), &stack, &mut code);
    assert_eq!(stop, Stop::Outermost, "programs begin with a frame pointer of 0");
    let loops = words(&[0x7000, 0x2010]);
    assert_eq!(unwound(&amd64(0x1010, 0x7000, 0x7000), &loops, &mut code).1, Stop::NoRule);
}

/// A caller is found through a register that SFrame does not describe: unwinding starts again without SFrame.
#[test]
fn registers_missing_from_sframe_are_found_by_other_rules() {
    let forgets = UnwindStep { unchanged: 0, ..sp_step(FrameOrigin::SFrame, 8) };
    let [_, by_rbx] = steps_with_rbx();
    let mut code = GivenSteps::default()
        .at(0x1010, forgets)
        .at(0x200f, by_rbx)
        .at(0x300f, UnwindStep::outermost(FrameOrigin::EhFrame, 16));
    let mut registers = amd64(0x1010, 0x7000, 0);
    registers.set(3, 0x7008);
    let stack = words(&[0x2010, 0x3010]);
    assert_eq!(unwound(&registers, &stack, &mut code).1, Stop::LostRegister);
    code.full.insert(0x1010, sp_step(FrameOrigin::EhFrame, 8));
    let (frames, stop) = unwound(&registers, &stack, &mut code);
    assert_eq!((frames.len(), frames[1].origin, stop), (3, FrameOrigin::EhFrame, Stop::Outermost));
}

#[test]
fn registers_that_are_not_restored_at_first_are_found() {
    let [saves_rbx, by_rbx] = steps_with_rbx();
    let mut code = GivenSteps::default()
        .at(0x1010, saves_rbx)
        .at(0x200f, by_rbx)
        .at(0x300f, UnwindStep::outermost(FrameOrigin::EhFrame, 16));
    let mut registers = amd64(0x1010, 0x7000, 0);
    registers.set(3, 1);
    let (frames, stop) = unwound(&registers, &words(&[0x7018, 0x2010, 0, 0x3010]), &mut code);
    let found: Vec<_> = frames.iter().map(|frame| (frame.pc, frame.sp)).collect();
    assert_eq!((found, stop), (vec![(0x1010, 0x7000), (0x2010, 0x7010), (0x3010, 0x7020)], Stop::Outermost));
}

/// As above, with a function between that only SFrame describes.
#[test]
fn registers_that_are_not_restored_at_first_are_found_through_sframe() {
    let [saves_rbx, by_rbx] = steps_with_rbx();
    let mut code = GivenSteps::default()
        .at(0x1010, saves_rbx)
        .at(0x200f, sp_step(FrameOrigin::SFrame, 8))
        .at(0x300f, by_rbx)
        .at(0x400f, UnwindStep::outermost(FrameOrigin::SFrame, 16));
    code.only_sframe = vec![0x200f, 0x400f];
    let mut registers = amd64(0x1010, 0x7000, 0);
    registers.set(3, 1);
    let (frames, stop) = unwound(&registers, &words(&[0x7020, 0x2010, 0x3010, 0, 0x4010]), &mut code);
    assert_eq!((frames.len(), frames[3].pc, stop), (4, 0x4010, Stop::Outermost));
}

#[test]
fn aarch64_removes_signatures_and_allows_leaf_frames() {
    let mut registers = Registers::new(Machine::Aarch64, 0x1010);
    registers.set(31, 0x7000);
    registers.set(30, 0x00a5_0000_0000_2010);
    let leaf = UnwindStep {
        origin: FrameOrigin::SFrame,
        cfa: UnwindRule::Value(UnwindBase::Register(31), 0),
        rules: Box::default(),
        unchanged: 1 << 30 | 1 << 29,
        is_signal: false,
    };
    let code = GivenSteps::default().at(0x1010, leaf.clone()).at(0x200f, leaf);
    let (frames, stop) = unwound(&registers, &[], &mut { code });
    assert_eq!(frames[1].pc, 0x2010);
    assert_eq!((frames.len(), stop), (2, Stop::NotMonotonic), "only the innermost function is a leaf");
}

#[test]
fn s390x_has_its_stack_pointer_below_the_cfa() {
    let mut registers = Registers::new(Machine::S390x, 0x1010);
    registers.set(15, 0x7000);
    let step = UnwindStep {
        origin: FrameOrigin::SFrame,
        cfa: UnwindRule::Value(UnwindBase::Register(15), 160 + 160),
        rules: Box::from([(14, UnwindRule::Memory(UnwindBase::Cfa, -48))]),
        unchanged: 1 << 11,
        is_signal: false,
    };
    let mut stack = vec![0; 320];
    stack[272..280].copy_from_slice(&0x2010u64.to_be_bytes());
    let stack = StackCopy { start: 0x7000, bytes: &stack, big_endian: true };
    let mut frames = Vec::new();
    let mut code = GivenSteps::default().at(0x1010, step);
    let stop = unwind_stack(&registers, &stack, &mut code, &mut frames);
    assert_eq!((frames[1].pc, frames[1].sp, stop), (0x2010, 0x7000 + 160, Stop::NoRule));
}

#[test]
fn the_last_register_pair_determines_the_machine() {
    let registers = Registers::from_pairs(&[7, 0x7000, 6, 1, 16, 0x1010]).unwrap();
    assert_eq!((registers.machine(), registers.pc, registers.sp()), (Machine::Amd64, 0x1010, Some(0x7000)));
    assert_eq!(registers.get(16), None, "the return address is unknown");
    let arm = Registers::from_pairs(&[16, 5, 31, 0x7000, 32, 0x1010]).unwrap();
    assert_eq!((arm.machine(), arm.get(16)), (Machine::Aarch64, Some(5)));
    assert!(Registers::from_pairs(&[7, 1]).is_none());
    assert!(Registers::from_pairs(&[]).is_none());
}
