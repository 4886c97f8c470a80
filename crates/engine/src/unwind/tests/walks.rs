use super::{Frame, Stack, Told, amd64, unwound, walk, words};
use crate::unwind::{Base, Machine, Origin, Registers, Rule, Step, Stop, frame_pointer};

/// A frame of amd64 whose CFA is so far above the stack pointer.
fn sp_step(origin: Origin, above: i64) -> Step {
    let (cfa, rules) = (Rule::Is(Base::Register(7), above), Box::from([(16, Rule::At(Base::Cfa, -8))]));
    Step { origin, cfa, rules, kept: !(1 << 16), is_signal: false }
}

fn pcs(frames: &[Frame]) -> Vec<(u64, Origin)> {
    frames.iter().map(|frame| (frame.pc, frame.origin)).collect()
}

#[test]
fn each_frame_says_what_found_it() {
    let code = Told::default()
        .at(0x1010, sp_step(Origin::SFrame, 8))
        .at(0x200f, sp_step(Origin::EhFrame, 16))
        .at(0x300f, Step::outermost(Origin::EhFrame, 16));
    let (frames, stop) = unwound(&amd64(0x1010, 0x7000, 0), &words(&[0x2010, 1, 0x3010]), &mut { code });
    let found = [(0x1010, Origin::Sampled), (0x2010, Origin::SFrame), (0x3010, Origin::EhFrame)];
    assert_eq!((pcs(&frames), stop), (found.to_vec(), Stop::Outermost));
}

#[test]
fn what_a_signal_interrupted_is_looked_up_where_it_is() {
    let mut handler = sp_step(Origin::EhFrame, 8);
    handler.is_signal = true;
    let code = Told::default().at(0x1010, handler).at(0x2000, Step::outermost(Origin::EhFrame, 16));
    let (frames, stop) = unwound(&amd64(0x1010, 0x7000, 0), &words(&[0x2000]), &mut { code });
    assert_eq!((frames[1].pc, frames[1].is_return, stop), (0x2000, false, Stop::Outermost));
}

#[test]
fn a_stack_that_is_cut_is_told_from_one_that_is_wrong() {
    let step = |above| Told::default().at(0x1010, sp_step(Origin::EhFrame, above));
    let stop = |above| unwound(&amd64(0x1010, 0x7000, 0), &words(&[1, 2]), &mut step(above)).1;
    assert_eq!(stop(24), Stop::Cut, "right behind the copy");
    assert_eq!(stop(1 << 40), Stop::BadRead, "far away");
}

#[test]
fn a_frame_does_not_lie_below_what_it_called() {
    for above in [0, -8] {
        let code = Told::default().at(0x1010, sp_step(Origin::EhFrame, above));
        let stop = unwound(&amd64(0x1010, 0x7000, 0), &words(&[0x1011]), &mut { code }).1;
        assert_eq!(stop, Stop::NotMonotonic, "{above}");
    }
}

/// Rules may swap registers: all see what there was before.
#[test]
fn rules_see_the_registers_of_the_frame() {
    let mut swapped = sp_step(Origin::EhFrame, 8);
    let (rbx, r12) = (Rule::Is(Base::Register(12), 0), Rule::Is(Base::Register(3), 0));
    swapped.rules = Box::from([(16, Rule::At(Base::Cfa, -8)), (3, rbx), (12, r12)]);
    let by_r12 = Step { cfa: Rule::Is(Base::Register(12), 8), ..sp_step(Origin::EhFrame, 8) };
    let mut registers = amd64(0x1010, 0x7000, 0);
    registers.set(3, 0x7010);
    registers.set(12, 0);
    let mut code = Told::default().at(0x1010, swapped).at(0x200f, by_r12);
    let (frames, _) = unwound(&registers, &words(&[0x2010, 0, 0x3010]), &mut code);
    assert_eq!(frames.last().map(|frame| (frame.pc, frame.sp)), Some((0x3010, 0x7018)));
}

#[test]
fn return_addresses_of_the_kernels_half_are_none() {
    for ra in [u64::MAX, 1 << 63, (-512i64) as u64] {
        let code = Told::default().at(0x1010, sp_step(Origin::EhFrame, 8));
        let (frames, stop) = unwound(&amd64(0x1010, 0x7000, 0), &words(&[ra]), &mut { code });
        assert_eq!((frames.len(), stop), (1, Stop::BadReturnAddress));
    }
}

