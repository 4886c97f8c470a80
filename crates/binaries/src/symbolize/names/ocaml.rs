//! Names of functions of OCaml.

/// `Module.function_12` of `Module__function_12`, what follows `caml` in a symbol. `__` separates modules, and `$` is followed by the two
/// hexadecimal digits of a character that symbols cannot have.
pub(super) fn demangled(mangled: &str) -> String {
    let mut out = String::with_capacity(mangled.len());
    let mut rest = mangled;
    while let Some(next) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("__") {
            out.push('.');
            rest = after;
            continue;
        }
        rest = rest.strip_prefix(next).unwrap_or_default();
        let escaped = rest.split_at_checked(2).filter(|(digits, _)| next == '$' && !digits.starts_with('+'));
        match escaped.and_then(|(digits, after)| Some((u8::from_str_radix(digits, 16).ok()?, after))) {
            Some((code, after)) if code.is_ascii_graphic() => {
                out.push(char::from(code));
                rest = after;
            }
            _ => out.push(next),
        }
    }
    out
}
