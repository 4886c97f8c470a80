//! Parses the name of a JIT_CODE_LOAD, which contains tier, function and source position in a form that depends on the runtime.

use std::borrow::Cow;

/// Name of functions without a name.
pub const ANONYMOUS: &str = "(anonymous)";

/// The parts of a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedName<'a> {
    /// The function, without tier marks and position.
    pub function: Cow<'a, str>,
    /// Name of the compiler tier in its runtime.
    pub tier: Option<&'a str>,
    /// Whether the code is a stub, thunk, builtin or handler rather than a compiled function.
    pub stub: bool,
    /// Source file.
    pub path: Option<&'a str>,
    /// Line at which the function starts, from 1.
    pub line: Option<u32>,
    /// Column at which the function starts, from 1.
    pub column: Option<u32>,
}

/// Parses a name in the forms of V8, CPython, JavaScriptCore, SpiderMonkey, .NET, the JVM and Dart. Any other name is the function.
#[must_use]
pub fn parse(raw: &str) -> ParsedName<'_> {
    v8(raw)
        .or_else(|| cpython(raw))
        .or_else(|| jsc(raw))
        .or_else(|| spidermonkey(raw))
        .or_else(|| dotnet(raw))
        .or_else(|| java(raw))
        .or_else(|| dart(raw))
        .or_else(|| stub(raw))
        .unwrap_or(ParsedName { function: raw.into(), ..ParsedName::default() })
}

/// `JS:*name file:line:column`, `LazyCompile:~name file:line`, `Builtin:Name`, `RegExp:source`, `JS:wasm-0-liftoff`.
fn v8(raw: &str) -> Option<ParsedName<'_>> {
    if let Some(function) = v8_regexp(raw) {
        return Some(ParsedName { function: function.into(), tier: Some("regexp"), ..ParsedName::default() });
    }
    let (kind, rest) = raw.split_once(':')?;
    match kind {
        "JS" | "LazyCompile" | "Function" | "Script" | "Eval" => {}
        "Builtin" | "BytecodeHandler" | "Stub" | "Handler" => {
            let tier = if kind == "BytecodeHandler" { "ignition handler" } else { "builtin" };
            return Some(ParsedName {
                function: rest.into(),
                tier: Some(tier),
                stub: true,
                ..ParsedName::default()
            });
        }
        "RegExp" => {
            return Some(ParsedName { function: rest.into(), tier: Some("regexp"), ..ParsedName::default() });
        }
        _ => return None,
    }
    if let Some(wrapper) = rest.strip_suffix("-none").filter(|name| name.starts_with("wasm-to-")) {
        let function = wrapper.into();
        return Some(ParsedName { function, tier: Some("builtin"), stub: true, ..ParsedName::default() });
    }
    for (suffix, tier) in [("-liftoff", "liftoff"), ("-turbofan", "turbofan"), ("-interpreter", "ignition")] {
        if let Some(function) = rest.strip_suffix(suffix) {
            return Some(ParsedName { function: function.into(), tier: Some(tier), ..ParsedName::default() });
        }
    }
    let (tier, rest) = v8_tier(rest);
    let split = v8_path_start(rest);
    let (function, position) = match split {
        Some(at) => (rest.get(..at)?, rest.get(at.saturating_add(1)..)?),
        None => (rest, ""),
    };
    let (path, line, column) = parse_position(position);
    let function = if function.is_empty() { ANONYMOUS } else { function };
    Some(ParsedName { function: function.into(), tier, stub: false, path, line, column })
}

/// The literal of `RegExp.> src: 'source' flags: 'g'`, as node 24 and later name the code of a regular expression; the mark
/// differs by release. Quotes are not escaped.
fn v8_regexp(raw: &str) -> Option<String> {
    let (mark, source) = raw.strip_prefix("RegExp.")?.split_once(" src: '")?;
    let (source, flags) = source.strip_suffix('\'')?.rsplit_once("' flags: '")?;
    (mark.len() <= 1).then(|| format!("/{source}/{flags}"))
}

