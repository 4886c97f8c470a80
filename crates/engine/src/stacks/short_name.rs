//! Short forms of qualified names, for boxes too narrow for the whole.

use std::borrow::Cow;

/// A name without arguments, template parameters, return type and all but the last two qualifiers.
///
/// `void v8::internal::Scavenger<kYoung>::Process(v8::JobDelegate*)` is `Scavenger::Process`. Names that are not
/// qualified, and those with a path in them, stay as they are.
pub fn short_name(name: &str) -> Cow<'_, str> {
    if let Some(short) = of_mono(name) {
        return Cow::Owned(short);
    }
    if name.contains('/') {
        return Cow::Borrowed(name);
    }
    if name.contains("::") {
        let bare = bare(name);
        // What is before a space is a return type, except in `operator new`.
        let named =
            if bare.contains("operator ") { &*bare } else { bare.rsplit(' ').next().unwrap_or(&bare) };
        return last_two(named, "::").map_or(Cow::Borrowed(name), |short| Cow::Owned(short.to_owned()));
    }
    let end = name.find('(').unwrap_or(name.len());
    let function = name.get(..end).unwrap_or(name);
    match has_package(function) {
        true => last_two(function, ".").map_or(Cow::Borrowed(name), |short| Cow::Owned(short.to_owned())),
        false => Cow::Borrowed(name),
    }
}

/// Class and method of a name of Mono, `System.Threading.Thread:Start (object)` or `(wrapper KIND) …`; `None` for other names.
fn of_mono(name: &str) -> Option<String> {
    let (kind, named) = match name.strip_prefix("(wrapper ") {
        Some(wrapped) => wrapped.split_once(") ").map(|(kind, named)| (Some(kind), named))?,
        None => (None, name),
    };
    let (function, _) = named.split_once(" (")?;
    let (class, method) = function
        .split_once(':')
        .filter(|(class, method)| !class.is_empty() && !method.is_empty() && !method.contains([':', ' ']))?;
    let class = without_type_arguments(class);
    let class = class.rsplit('.').next().unwrap_or(&class);
    // Of an interface that a method implements by name; constructors are `.ctor`.
    let method =
        method.rsplit_once('.').filter(|(interface, _)| !interface.is_empty()).map_or(method, |of| of.1);
    let kind = kind.map_or_else(String::new, |kind| format!(" [{kind}]"));
    Some(format!("{class}:{method}{kind}"))
}

/// A class without the type arguments after its name; angle brackets of compiler-generated names (`<>c`) remain.
fn without_type_arguments(class: &str) -> String {
    let mut out = String::with_capacity(class.len());
    let mut depth = 0u32;
    for c in class.chars() {
        match c {
            '<' if depth > 0 || out.ends_with(char::is_alphanumeric) => depth = depth.saturating_add(1),
            '>' if depth > 0 => depth = depth.saturating_sub(1),
            _ if depth == 0 => out.push(c),
            _ => {}
        }
    }
    out
}

/// Whether dots part packages and a class, as in `java.util.HashMap.get`; those of `switch.isra.0` are a compiler's.
fn has_package(name: &str) -> bool {
    let mut parts = name.split('.').skip(1);
    let is_word =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || "_$<>".contains(c));
    name.split('.').all(is_word) && parts.any(|part| part.starts_with(char::is_uppercase))
}

/// The last two parts of a name, if it has a separator.
fn last_two<'a>(name: &'a str, separator: &str) -> Option<&'a str> {
    let (before_last, _) = name.rsplit_once(separator)?;
    let start = before_last.rsplit_once(separator).map_or(0, |(head, _)| head.len());
    let short = name.get(start..)?.trim_start_matches(separator);
    (!short.is_empty()).then_some(short)
}

/// The name without the contents of angle brackets, and without argument lists.
fn bare(name: &str) -> String {
    const ANONYMOUS: &str = "(anonymous namespace)";
    let mut out = String::with_capacity(name.len());
    let mut depth = 0u32;
    let mut rest = name;
    let mut previous = None;
    while let Some(c) = rest.chars().next() {
        if depth == 0 && rest.starts_with(ANONYMOUS) {
            out.push_str("{anonymous}");
            previous = Some(')');
            rest = rest.strip_prefix(ANONYMOUS).unwrap_or_default();
            continue;
        }
        rest = rest.strip_prefix(c).unwrap_or_default();
        let is_arrow = c == '>' && previous == Some('-');
        previous = Some(c);
        let after_operator = out.ends_with("operator");
        match c {
            '<' | '(' if depth > 0 || !after_operator => depth = depth.saturating_add(1),
            // The arrow of a return type or of `operator->` closes nothing.
            '>' if is_arrow && depth > 0 => {}
            '>' | ')' if depth > 0 => {
                depth = depth.saturating_sub(1);
                // After the last argument list only `const`, a clone's number and the like follow.
                if c == ')' && depth == 0 && !rest.starts_with("::") && !rest.starts_with(['#', '}']) {
                    break;
                }
            }
            _ if depth == 0 => out.push(c),
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::short_name;

    #[test]
    fn arguments_and_outer_qualifiers_are_left_out() {
        for (name, short) in [
            ("v8::internal::Scavenger::Process(v8::JobDelegate*)", "Scavenger::Process"),
            ("void ns::Map<int, std::vector<long>>::insert<char>(char&&) const", "Map::insert"),
            (
                "node::LoadEnvironment(node::Environment*, std::function<v8::Local<v8::Value> (int const&)>)",
                "node::LoadEnvironment",
            ),
            ("v8::internal::(anonymous namespace)::Invoke(v8::internal::Isolate*)", "{anonymous}::Invoke"),
            ("std::vector<int> a::b::make(int) [clone .isra.0]", "b::make"),
            ("a::f(int)::{lambda(int)#1}::operator()(int) const", "{lambda#1}::operator()"),
            ("a::B::operator<(a::B const&)", "B::operator<"),
            ("a::B::operator->()", "B::operator->"),
            ("a::operator new(unsigned long)", "a::operator new"),
            ("<alloc::vec::Vec<T> as core::iter::Iterator>::next", "next"),
            ("core::ptr::drop_in_place<alloc::string::String>", "ptr::drop_in_place"),
            ("java.util.HashMap.get(java.lang.Object)", "HashMap.get"),
            ("W.main(java.lang.String[])", "W.main(java.lang.String[])"),
            ("finish_task_switch.isra.0", "finish_task_switch.isra.0"),
            ("net/http.(*conn).serve", "net/http.(*conn).serve"),
            ("System.Threading.Thread:Start (object)", "Thread:Start"),
            ("System.Collections.Generic.Dictionary`2<K, V>:.ctor (int)", "Dictionary`2:.ctor"),
            ("A.Outer/Inner:System.Collections.IEnumerable.GetEnumerator ()", "Outer/Inner:GetEnumerator"),
            ("Program/<>c:<Main>b__0 (int)", "Program/<>c:<Main>b__0"),
            (
                "(wrapper managed-to-native) System.Threading.Thread:SleepInternal (int)",
                "Thread:SleepInternal [managed-to-native]",
            ),
            (
                "(wrapper alloc) object:ProfilerAllocSmall (intptr,intptr)",
                "object:ProfilerAllocSmall [alloc]",
            ),
            ("$lists:map/2", "$lists:map/2"),
            ("main.lua:12", "main.lua:12"),
            ("fib", "fib"),
            ("::", "::"),
            ("a::<", "a::"),
            ("", ""),
            ("é::ü::ß(→)", "ü::ß"),
        ] {
            assert_eq!(short_name(name), short, "of {name}");
        }
    }
}
