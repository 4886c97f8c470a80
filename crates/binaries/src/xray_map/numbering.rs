use super::container::Container;
use super::findings::{Findings, RENUMBERED};
use super::index;
use super::map::{Function, Sled};

/// Numbers functions as the runtime does: by the index where there is a sound one, else by changes of address.
pub(super) fn functions(container: &Container<'_>, sleds: &[Sled], findings: &mut Findings) -> Vec<Function> {
    let by_address = by_address(sleds);
    let Some(section) = &container.index else { return by_address };
    let Some(by_index) = index::functions(container, section, sleds, findings) else { return by_address };
    let differing = by_index.iter().zip(&by_address).find(|(one, other)| one != other);
    let differing = differing.map(|(one, _)| one.id);
    let shorter = || by_index.len().min(by_address.len()) as u32;
    if let Some(id) = differing.or_else(|| (by_index.len() != by_address.len()).then(|| shorter() + 1)) {
        findings.at(RENUMBERED, section.file_offset, || {
            format!(
                "xray_fn_idx has {} functions and the map {} changes of address; ids are the runtime's, by xray_fn_idx, \
                 and others from {id} on in llvm-xray",
                by_index.len(),
                by_address.len()
            )
        });
    }
    by_index
}

/// A new function begins wherever the function's address is another than in the entry before.
fn by_address(sleds: &[Sled]) -> Vec<Function> {
    let mut functions: Vec<Function> = Vec::new();
    for (at, sled) in sleds.iter().enumerate() {
        match functions.last_mut() {
            Some(last) if last.place == sled.function => last.sleds.end = at + 1,
            _ => {
                let id = functions.len() as u32 + 1;
                functions.push(Function { id, place: sled.function, sleds: at..at + 1 });
            }
        }
    }
    functions
}
