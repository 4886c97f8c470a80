//! What runtimes pack into the one name a JIT_CODE_LOAD has: tier, function, source position.

use std::borrow::Cow;

/// What a function without a name is called.
pub const ANONYMOUS: &str = "(anonymous)";

/// A function name taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Name<'a> {
    /// The function, without marks.
    pub function: Cow<'a, str>,
    /// Compiler tier, as its runtime calls it.
    pub tier: Option<&'a str>,
    /// Whether this is a stub, thunk, builtin or handler rather than a compiled function.
    pub stub: bool,
    /// Source file.
    pub path: Option<&'a str>,
    /// Line the function starts at, from 1.
    pub line: Option<u32>,
    /// Column, from 1.
    pub column: Option<u32>,
}

/// Takes a name apart by the habits of V8, CPython, .NET, JavaScriptCore and SpiderMonkey; any other stays whole.
#[must_use]
pub fn parse(raw: &str) -> Name<'_> {
    v8(raw)
        .or_else(|| cpython(raw))
        .or_else(|| jsc(raw))
        .or_else(|| spidermonkey(raw))
        .or_else(|| dotnet(raw))
        .or_else(|| java(raw))
        .or_else(|| stub(raw))
        .unwrap_or(Name { function: raw.into(), ..Name::default() })
}

/// `JS:*name file:line:column`, `LazyCompile:~name file:line`, `Builtin:Name`, `RegExp:source`, `JS:wasm-0-liftoff`.
fn v8(raw: &str) -> Option<Name<'_>> {
    let (kind, rest) = raw.split_once(':')?;
    match kind {
        "JS" | "LazyCompile" | "Function" | "Script" | "Eval" => {}
        "Builtin" | "BytecodeHandler" | "Stub" | "Handler" => {
            let tier = if kind == "BytecodeHandler" { "ignition handler" } else { "builtin" };
            return Some(Name { function: rest.into(), tier: Some(tier), stub: true, ..Name::default() });
        }
        "RegExp" => return Some(Name { function: rest.into(), tier: Some("regexp"), ..Name::default() }),
        _ => return None,
    }
    for (suffix, tier) in [("-liftoff", "liftoff"), ("-turbofan", "turbofan"), ("-interpreter", "ignition")] {
        if let Some(function) = rest.strip_suffix(suffix) {
            return Some(Name { function: function.into(), tier: Some(tier), ..Name::default() });
        }
    }
    let (tier, rest) = v8_tier(rest);
    let split = v8_path_start(rest);
    let (function, place) = match split {
        Some(at) => (rest.get(..at)?, rest.get(at.saturating_add(1)..)?),
        None => (rest, ""),
    };
    let (path, line, column) = position(place);
    let function = if function.is_empty() { ANONYMOUS } else { function };
    Some(Name { function: function.into(), tier, stub: false, path, line, column })
}

/// The tier mark: `o` for on-stack replacement, then `~ ^ + *`, then `'` for code that knows its context.
fn v8_tier(rest: &str) -> (Option<&'static str>, &str) {
    let marked = rest.strip_prefix('o').filter(|r| r.starts_with(['+', '*'])).unwrap_or(rest);
    let tier = match marked.chars().next() {
        Some('~') => "ignition",
        Some('^') => "sparkplug",
        Some('+') => "maglev",
        Some('*') => "turbofan",
        _ => return (None, rest),
    };
    let name = marked.get(1..).unwrap_or_default();
    (Some(tier), name.strip_prefix('\'').unwrap_or(name))
}

/// Where the space before the file stands: names (`get size`) and paths may both hold spaces.
fn v8_path_start(rest: &str) -> Option<usize> {
    const STARTS: [&str; 9] = ["/", "node:", "file:", "http:", "https:", "wasm:", "evalmachine", "[", "./"];
    let spaces = || rest.match_indices(' ').map(|(at, _)| at);
    let known = spaces().find(|at| {
        let after = rest.get(at.saturating_add(1)..).unwrap_or_default();
        STARTS.iter().any(|start| after.starts_with(start))
            || matches!(after.as_bytes(), [_, b':', b'\\' | b'/', ..])
    });
    known.or_else(|| spaces().next_back())
}

/// `py::qualname:file`
fn cpython(raw: &str) -> Option<Name<'_>> {
    let rest = raw.strip_prefix("py::")?;
    let (function, path) = match rest.find(":<").or_else(|| rest.find(":/")).or_else(|| rest.rfind(':')) {
        Some(at) => (rest.get(..at)?, rest.get(at.saturating_add(1)..)),
        None => (rest, None),
    };
    Some(Name { function: function.into(), tier: Some("interpreter"), path, ..Name::default() })
}

/// `JSC-FTL: name#hash`, `JSC-Thunk: name`
fn jsc(raw: &str) -> Option<Name<'_>> {
    let (tier, rest) = raw.strip_prefix("JSC-")?.split_once(": ")?;
    let compiled =
        matches!(tier, "Baseline" | "DFG" | "FTL" | "LLInt" | "WasmBBQ" | "WasmOMG" | "BBQ" | "OMG");
    let function = match rest.rsplit_once('#') {
        Some((name, _)) if compiled && !name.is_empty() => name,
        _ => rest,
    };
    Some(Name { function: function.into(), tier: Some(tier), stub: !compiled, ..Name::default() })
}

