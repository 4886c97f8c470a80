//! Demangled names.

mod ocaml;
mod parameter_pack;
mod qualifiers;

use std::fmt;
use std::sync::Arc;

use cpp_demangle::{DemangleOptions, ParseOptions};
use rustc_hash::FxHashMap;

/// Limit on a demangled name: hostile ones grow exponentially.
const MAX_NAME_BYTES: usize = 16 << 10;
/// Start of the names of functions in Android's linker.
const LINKER_PREFIX: &str = "__dl_";
/// Limit on the nesting of a C++ name: deeper ones stay mangled, because they would exhaust the stack.
const MAX_NESTING: u32 = 160;

/// A demangled name, and the name in the file where that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SymbolName {
    pub(crate) shown: Arc<str>,
    pub(crate) linkage: Option<Arc<str>>,
}

impl SymbolName {
    fn new(raw: &[u8]) -> Self {
        let raw = String::from_utf8_lossy(raw);
        // `name@@VERSION` is how a symbol table spells the default version of an exported name; a stub that calls it has a suffix.
        let (name, stub) = raw.strip_suffix("@plt").map_or((&*raw, ""), |name| (name, "@plt"));
        let base = name.split_once("@@").map_or(name, |(base, _)| base);
        let base = format!("{base}{stub}");
        let shown = demangle(&base).map_or_else(|| Arc::from(&*base), Arc::from);
        let linkage = (*shown != *raw).then(|| Arc::from(&*raw));
        Self { shown, linkage }
    }
}

/// Names and other texts, each stored once.
#[derive(Debug, Default)]
pub(crate) struct NameCache {
    names: FxHashMap<Box<[u8]>, SymbolName>,
    texts: FxHashMap<Box<str>, Arc<str>>,
}

impl NameCache {
    pub(crate) fn name(&mut self, raw: &[u8]) -> SymbolName {
        if let Some(name) = self.names.get(raw) {
            return name.clone();
        }
        let name = SymbolName::new(raw);
        self.names.insert(raw.into(), name.clone());
        name
    }

    /// A path or reason as a shared text.
    pub(crate) fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(shared) = self.texts.get(text) {
            return Arc::clone(shared);
        }
        let shared: Arc<str> = Arc::from(text);
        self.texts.insert(text.into(), Arc::clone(&shared));
        shared
    }
}

/// Itanium C++ with parameters, which distinguish overloads, and without the return type, which does not;
/// both of Rust's manglings without their hashes; OCaml's with the numbers that its compiler gives them. Other languages' names,
/// Swift's among them, are `None`.
pub(crate) fn demangle(raw: &str) -> Option<String> {
    if let Some(stub) = raw.strip_suffix("@plt") {
        return demangle(stub).map(|name| format!("{name}@plt"));
    }
    // Android's linker has its copies of functions of libc under names of its own.
    if let Some(own) = raw.strip_prefix(LINKER_PREFIX) {
        // Hostile names repeat the prefix.
        let name = if own.starts_with(LINKER_PREFIX) { None } else { demangle(own) };
        return Some(format!("[linker]{}", name.unwrap_or_else(|| own.to_owned())));
    }
    if let Some(mangled) =
        raw.strip_prefix("caml").filter(|name| name.starts_with(|c: char| c.is_ascii_uppercase()))
    {
        return Some(ocaml::demangled(mangled));
    }
    if !raw.starts_with("_R") && !raw.starts_with("_Z") {
        return None;
    }
    if raw.starts_with("_R") || is_rust_legacy(raw) {
        let name = rustc_demangle::try_demangle(raw).ok()?;
        return bounded(|out| fmt::write(out, format_args!("{name:#}")));
    }
    if let Some((kind, target)) = thunk(raw) {
        return demangle(&format!("_Z{target}")).map(|name| format!("{kind} to {name}"));
    }
    let style = DemangleOptions::default().no_return_type().recursion_limit(MAX_NESTING);
    let typed = with_result(raw, style);
    let raw = typed.as_deref().unwrap_or(raw);
    let name = cpp_name(raw, style).or_else(|| with_condition_in_result(raw, style))?;
    let expanded = parameter_pack::expanded(raw, style)
        .or_else(|| parameter_pack::expanded_as_in_result(raw, &name, style));
    Some(expanded.unwrap_or(name))
}

