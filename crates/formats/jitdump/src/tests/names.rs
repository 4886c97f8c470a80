//! Names of all runtimes.

use crate::names::parse;

#[test]
fn names_of_every_runtime() {
    let parsed = |raw| {
        let name = parse(raw);
        let position = name.path.map(|path| (path.to_owned(), name.line, name.column));
        (name.function.into_owned(), name.tier.map(str::to_owned), name.stub, position)
    };
    let at = |path: &str, line, column| Some((path.to_owned(), line, column));
    let tier = |tier: &str| Some(tier.to_owned());
    for (raw, expected) in [
        ("JS:*fib /a/b.js:1:13", ("fib", tier("turbofan"), false, at("/a/b.js", Some(1), Some(13)))),
        (
            "JS:^ /a b/c.js:3:45",
            ("(anonymous)", tier("sparkplug"), false, at("/a b/c.js", Some(3), Some(45))),
        ),
        ("JS:+'get size node:fs:7:2", ("get size", tier("maglev"), false, at("node:fs", Some(7), Some(2)))),
        ("JS:o*f file:///x.mjs:1:1", ("f", tier("turbofan"), false, at("file:///x.mjs", Some(1), Some(1)))),
        ("LazyCompile:~f /a.js:9", ("f", tier("ignition"), false, at("/a.js", Some(9), None))),
        ("JS:wasm-function[3]-3-liftoff", ("wasm-function[3]-3", tier("liftoff"), false, None)),
        ("Builtin:ArrayMap", ("ArrayMap", tier("builtin"), true, None)),
        ("BytecodeHandler:Ldar", ("Ldar", tier("ignition handler"), true, None)),
        ("JS:wasm-to-js:i:i-imp-0-turbofan", ("wasm-to-js:i:i-imp-0", tier("turbofan"), false, None)),
        ("JS:wasm-to-js-<anonymous>-none", ("wasm-to-js-<anonymous>", tier("builtin"), true, None)),
        ("RegExp:a(b+) c", ("a(b+) c", tier("regexp"), false, None)),
        ("RegExp.> src: '\\d' flags: 'x' flags: 'gi'", ("/\\d' flags: 'x/gi", tier("regexp"), false, None)),
        ("RegExp.< src: 'q:\n|z' flags: ''", ("/q:\n|z/", tier("regexp"), false, None)),
        ("py::C.f:/x/y.py", ("C.f", tier("interpreter"), false, at("/x/y.py", None, None))),
        ("py::f:<frozen codecs>", ("f", tier("interpreter"), false, at("<frozen codecs>", None, None))),
        ("JSC-FTL: fib#DuQIhJ", ("fib", tier("FTL"), false, None)),
        ("JSC-DFG: #Bj5bNF", ("#Bj5bNF", tier("DFG"), false, None)),
        ("JSC-Thunk: DefaultCall", ("DefaultCall", tier("Thunk"), true, None)),
        ("Ion: f (/a.js:3:4)", ("f", tier("Ion"), false, at("/a.js", Some(3), Some(4)))),
        (
            "BaselineInterpreter: f (/a.js:3:4)",
            ("f", tier("BaselineInterpreter"), false, at("/a.js", Some(3), Some(4))),
        ),
        ("BaselineICFallback: GetProp", ("GetProp", tier("BaselineICFallback"), true, None)),
        ("BaselineIC: Compare.Int32", ("Compare.Int32", tier("BaselineIC"), true, None)),
        ("RegExp", ("RegExp", tier("regexp"), false, None)),
        ("*::_alpha", ("::_alpha", tier("optimized"), false, None)),
        ("*dart.core__List@0150898_[]", ("dart.core__List@0150898_[]", tier("optimized"), false, None)),
        ("::_alpha", ("::_alpha", None, false, None)),
        ("*", ("*", None, false, None)),
        (
            "Library:'dart:async' Class: _Timer@5048458",
            ("Library:'dart:async' Class: _Timer@5048458", tier("stub"), true, None),
        ),
        ("StringConcatStub", ("StringConcatStub", tier("stub"), true, None)),
        (
            "void [A] B::C(int32)[OptimizedTier1]",
            ("void [A] B::C(int32)", tier("OptimizedTier1"), false, None),
        ),
        ("stub<1> Precode", ("stub<1> Precode", tier("stub"), true, None)),
        (
            "Ljava/util/Arrays;copyOf([[ILa/B;J)[I",
            ("java.util.Arrays.copyOf(int[][], a.B, long)", None, false, None),
        ),
        ("lists:map/2", ("lists:map/2", None, false, None)),
        ("lists:map/2-CodeInfoPrologue", ("lists:map/2-CodeInfoPrologue", tier("stub"), true, None)),
        ("", ("", None, false, None)),
        ("JS:", ("(anonymous)", None, false, None)),
    ] {
        let (function, tier, stub, position) = expected;
        assert_eq!(parsed(raw), (function.to_owned(), tier, stub, position), "{raw}");
    }
}