#[test]
fn frame_pointers_are_followed_as_far_as_they_lead_to_code() {
    let stack = words(&[0x7020, 0x2010, 0, 0, 0x7030, 0x3010, 0, 0xdead]);
    let mut code = Told { frame_pointer: frame_pointer::step(Machine::Amd64), ..Told::default() };
    let (frames, stop) = unwound(&amd64(0x1010, 0x7000, 0x7000), &stack, &mut code);
    assert_eq!((frames.len(), stop), (3, Stop::NoRule), "0xdead is no code");
    let (_, stop) = unwound(&amd64(0x1010, 0x7000, 0), &stack, &mut code);
    assert_eq!(stop, Stop::Outermost, "programs begin with a frame pointer of 0");
    let loops = words(&[0x7000, 0x2010]);
    assert_eq!(unwound(&amd64(0x1010, 0x7000, 0x7000), &loops, &mut code).1, Stop::NoRule);
}

/// A caller is found through a register that SFrame has forgotten: the walk begins again without it.
#[test]
fn registers_that_sframe_forgets_are_found_by_other_rules() {
    let forgets = Step { kept: 0, ..sp_step(Origin::SFrame, 8) };
    let by_rbx = Step { cfa: Rule::Is(Base::Register(3), 8), ..sp_step(Origin::EhFrame, 8) };
    let mut code = Told::default()
        .at(0x1010, forgets)
        .at(0x200f, by_rbx)
        .at(0x300f, Step::outermost(Origin::EhFrame, 16));
    let mut registers = amd64(0x1010, 0x7000, 0);
    registers.set(3, 0x7008);
    let stack = words(&[0x2010, 0x3010]);
    assert_eq!(unwound(&registers, &stack, &mut code).1, Stop::LostRegister);
    code.full.insert(0x1010, sp_step(Origin::EhFrame, 8));
    let (frames, stop) = unwound(&registers, &stack, &mut code);
    assert_eq!((frames.len(), frames[1].origin, stop), (3, Origin::EhFrame, Stop::Outermost));
}

#[test]
fn aarch64_takes_signatures_off_and_knows_leaves() {
    let mut registers = Registers::new(Machine::Aarch64, 0x1010);
    registers.set(31, 0x7000);
    registers.set(30, 0x00a5_0000_0000_2010);
    let leaf = Step {
        origin: Origin::SFrame,
        cfa: Rule::Is(Base::Register(31), 0),
        rules: Box::default(),
        kept: 1 << 30 | 1 << 29,
        is_signal: false,
    };
    let code = Told::default().at(0x1010, leaf.clone()).at(0x200f, leaf);
    let (frames, stop) = unwound(&registers, &[], &mut { code });
    assert_eq!(frames[1].pc, 0x2010);
    assert_eq!((frames.len(), stop), (2, Stop::NotMonotonic), "only the innermost function is a leaf");
}

#[test]
fn s390x_has_its_stack_pointer_below_the_cfa() {
    let mut registers = Registers::new(Machine::S390x, 0x1010);
    registers.set(15, 0x7000);
    let step = Step {
        origin: Origin::SFrame,
        cfa: Rule::Is(Base::Register(15), 160 + 160),
        rules: Box::from([(14, Rule::At(Base::Cfa, -48))]),
        kept: 1 << 11,
        is_signal: false,
    };
    let mut stack = vec![0; 320];
    stack[272..280].copy_from_slice(&0x2010u64.to_be_bytes());
    let stack = Stack { start: 0x7000, bytes: &stack, big_endian: true };
    let mut frames = Vec::new();
    let mut code = Told::default().at(0x1010, step);
    let stop = walk(&registers, &stack, &mut code, &mut frames);
    assert_eq!((frames[1].pc, frames[1].sp, stop), (0x2010, 0x7000 + 160, Stop::NoRule));
}

#[test]
fn pairs_of_registers_tell_their_machine() {
    let registers = Registers::from_pairs(&[7, 0x7000, 6, 1, 16, 0x1010]).unwrap();
    assert_eq!((registers.machine(), registers.pc, registers.sp()), (Machine::Amd64, 0x1010, Some(0x7000)));
    assert_eq!(registers.get(16), None, "the return address is not known yet");
    let arm = Registers::from_pairs(&[16, 5, 31, 0x7000, 32, 0x1010]).unwrap();
    assert_eq!((arm.machine(), arm.get(16)), (Machine::Aarch64, Some(5)));
    assert!(Registers::from_pairs(&[7, 1]).is_none());
    assert!(Registers::from_pairs(&[]).is_none());
}