/// Limit on the places in a name that are tried: hostile ones have thousands that are possible.
const MAX_ATTEMPTS: usize = 32;

/// A constructor that is a template, mangled with a result. It has none (Itanium ABI 5.1.5), and the demangler takes its first
/// parameter for one.
fn with_result(raw: &str, style: DemangleOptions) -> Option<String> {
    let (start, _) = raw.rmatch_indices('C').find(|&(at, _)| {
        matches!(raw.as_bytes().get(at.saturating_add(1)..), Some([b'1'..=b'5', b'I', ..]))
    })?;
    // The ends of the template's arguments and of the name.
    let ends = raw.as_bytes().windows(2).enumerate().skip(start).filter(|(_, two)| two == b"EE");
    ends.take(MAX_ATTEMPTS).find_map(|(at, _)| {
        let (name, parameters) = raw.split_at_checked(at.saturating_add(2))?;
        let (before, after) = (name.get(..start)?, name.get(start.saturating_add(2)..)?);
        // In an identifier such as `AC1Impl` the same letters name no destructor when they are changed to `D1`.
        let destructors = |name: &str| Some(cpp_name(name, style)?.matches("::~").count());
        let is_constructor = |before: &str| {
            let [as_is, changed] = [name.get(start..start.saturating_add(2))?, "D1"]
                .map(|kind| format!("{before}{kind}{after}v"));
            Some(destructors(&changed)? > destructors(&as_is)?)
        };
        // What is in a function starts with `_ZZ` and the function: that one may be the constructor.
        let function = before.strip_prefix('_').map(|rest| format!("_Z{}", rest.trim_start_matches('Z')));
        let is_found = is_constructor(before) == Some(true)
            || function.is_some_and(|before| is_constructor(&before) == Some(true));
        is_found.then(|| format!("{name}v{parameters}"))
    })
}

/// A function that exists where a condition of `std` is true, as `std::swap` does: the demangler does not read the condition, `srSt…E5value`. It is
/// in the result, which is not shown, so any other expression with the same type is as good: its size.
fn with_condition_in_result(raw: &str, style: DemangleOptions) -> Option<String> {
    let other = raw.replace("XsrSt", "XstSt").replace("XntsrSt", "XntstSt").replace("E5valueE", "EE");
    let name = if other == raw { None } else { cpp_name(&other, style) };
    name.filter(|name| !name.contains("sizeof"))
}

/// A C++ name in the spelling of other tools.
fn cpp_name(raw: &str, style: DemangleOptions) -> Option<String> {
    let limits = ParseOptions::default().recursion_limit(MAX_NESTING);
    let symbol = cpp_demangle::BorrowedSymbol::with_tail_and_options(raw.as_bytes(), &limits).ok();
    let (symbol, tail) = symbol?;
    if !tail.is_empty() {
        return None;
    }
    let name = with_plain_tables(bounded(|out| symbol.structured_demangle(out, &style))?);
    let name = with_literal_operators(with_short_literals(without_empty_packs(name)));
    Some(with_whole_clones(qualifiers::after_names(name)))
}

/// A name whose last parts are of a copy of the function, with the numbers in them: the demangler has those of more than 63 bits,
/// LLVM's hashes of files, as copies of their own.
fn with_whole_clones(name: String) -> String {
    const NEXT: &str = "] [clone .";
    let mut parts = name.split(NEXT);
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_number = part.trim_end_matches(']').bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        whole.push_str(if is_number { "." } else { NEXT });
        whole.push_str(part);
    }
    whole
}

/// The kind of a thunk and the mangled function that it calls. Itanium ABI 5.1.4.4: `Th` and `Tv` have one offset, `Tc` has two.
fn thunk(raw: &str) -> Option<(&'static str, &str)> {
    let special = raw.strip_prefix("_ZT")?;
    if let Some(rest) = special.strip_prefix('c') {
        return Some(("covariant return thunk", after_call_offset(after_call_offset(rest)?)?));
    }
    let kind = if special.starts_with('h') { "non-virtual thunk" } else { "virtual thunk" };
    Some((kind, after_call_offset(special)?))
}