/// The tier mark: `o` for on-stack replacement, then `~ ^ + *`, then `'` for code specialized to its context.
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

/// Index of the space before the file: both names (`get size`) and paths may contain spaces.
fn v8_path_start(rest: &str) -> Option<usize> {
    const STARTS: [&str; 9] = ["/", "node:", "file:", "http:", "https:", "wasm:", "evalmachine", "[", "./"];
    let spaces = || rest.match_indices(' ').map(|(at, _)| at);
    let before_known_start = spaces().find(|at| {
        let after = rest.get(at.saturating_add(1)..).unwrap_or_default();
        STARTS.iter().any(|start| after.starts_with(start))
            || matches!(after.as_bytes(), [_, b':', b'\\' | b'/', ..])
    });
    before_known_start.or_else(|| spaces().next_back())
}

/// CPython's `py::qualname:file`, which it also writes into perf maps; `None` for another name.
#[must_use]
pub fn cpython(raw: &str) -> Option<ParsedName<'_>> {
    let rest = raw.strip_prefix("py::")?;
    let (function, path) = match rest.find(":<").or_else(|| rest.find(":/")).or_else(|| rest.rfind(':')) {
        Some(at) => (rest.get(..at)?, rest.get(at.saturating_add(1)..)),
        None => (rest, None),
    };
    Some(ParsedName { function: function.into(), tier: Some("interpreter"), path, ..ParsedName::default() })
}

/// `JSC-FTL: name#hash`, `JSC-Thunk: name`
fn jsc(raw: &str) -> Option<ParsedName<'_>> {
    let (tier, rest) = raw.strip_prefix("JSC-")?.split_once(": ")?;
    let compiled =
        matches!(tier, "Baseline" | "DFG" | "FTL" | "LLInt" | "WasmBBQ" | "WasmOMG" | "BBQ" | "OMG");
    let function = match rest.rsplit_once('#') {
        Some((name, _)) if compiled && !name.is_empty() => name,
        _ => rest,
    };
    Some(ParsedName { function: function.into(), tier: Some(tier), stub: !compiled, ..ParsedName::default() })
}

/// `Ion: name (file:line:column)`, `IonIC: kind : name (…)`, `BlinterpOp: name`; `Interpreter` and `BaselineInterpreter` are
/// the entries of functions that are not compiled yet. Some stubs have a name alone, and so has the code of regular expressions.
fn spidermonkey(raw: &str) -> Option<ParsedName<'_>> {
    const TIERS: [&str; 6] =
        ["Ion", "Baseline", "BaselineInterpreter", "Interpreter", "Wasm", "BlinterpInterpreter"];
    const STUBS: [&str; 7] =
        ["IonIC", "BaselineIC", "BaselineICFallback", "IC", "BlinterpOp", "Trampoline", "VMWrapper"];
    let named_alone = match raw {
        "RegExp" => Some(("regexp", false)),
        "StringConcatStub"
        | "RegExpMatcherStub"
        | "RegExpSearcherStub"
        | "RegExpExecMatchStub"
        | "RegExpExecTestStub"
        | "DebugTrapHandler" => Some(("stub", true)),
        _ => None,
    };
    if let Some((tier, stub)) = named_alone {
        return Some(ParsedName { function: raw.into(), tier: Some(tier), stub, ..ParsedName::default() });
    }
    let (tier, rest) = raw.split_once(": ")?;
    let stub = STUBS.contains(&tier);
    if !stub && !TIERS.contains(&tier) {
        return None;
    }
    let rest = rest.split_once(" : ").filter(|_| stub).map_or(rest, |(_, name)| name);
    let (function, position) = match rest.rsplit_once(" (") {
        Some((function, position)) => (function, position.strip_suffix(')').unwrap_or(position)),
        None => (rest, ""),
    };
    let (path, line, column) = parse_position(position);
    Some(ParsedName { function: function.into(), tier: Some(tier), stub, path, line, column })
}

