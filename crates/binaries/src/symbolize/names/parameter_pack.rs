//! Parameters that are an expanded pack: `emplace_back<A, B>(A&&, B&&)`.
//!
//! The demangler applies each qualifier of a pack (`O`, `R`, `K`) to one of its types only, and writes `(A&&, B)`. Where
//! the pack is the last template argument and the last parameter, the types can be mangled one by one instead, as those
//! of a function without a pack, which has the same name.

use cpp_demangle::DemangleOptions;

use super::{MAX_ATTEMPTS, cpp_name};

/// Limit on the types of a pack: longer ones stay as the demangler writes them.
const MAX_TYPES: usize = 32;

/// The name of a function whose last parameter is a pack of two types or more. `None` where it is not, or the pack
/// is mentioned in the other parameters or the result.
pub(super) fn expanded(raw: &str, style: DemangleOptions) -> Option<String> {
    let (before, parameter) = raw.rsplit_once("Dp")?;
    let (qualifiers, place) = parameter.split_once('T')?;
    let (index, suffix) = place.split_once('_')?;
    let is_qualified = !qualifiers.is_empty() && qualifiers.bytes().all(|one| b"ROKV".contains(&one));
    if !is_qualified || !(suffix.is_empty() || suffix.starts_with('.')) {
        return None;
    }
    // Itanium ABI 5.1.8: `T_` is the first template parameter, `T0_` the second.
    let first: usize = if index.is_empty() { 0 } else { index.parse::<usize>().ok()?.checked_add(1)? };
    let is_last =
        cpp_name(&format!("{before}{}{suffix}", types(qualifiers, first.checked_add(1)?, 1)), style)
            .is_none();
    let name = cpp_name(raw, style.no_params())?;
    if !is_last {
        return None;
    }
    without_pack(before, &format!("T{index}_"))
        .take(MAX_ATTEMPTS)
        .filter(|candidate| {
            cpp_name(&format!("{candidate}{suffix}"), style.no_params()).is_some_and(|one| one == name)
        })
        .find_map(|candidate| longest(&candidate, suffix, qualifiers, first, style))
}

/// `before` without the `J` and the `E` around a pack that ends the template arguments (Itanium ABI 5.1.7), for each
/// that could be it, the last one first.
fn without_pack<'a>(before: &'a str, place: &'a str) -> impl Iterator<Item = String> + 'a {
    before.rmatch_indices('J').flat_map(move |(start, _)| {
        let after = before.get(start.saturating_add(1)..).unwrap_or_default();
        after.match_indices("EE").filter_map(move |(end, _)| {
            let head = before.get(..start)?;
            let (elements, rest) = (after.get(..end)?, after.get(end.saturating_add(1)..)?);
            (!rest.contains(place)).then(|| format!("{head}{elements}{rest}"))
        })
    })
}

/// The name with as many types as the template has. One is too few: the demangler writes a single type correctly.
fn longest(
    before: &str,
    suffix: &str,
    qualifiers: &str,
    first: usize,
    style: DemangleOptions,
) -> Option<String> {
    (2..=MAX_TYPES)
        .map_while(|count| cpp_name(&format!("{before}{}{suffix}", types(qualifiers, first, count)), style))
        .last()
}

/// `count` parameters of the types of consecutive template parameters.
fn types(qualifiers: &str, first: usize, count: usize) -> String {
    (first..first.saturating_add(count))
        .map(|index| index.checked_sub(1).map_or_else(String::new, |number| number.to_string()))
        .map(|index| format!("{qualifiers}T{index}_"))
        .collect()
}