/// What follows `h <number> _` or `v <number> _ <number> _`.
fn after_call_offset(text: &str) -> Option<&str> {
    let number = |text: &'_ str| -> Option<usize> {
        let digits = text.strip_prefix('n').unwrap_or(text);
        let end = digits.find('_').filter(|end| *end > 0)?;
        let (number, _) = digits.split_at_checked(end)?;
        number.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.find('_'))?
    };
    let after = |text: &'_ str| number(text).and_then(|end| end.checked_add(1));
    match text.split_at_checked(1)? {
        ("h", rest) => rest.get(after(rest)?..),
        ("v", rest) => {
            let second = rest.get(after(rest)?..)?;
            second.get(after(second)?..)
        }
        _ => None,
    }
}

/// `vtable for Shape`, as other tools write it, for `{vtable(Shape)}`.
fn with_plain_tables(name: String) -> String {
    let Some((kind, class)) = name.strip_prefix('{').and_then(|name| name.split_once('(')) else {
        return name;
    };
    let kind = match kind {
        "vtable" => "vtable",
        "vtt" => "VTT",
        _ => return name,
    };
    class.strip_suffix(")}").map_or_else(|| name.clone(), |class| format!("{kind} for {class}"))
}

/// Without what the demangler leaves of empty parameter packs: `Run<Phase, >(&&)` is `Run<Phase>()`.
fn without_empty_packs(mut name: String) -> String {
    const LEFT_OVERS: [(&str, &str); 12] = [
        (", , ", ", "),
        (", >", ">"),
        ("<, ", "<"),
        (", &&)", ")"),
        (", &)", ")"),
        (", const&)", ")"),
        (", )", ")"),
        ("(, ", "("),
        ("(&&, ", "("),
        (">(&&)", ">()"),
        (">(&)", ">()"),
        ("( const&)", "()"),
    ];
    for (left_over, clean) in LEFT_OVERS {
        while name.contains(left_over) && !name.contains("operator<, ") {
            name = name.replace(left_over, clean);
        }
    }
    name
}

/// `1u` and `2ul`, as other tools write template arguments, for `(unsigned int)1` and `(unsigned long)2`.
fn with_short_literals(mut name: String) -> String {
    const SUFFIXES: [(&str, &str); 5] = [
        ("(unsigned int)", "u"),
        ("(unsigned long)", "ul"),
        ("(unsigned long long)", "ull"),
        ("(long)", "l"),
        ("(long long)", "ll"),
    ];
    for (cast, suffix) in SUFFIXES {
        if !name.contains(cast) {
            continue;
        }
        let mut parts = name.split(cast);
        let mut short = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let len_number = part
                .bytes()
                .enumerate()
                .take_while(|(at, byte)| byte.is_ascii_digit() || *at == 0 && *byte == b'-');
            let (number, rest) = part.split_at_checked(len_number.count()).unwrap_or(("", part));
            if number.ends_with(|last: char| last.is_ascii_digit()) {
                short.extend([number, suffix, rest]);
            } else {
                short.extend([cast, part]);
            }
        }
        name = short;
    }
    name
}

/// `operator"" _km` for user-defined literals, which the demangler writes as `operator_km::operator ""`.
fn with_literal_operators(name: String) -> String {
    const WRITTEN: &str = "::operator \"\"";
    if !name.contains(WRITTEN) {
        return name;
    }
    let mut fixed = String::with_capacity(name.len());
    let mut parts = name.split(WRITTEN).peekable();
    while let Some(part) = parts.next() {
        // Every part but the last is followed by the wrong spelling.
        match part.rsplit_once("operator").filter(|_| parts.peek().is_some()) {
            Some((before, suffix)) => fixed.extend([before, "operator\"\" ", suffix]),
            None if parts.peek().is_some() => fixed.extend([part, WRITTEN]),
            None => fixed.push_str(part),
        }
    }
    fixed
}