/// `void [Assembly] Type::Method(args)[OptimizedTier1]`, `stub<7> AllocateTemporaryEntryPoints<…>`
fn dotnet(raw: &str) -> Option<ParsedName<'_>> {
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
        return Some(ParsedName {
            function: raw.into(),
            tier: Some("stub"),
            stub: true,
            ..ParsedName::default()
        });
    }
    let (function, tier) = raw.strip_suffix(']')?.rsplit_once('[')?;
    TIERS.contains(&tier).then_some(ParsedName {
        function: function.into(),
        tier: Some(tier),
        ..ParsedName::default()
    })
}

/// `Ljava/util/Arrays;copyOf([II)[I`: class, method and signature in the JVM's notation.
fn java(raw: &str) -> Option<ParsedName<'_>> {
    let (class, rest) = raw.strip_prefix('L')?.split_once(';')?;
    let (method, rest) = rest.split_once('(')?;
    let (arguments, _) = rest.split_once(')')?;
    let function = format!("{}.{method}({})", class.replace('/', "."), java_types(arguments)?);
    Some(ParsedName { function: function.into(), ..ParsedName::default() })
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

/// Whether a name is that of a method in the JVM's notation. perf's JVMTI agent writes it for every compiled method; its
/// other names are those of the JVM's own code: adapters, intrinsics, handlers, the interpreter.
#[must_use]
pub fn is_java_method(raw: &str) -> bool {
    java(raw).is_some()
}

/// `*name`, the code of a function that Dart optimized, and `Library:'file' Class: name`, the stub that allocates objects of a class.
fn dart(raw: &str) -> Option<ParsedName<'_>> {
    if raw.starts_with("Library:'") && raw.contains("' Class: ") {
        let function = raw.into();
        return Some(ParsedName { function, tier: Some("stub"), stub: true, ..ParsedName::default() });
    }
    let function = raw.strip_prefix('*')?;
    let is_name =
        function.starts_with(|first: char| first.is_alphabetic() || matches!(first, '_' | ':' | '$'));
    is_name.then(|| ParsedName {
        function: function.into(),
        tier: Some("optimized"),
        ..ParsedName::default()
    })
}

/// Helper code: PHP's `JIT$$…`, Erlang's `global::…` and the data around its modules and functions, stubs and
/// interpreter of the JVM, trampolines.
fn stub(raw: &str) -> Option<ParsedName<'_>> {
    if raw == "Interpreter" {
        return Some(ParsedName {
            function: raw.into(),
            tier: Some("interpreter"),
            stub: true,
            ..ParsedName::default()
        });
    }
    let is_stub = raw.starts_with("JIT$$")
        || raw.starts_with("global::")
        || raw.ends_with("-CodeInfoPrologue")
        || raw.ends_with("::codeHeader")
        || raw.ends_with("::codeFooter")
        || raw.starts_with("StubRoutines")
        || raw.ends_with("_stub")
        || raw.contains("_trampoline");
    is_stub.then_some(ParsedName {
        function: raw.into(),
        tier: Some("stub"),
        stub: true,
        ..ParsedName::default()
    })
}

/// `file:line:column` or `file:line`
fn parse_position(position: &str) -> (Option<&str>, Option<u32>, Option<u32>) {
    let number = |text: &str| text.parse::<u32>().ok();
    if position.is_empty() {
        return (None, None, None);
    }
    let Some((head, Some(last))) = position.rsplit_once(':').map(|(head, last)| (head, number(last))) else {
        return (Some(position), None, None);
    };
    match head.rsplit_once(':').map(|(path, line)| (path, number(line))) {
        Some((path, Some(line))) => (Some(path), Some(line), Some(last)),
        _ => (Some(head), Some(last), None),
    }
}
