//! Qualifiers of names in classes, which the demangler writes after the class where a parameter of its type precedes them.

/// Most qualifiers that are moved: hostile names have thousands.
const MAX_MOVED: usize = 64;

/// `A::B const&` for `A const::B&`, `A::B*` for `A*::B`.
pub(super) fn after_names(mut name: String) -> String {
    for _ in 0..MAX_MOVED {
        let Some((start, end)) = misplaced(&name) else { break };
        let (Some(qualifier), Some(rest)) = (name.get(start..end), name.get(end..)) else { break };
        let qualifier = qualifier.to_owned();
        let to = end.saturating_add(len_of_names(rest));
        if !name.is_char_boundary(to) {
            break;
        }
        name.insert_str(to, &qualifier);
        name.replace_range(start..end, "");
    }
    name
}

/// Where a qualifier is that a name in its class follows.
fn misplaced(name: &str) -> Option<(usize, usize)> {
    name.match_indices("::").find_map(|(end, _)| {
        let (before, after) = (name.get(..end)?, name.get(end.saturating_add(2)..)?);
        let qualifier =
            [" const", " volatile", "&&", "&", "*"].into_iter().find(|one| before.ends_with(one))?;
        let start = end.checked_sub(qualifier.len())?;
        let class = before.get(..start)?;
        let ends_class =
            class.ends_with(|end: char| end.is_alphanumeric() || matches!(end, '_' | '>' | '&' | '*'));
        let begins_name = after.starts_with(|first: char| first.is_alphabetic() || first == '_');
        let is_operator = ["operator", "operator&", "operator*", "operator>", "operator->"]
            .into_iter()
            .any(|operator| class.ends_with(operator));
        (ends_class && begins_name && !is_operator).then_some((start, end))
    })
}

/// Length of what is left of a nested name that begins with `::`: names and arguments of templates.
fn len_of_names(rest: &str) -> usize {
    let mut depth = 0u32;
    for (at, one) in rest.char_indices() {
        match one {
            '<' => depth = depth.saturating_add(1),
            '>' if depth > 0 => depth = depth.saturating_sub(1),
            _ if depth > 0 || one.is_alphanumeric() || matches!(one, '_' | ':') => {}
            _ => return at,
        }
    }
    rest.len()
}