/// `Ion: name (file:line:column)`, `IonIC: kind : name (…)`, `BlinterpOp: name`
fn spidermonkey(raw: &str) -> Option<Name<'_>> {
    const TIERS: [&str; 5] = ["Ion", "Baseline", "Interpreter", "Wasm", "BlinterpInterpreter"];
    const STUBS: [&str; 7] =
        ["IonIC", "BaselineIC", "IC", "BlinterpOp", "Trampoline", "VMWrapper", "BaselineInterpreter"];
    let (tier, rest) = raw.split_once(": ")?;
    let stub = STUBS.contains(&tier);
    if !stub && !TIERS.contains(&tier) {
        return None;
    }
    let rest = rest.split_once(" : ").filter(|_| stub).map_or(rest, |(_, name)| name);
    let (function, place) = match rest.rsplit_once(" (") {
        Some((function, place)) => (function, place.strip_suffix(')').unwrap_or(place)),
        None => (rest, ""),
    };
    let (path, line, column) = position(place);
    Some(Name { function: function.into(), tier: Some(tier), stub, path, line, column })
}

/// `void [Assembly] Type::Method(args)[OptimizedTier1]`, `stub<7> AllocateTemporaryEntryPoints<…>`
fn dotnet(raw: &str) -> Option<Name<'_>> {
    const TIERS: [&str; 11] = [
        "PreJIT",
        "ReadyToRun",
        "QuickJitted",
        "Tier0",
        "Tier1",
        "Tier1OSR",
        "OptimizedTier1",
        "OptimizedTier1OSR",
        "Optimized",
        "MinOptJitted",
        "Instrumented",
    ];
    if raw.starts_with("stub<") {
        return Some(Name { function: raw.into(), tier: Some("stub"), stub: true, ..Name::default() });
    }
    let (function, tier) = raw.strip_suffix(']')?.rsplit_once('[')?;
    TIERS.contains(&tier).then_some(Name { function: function.into(), tier: Some(tier), ..Name::default() })
}

/// `Ljava/util/Arrays;copyOf([II)[I`: a class, a method and a signature as the JVM writes them.
fn java(raw: &str) -> Option<Name<'_>> {
    let (class, rest) = raw.strip_prefix('L')?.split_once(';')?;
    let (method, rest) = rest.split_once('(')?;
    let (arguments, _) = rest.split_once(')')?;
    let function = format!("{}.{method}({})", class.replace('/', "."), java_types(arguments)?);
    Some(Name { function: function.into(), ..Name::default() })
}

/// Types of a method signature: `[ILjava/lang/String;` is `int[], java.lang.String`.
fn java_types(mut signature: &str) -> Option<String> {
    let mut types = Vec::new();
    while !signature.is_empty() {
        let element = signature.trim_start_matches('[');
        let dimensions = signature.len().checked_sub(element.len())?;
        let (name, rest) = match element.strip_prefix('L') {
            Some(class) => class.split_once(';').map(|(class, rest)| (class.replace('/', "."), rest))?,
            None => (java_primitive(element.chars().next()?)?.to_owned(), element.get(1..)?),
        };
        types.push(name + &"[]".repeat(dimensions));
        signature = rest;
    }
    Some(types.join(", "))
}

fn java_primitive(code: char) -> Option<&'static str> {
    Some(match code {
        'Z' => "boolean",
        'B' => "byte",
        'C' => "char",
        'S' => "short",
        'I' => "int",
        'J' => "long",
        'F' => "float",
        'D' => "double",
        'V' => "void",
        _ => return None,
    })
}

/// Helpers whose names say so: PHP's `JIT$$…`, Erlang's `global::…`, the stubs and the interpreter of the JVM, trampolines.
fn stub(raw: &str) -> Option<Name<'_>> {
    if raw == "Interpreter" {
        return Some(Name { function: raw.into(), tier: Some("interpreter"), stub: true, ..Name::default() });
    }
    let is_stub = raw.starts_with("JIT$$")
        || raw.starts_with("global::")
        || raw.starts_with("StubRoutines")
        || raw.ends_with("_stub")
        || raw.contains("_trampoline");
    is_stub.then_some(Name { function: raw.into(), tier: Some("stub"), stub: true, ..Name::default() })
}

/// `file:line:column` or `file:line`
fn position(place: &str) -> (Option<&str>, Option<u32>, Option<u32>) {
    let number = |text: &str| text.parse::<u32>().ok();
    if place.is_empty() {
        return (None, None, None);
    }
    let Some((head, Some(last))) = place.rsplit_once(':').map(|(head, last)| (head, number(last))) else {
        return (Some(place), None, None);
    };
    match head.rsplit_once(':').map(|(path, line)| (path, number(line))) {
        Some((path, Some(line))) => (Some(path), Some(line), Some(last)),
        _ => (Some(head), Some(last), None),
    }
}
