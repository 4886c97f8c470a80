//! The call chain of a sample: what was recorded of it, and where the sample was taken.
//!
//! The kernel walks the stack from the registers of the interrupt. The address of the sample may be another one: a precise event
//! (PEBS, IBS) states that of the instruction that counted, and a chain may be recorded without its part in the kernel. As in
//! `perf report`, which names a sample by its address, that is the innermost address. With `--call-graph lbr` the user part is the
//! processor's record of calls.

use super::consts::context::{
    CONTEXT_GUEST_KERNEL, CONTEXT_GUEST_USER, CONTEXT_KERNEL, CONTEXT_MAX, CONTEXT_USER,
    CONTEXT_USER_DEFERRED,
};
use super::consts::misc;
use super::deferred::DeferredChain;
use super::perf_file::PerfFile;
use super::record::RawEvent;
use super::sample::SampleHead;

/// Adds the addresses of a sample of an event, innermost first, with markers. Returns whether the user part is unwound with
/// recorded registers.
pub(crate) fn push_chain(
    file: &PerfFile,
    record: &RawEvent<'_>,
    head: &SampleHead<'_>,
    event: usize,
    addresses: &mut Vec<u64>,
) -> bool {
    let registers = file.user_registers().get(event).filter(|registers| !registers.is_empty());
    let registers = registers.filter(|registers| !registers.have_stack || file.has_stack_copy(record));
    if head.pid.is_some_and(|pid| pid < -1) {
        push_guest_chain(head, record.misc, addresses);
        return registers.is_some();
    }
    let words = || head.callchain.iter().flat_map(|words| words.iter());
    match file.survey().deferred.chain(file, head, record.location) {
        None => addresses.extend(words()),
        Some(DeferredChain { num_before, user_part: Some(user_part) }) => {
            addresses.extend(words().take(num_before));
            addresses.push(CONTEXT_USER);
            addresses.extend(user_part.iter());
        }
        Some(DeferredChain { num_before, user_part: None }) => {
            addresses.extend(words().take(num_before));
            if num_before == 0 {
                addresses.extend(head.ip);
            }
            addresses.push(CONTEXT_USER_DEFERRED);
        }
    }
    if file.attributes.list().get(event).is_some_and(|event| event.layout.branches.is_call_stack) {
        replace_user_part(file, record, addresses);
    }
    match head.ip {
        Some(ip) if addresses.is_empty() => {
            // Elsewhere an address in the lower half is of the program: a precise event was counted before the kernel was entered.
            if record.misc & misc::CPUMODE_MASK == misc::KERNEL && ip >> 63 == 0 && file.has_low_kernel() {
                addresses.push(CONTEXT_KERNEL);
            }
            addresses.push(ip);
        }
        Some(ip) if ip != 0 => {
            let has_stack = registers.is_some_and(|registers| registers.have_stack);
            begin_at(ip, record.misc, has_stack, addresses);
        }
        _ => {}
    }
    registers.is_some()
}

/// Replaces the user part by the calls that the processor recorded: the target of the latest one, then where each of them is.
fn replace_user_part(file: &PerfFile, record: &RawEvent<'_>, addresses: &mut Vec<u64>) {
    let Some(user) = addresses.iter().position(|&word| word == CONTEXT_USER) else { return };
    let Some(calls) = file.sample(record).ok().and_then(|sample| sample.branch_stack) else { return };
    let mut words = calls.iter();
    let mut is_latest = true;
    while let (Some(from), Some(to), Some(_)) = (words.next(), words.next(), words.next()) {
        if std::mem::take(&mut is_latest) {
            addresses.truncate(user.saturating_add(1));
            addresses.push(to);
        }
        // Other chains have return addresses; this one belongs to the call's instruction as they do.
        addresses.push(from.wrapping_add(1));
    }
}

/// Adds the addresses of a sample of a guest, with markers that state that they are in its address spaces and not in the host's.
fn push_guest_chain(head: &SampleHead<'_>, misc: u16, addresses: &mut Vec<u64>) {
    addresses.push(if misc & misc::CPUMODE_MASK == misc::GUEST_KERNEL {
        CONTEXT_GUEST_KERNEL
    } else {
        CONTEXT_GUEST_USER
    });
    let words = head.callchain.iter().flat_map(|words| words.iter());
    let start = addresses.len();
    addresses.extend(words.map(|word| match word {
        CONTEXT_KERNEL => CONTEXT_GUEST_KERNEL,
        CONTEXT_USER => CONTEXT_GUEST_USER,
        word => word,
    }));
    if !addresses.get(start..).is_some_and(|added| added.iter().any(|&word| word < CONTEXT_MAX)) {
        addresses.extend(head.ip);
    }
}

/// Makes the address of a sample the innermost one of its chain.
fn begin_at(ip: u64, misc: u16, has_stack: bool, addresses: &mut Vec<u64>) {
    let own = match misc & misc::CPUMODE_MASK {
        misc::KERNEL => CONTEXT_KERNEL,
        misc::USER => CONTEXT_USER,
        _ => return,
    };
    let Some(innermost) = addresses.iter().position(|&word| word < CONTEXT_MAX) else { return };
    if addresses.get(innermost) == Some(&ip) {
        return;
    }
    let context = match addresses.get(..innermost).and_then(|markers| markers.last()) {
        Some(&marker) => marker,
        None => own,
    };
    match (own, context) {
        (own, context) if own == context => {
            if let Some(address) = addresses.get_mut(innermost) {
                *address = ip;
            }
        }
        (CONTEXT_KERNEL, CONTEXT_USER) => {
            addresses.splice(..innermost, [CONTEXT_KERNEL, ip, CONTEXT_USER]);
        }
        // The interrupt came after the instruction that entered the kernel.
        (CONTEXT_USER, CONTEXT_KERNEL) if !has_stack => {
            let user = addresses.iter().position(|&word| word == CONTEXT_USER);
            let outer = user.map_or(addresses.len(), |user| user.saturating_add(2).min(addresses.len()));
            addresses.splice(..outer, [CONTEXT_USER, ip]);
        }
        _ => {}
    }
}
