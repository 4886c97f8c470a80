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
    // What is in a function follows its parameters; it must not refer to types by their numbers, which change.
    let is_inside = raw.starts_with("_ZZ") && suffix.starts_with('E') && !suffix.contains(['S', 'T']);
    if !is_qualified || !(suffix.is_empty() || suffix.starts_with('.') || is_inside) {
        return None;
    }
    // Itanium ABI 5.1.8: `T_` is the first template parameter, `T0_` the second.
    let first: usize = if index.is_empty() { 0 } else { index.parse::<usize>().ok()?.checked_add(1)? };
    let is_last =
        cpp_name(&format!("{before}{}{suffix}", types(qualifiers, first.checked_add(1)?, 1)), style)
            .is_none();
    // The other parameters are the same without the pack.
    let name = cpp_name(&format!("{before}{suffix}"), style)?;
    if !is_last {
        return None;
    }
    let candidates = without_pack(before)
        .take(MAX_ATTEMPTS)
        .filter(|candidate| cpp_name(&format!("{candidate}{suffix}"), style).is_some_and(|one| one == name));
    // A pack inside a type of the pack gives the same name, but fewer types.
    let named = candidates.filter_map(|candidate| longest(&candidate, suffix, qualifiers, first, style));
    let found = named.reduce(|most, other| if other.0 > most.0 { other } else { most });
    found.map(|(_, name)| name)
}

/// The same where the result mentions the pack too: `S3_` may stand for it, or for the parameters, then. The result is not shown,
/// so a function that has the same name, and where `T_` stands for the pack, is expanded instead.
pub(super) fn expanded_as_in_result(raw: &str, name: &str, style: DemangleOptions) -> Option<String> {
    const PLACES: [&str; 4] = ["T_", "T0_", "T1_", "T2_"];
    let (mangled, suffix) = raw.split_at_checked(raw.find('.').unwrap_or(raw.len()))?;
    let (before, substitution) = mangled.strip_suffix('_')?.rsplit_once('S')?;
    if !mangled.contains("Dp") || !substitution.bytes().all(|one| one.is_ascii_alphanumeric()) {
        return None;
    }
    let same = |plain: String| {
        let is_same = cpp_name(&plain, style).is_some_and(|one| one == name);
        is_same.then(|| expanded(&plain, style))?
    };
    let is_pack = before.trim_end_matches(['O', 'R', 'K']).ends_with("Dp");
    if is_pack {
        return PLACES.iter().find_map(|place| same(format!("{before}{place}{suffix}")));
    }
    // The ends of the template's arguments, and of the name that they are in.
    let ends = mangled.match_indices("EE").flat_map(|(at, _)| [at.saturating_add(2), at.saturating_add(3)]);
    let functions = ends.filter_map(|end| mangled.get(..end)).filter(|function| function.ends_with("EE"));
    functions.take(MAX_ATTEMPTS).find_map(|function| {
        let packs = ["O", "RK", "R"].iter().flat_map(|kind| PLACES.map(|place| format!("{kind}{place}")));
        packs.map(|pack| format!("{function}vDp{pack}{suffix}")).find_map(same)
    })
}

/// `before` without the `J` and the `E` around a pack that ends the template arguments (Itanium ABI 5.1.7), for each
/// that could be it, the last one first.
fn without_pack(before: &str) -> impl Iterator<Item = String> + '_ {
    before.rmatch_indices('J').flat_map(move |(start, _)| {
        let after = before.get(start.saturating_add(1)..).unwrap_or_default();
        after.match_indices("EE").filter_map(move |(end, _)| {
            let head = before.get(..start)?;
            Some(format!("{head}{}{}", after.get(..end)?, after.get(end.saturating_add(1)..)?))
        })
    })
}

/// The name with as many types as the template has, and their number. One is too few: the demangler writes a single type correctly.
fn longest(
    before: &str,
    suffix: &str,
    qualifiers: &str,
    first: usize,
    style: DemangleOptions,
) -> Option<(usize, String)> {
    let named = |count| {
        let name = cpp_name(&format!("{before}{}{suffix}", types(qualifiers, first, count)), style)?;
        Some((count, name))
    };
    (2..=MAX_TYPES).map_while(named).last()
}

/// `count` parameters of the types of consecutive template parameters.
fn types(qualifiers: &str, first: usize, count: usize) -> String {
    (first..first.saturating_add(count))
        .map(|index| index.checked_sub(1).map_or_else(String::new, |number| number.to_string()))
        .map(|index| format!("{qualifiers}T{index}_"))
        .collect()
}