/// Rust's old names are Itanium ones that end in a hash of 16 digits.
fn is_rust_legacy(raw: &str) -> bool {
    let end = raw.rfind('E').unwrap_or(0);
    let hash = raw.get(..end).and_then(|head| head.len().checked_sub(19).and_then(|at| head.get(at..)));
    hash.and_then(|hash| hash.strip_prefix("17h"))
        .is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// The text that `write` produces; `None` where it is longer than [`MAX_NAME_BYTES`].
fn bounded(write: impl FnOnce(&mut BoundedText) -> fmt::Result) -> Option<String> {
    let mut out = BoundedText(String::new());
    write(&mut out).ok()?;
    Some(out.0)
}

struct BoundedText(String);

impl fmt::Write for BoundedText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len().saturating_add(text.len()) > MAX_NAME_BYTES {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{SymbolName, demangle};

    #[test]
    fn names_of_every_language() {
        for (raw, shown) in [
            ("_ZN2v88internal7Isolate4InitEv", "v8::internal::Isolate::Init()"),
            (
                "_ZNSt6vectorIiSaIiEE9push_backERKi",
                "std::vector<int, std::allocator<int> >::push_back(int const&)",
            ),
            ("_Z3maxIiET_S0_S0_", "max<int>(int, int)"),
            ("_Z3fooi.part.0", "foo(int) [clone .part.0]"),
            ("_Z3fooi.llvm.12474400610517637329", "foo(int) [clone .llvm.12474400610517637329]"),
            (
                "_Z3fooi.part.0.llvm.12474400610517637329.cold.1",
                "foo(int) [clone .part.0] [clone .llvm.12474400610517637329] [clone .cold.1]",
            ),
            ("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"),
            (
                "_ZN5units3sumIXadL_ZNS_li3_kmEyEEEEvv",
                "units::sum<&units::operator\"\" _km(unsigned long long)>()",
            ),
            ("_Zli3_kmy", "operator\"\" _km(unsigned long long)"),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            ("_Z3foov@plt", "foo()@plt"),
            // OCaml: module and function, with characters in hexadecimal.
            ("camlStdlib__Map__bal_170", "Stdlib.Map.bal_170"),
            ("camlOc__$3e$7c_12", "Oc.>|_12"),
            ("camlOc.fib_81", "Oc.fib_81"),
            ("camlA__b$zz$4", "A.b$zz$4"),
            ("camlA___b", "A._b"),
            // Empty parameter packs, as V8's and LLVM's classes have them.
            ("_ZN8Pipeline3RunI5PhaseJEEEvDpOT0_", "Pipeline::Run<Phase>()"),
            ("_ZN8Pipeline3RunI5PhaseJiEEEvDpOT0_", "Pipeline::Run<Phase, int>(int&&)"),
            ("_ZN8Pipeline3RunI5PhaseJEEEviDpOT0_", "Pipeline::Run<Phase>(int)"),
            ("_ZN8Pipeline4EachIJEEEvDpRKT_", "Pipeline::Each<>()"),
            // Constructors that are templates.
            ("_ZN3FooC2IiEEOT_", "Foo::Foo<int>(int&&)"),
            (
                "_ZN3FooC1ISt6vectorIiSaIiEEEERKT_i",
                "Foo::Foo<std::vector<int, std::allocator<int> > >(std::vector<int, std::allocator<int> > const&, int)",
            ),
            (
                "_ZNSt6threadC2IRFviEJiEvEEOT_DpOT0_",
                "std::thread::thread<void (&)(int), int, void>(void (&)(int), int&&)",
            ),
            ("_ZN4C1IEC2Ev", "C1IE::C1IE()"),
            ("_Z3fooN5AC1Im3BarIiEEi", "foo(AC1Im::Bar<int>, int)"),
            ("_Z3fooI5AC1ImN1A1BIiEEEvT_i", "foo<AC1Im, A::B<int> >(AC1Im, int)"),
            // Packs of several types, as c++filt of binutils 2.40 shows them.
            ("_ZN8Pipeline3RunI5PhaseJifEEEvDpOT0_", "Pipeline::Run<Phase, int, float>(int&&, float&&)"),
            (
                "_Z3runIJRFviEiPKcEEvDpOT_",
                "run<void (&)(int), int, char const*>(void (&)(int), int&&, char const*&&)",
            ),
            (
                "_ZN4llvm2cl5applyINS0_3optEA15_cJNS0_4descENS0_3catENS0_4initEEEEvPT_RKT0_DpRKT1_",
                "llvm::cl::apply<llvm::cl::opt, char [15], llvm::cl::desc, llvm::cl::cat, llvm::cl::init>(llvm::cl::opt*, char const (&) [15], llvm::cl::desc const&, llvm::cl::cat const&, llvm::cl::init const&)",
            ),
            // Packs within packs, packs that results mention, and those of functions around something.
            (
                "_ZN3Map7emplaceIJRK3TagSt5tupleIJRKiEES4_IJEEEEEvDpOT_",
                "Map::emplace<Tag const&, std::tuple<int const&>, std::tuple<> >(Tag const&, std::tuple<int const&>&&, std::tuple<>&&)",
            ),
            (
                "_ZSt16forward_as_tupleIJifEESt5tupleIJDpOT_EES3_",
                "std::forward_as_tuple<int, float>(int&&, float&&)",
            ),
            (
                "_ZSt8__invokeIRPFiifEJRifEENSt15__invoke_resultIT_JDpT0_EE4typeEOS5_DpOS6_",
                "std::__invoke<int (*&)(int, float), int&, float>(int (*&)(int, float), int&, float&&)",
            ),
            ("_ZSt3tieIJifEESt5tupleIJDpRT_EES3_", "std::tie<int, float>(int&, float&)"),
            (
                "_ZZ5printIPcJRKiiEEvOT_DpOT0_E4args",
                "print<char*, int const&, int>(char*&&, int const&, int&&)::args",
            ),
            ("_ZZN4OnceC4I4CallEERT_ENUlvE_4_FUNEv", "Once::Once<Call>(Call&)::{lambda()#1}::_FUN()"),
            // Functions with a condition in their result.
            (
                "_ZSt4swapIjENSt9enable_ifIXsrSt6__and_IJSt6__not_ISt15__is_tuple_likeIT_EESt21is_move_constructibleIS4_ESt18is_move_assignableIS4_EEE5valueEvE4typeERS4_SE_",
                "std::swap<unsigned int>(unsigned int&, unsigned int&)",
            ),
            ("_Z3addIiENSt9enable_ifIXsrSt11is_integralIT_E5valueES2_E4typeES2_", "add<int>(int)"),
            ("_ZTV5Shape", "vtable for Shape"),
            ("_ZTT5Shape", "VTT for Shape"),
            ("_ZN5ProxyI7ManagerI8FunctionJEE4LoopE3runEv", "Proxy<Manager<Function>, Loop>::run()"),
            ("_ZThn16_N7Derived4workEv", "non-virtual thunk to Derived::work()"),
            ("_ZTv0_n24_N7Derived4workEv", "virtual thunk to Derived::work()"),
            ("_ZTch0_h16_N7Derived5cloneEv", "covariant return thunk to Derived::clone()"),
            ("_ZN3MapIiLj9ELm10ELin1EE6insertEv", "Map<int, 9u, 10ul, -1>::insert()"),
            ("_Z1fIXadL_ZltRK1AS2_EELi3EEvv", "f<&operator<(A const&, A const&), 3>()"),
        ] {
            assert_eq!(demangle(raw).as_deref(), Some(shown), "{raw}");
        }
        for raw in
            ["main", "$s4main3fooyyF", "_Zebra", "_RUSTY", "_Z", "caml_apply2", "__libc_start_main@plt"]
        {
            assert_eq!(demangle(raw), None, "{raw}");
        }
    }

    #[test]
    fn the_version_of_an_exported_name_is_not_shown() {
        let name = SymbolName::new(b"pthread_create@@GLIBC_2.34");
        assert_eq!(&*name.shown, "pthread_create");
        assert_eq!(name.linkage.as_deref(), Some("pthread_create@@GLIBC_2.34"));
        // A library's stub of a function that is selected when it is loaded.
        let name = SymbolName::new(b"memcpy@@GLIBC_2.14@plt");
        assert_eq!(&*name.shown, "memcpy@plt");
        assert_eq!(name.linkage.as_deref(), Some("memcpy@@GLIBC_2.14@plt"));
        assert_eq!(SymbolName::new(b"main").linkage, None);
    }

    #[test]
    fn a_name_that_grows_exponentially_stays_mangled() {
        // Each template takes the one before it twice, so its length doubles with every substitution.
        let mut bomb = String::from("_Z1f1AIiiE");
        for index in 0..60 {
            let previous = if index == 0 { "S0_".to_owned() } else { format!("S{}_", radix36(index)) };
            bomb += &format!("S_I{previous}{previous}E");
        }
        assert!(demangle(&bomb).is_none_or(|name| name.len() <= super::MAX_NAME_BYTES));
        let nested = format!("_Z1f{}i", "P".repeat(100_000));
        assert_eq!(demangle(&nested), None);
    }

    fn radix36(value: u32) -> char {
        char::from_digit(value % 36, 36).expect("a digit").to_ascii_uppercase()
    }
}
