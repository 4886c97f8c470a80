//! The origin of a frame's code: the classes that flame graphs are coloured by.

/// The producer of a frame's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CodeOrigin {
    /// A JIT's interpreter, or code in its first form.
    Interpreter,
    /// A compiler that compiles fast and optimises little.
    Baseline,
    /// A compiler between baseline and the highest tier.
    MidTier,
    /// The highest tier of a runtime.
    Optimised,
    /// Code of a runtime that was compiled before the run.
    AheadOfTime,
    /// JIT code of an unknown tier.
    Jit,
    /// A runtime's stubs, builtins and trampolines.
    Stub,
    /// A function inlined into its caller.
    Inlined,
    /// Code of an executable or library.
    Native,
    /// The kernel or a hypervisor.
    Kernel,
    /// The type of an allocated object.
    Type,
    /// An address without any information.
    Unknown,
}

impl CodeOrigin {
    /// Every origin, in the order legends show them.
    pub const ALL: [Self; 12] = [
        Self::Interpreter,
        Self::Baseline,
        Self::MidTier,
        Self::Optimised,
        Self::AheadOfTime,
        Self::Jit,
        Self::Stub,
        Self::Inlined,
        Self::Native,
        Self::Kernel,
        Self::Type,
        Self::Unknown,
    ];

    /// Name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Interpreter => "interpreter",
            Self::Baseline => "baseline",
            Self::MidTier => "mid_tier",
            Self::Optimised => "optimised",
            Self::AheadOfTime => "ahead_of_time",
            Self::Jit => "jit",
            Self::Stub => "stub",
            Self::Inlined => "inlined",
            Self::Native => "native",
            Self::Kernel => "kernel",
            Self::Type => "type",
            Self::Unknown => "unknown",
        }
    }

    /// Origin of a frame.
    ///
    /// `kind` is the frame's, `code_kind` and `tier` are those of its code object.
    #[must_use]
    pub fn of(kind: &str, code_kind: &str, tier: Option<&str>, inlined: bool, named: bool) -> Self {
        match kind {
            "kernel" | "hypervisor" => Self::Kernel,
            _ if inlined => Self::Inlined,
            "jit" => match tier.map_or(Self::Jit, Self::of_tier) {
                Self::Jit if matches!(code_kind, "stub" | "helper") => Self::Stub,
                Self::Jit if code_kind == "aot" => Self::AheadOfTime,
                origin => origin,
            },
            "type" => Self::Type,
            "native" | "traced" if named => Self::Native,
            _ => Self::Unknown,
        }
    }

    fn of_tier(tier: &str) -> Self {
        let tier = tier.to_ascii_lowercase();
        TIERS.iter().find(|(_, tiers)| tiers.contains(&&*tier)).map_or(Self::Jit, |&(origin, _)| origin)
    }

    /// What tables call code of it, in lower case: its tiers, and kinds of frames and of code.
    pub fn tiers_and_kinds(self) -> impl Iterator<Item = &'static str> {
        let of_it = move |&&(origin, _): &&(Self, &[&'static str])| origin == self;
        TIERS.iter().chain(&KINDS).filter(of_it).flat_map(|(_, names)| names.iter().copied())
    }
}

/// Tiers as their runtimes call them: V8, SpiderMonkey, JavaScriptCore, .NET, HotSpot, wasm, CPython, BEAM. All others are
/// [`CodeOrigin::Jit`].
const TIERS: [(CodeOrigin, &[&str]); 6] = [
    // Handlers of single instructions are the interpreter, too.
    (
        CodeOrigin::Interpreter,
        &[
            "ignition",
            "ignition handler",
            "interpreter",
            "interpreted",
            "llint",
            "llintthunk",
            "blinterp",
            "blinterpinterpreter",
            "blinterpop",
            "baselineinterpreter",
        ],
    ),
    (
        CodeOrigin::Baseline,
        &[
            "sparkplug",
            "baseline",
            "liftoff",
            "bbq",
            "wasmbbq",
            "tier0",
            "quickjitted",
            "minoptjitted",
            "c1",
            "instrumented",
        ],
    ),
    (CodeOrigin::MidTier, &["maglev", "dfg"]),
    (
        CodeOrigin::Optimised,
        &[
            "turbofan",
            "turboshaft",
            "ion",
            "ftl",
            "omg",
            "wasmomg",
            "wasm",
            "c2",
            "tier1",
            "tier1osr",
            "optimizedtier1",
            "optimizedtier1osr",
            "optimized",
        ],
    ),
    (CodeOrigin::AheadOfTime, &["prejit", "readytorun"]),
    (
        CodeOrigin::Stub,
        &[
            "builtin",
            "stub",
            "regexp",
            "trampoline",
            "ionic",
            "baselineic",
            "baselineicfallback",
            "ic",
            "vmwrapper",
        ],
    ),
];

/// Kinds of code without a tier.
const KINDS: [(CodeOrigin, &[&str]); 8] = [
    (CodeOrigin::Stub, &["helper"]),
    (CodeOrigin::AheadOfTime, &["aot"]),
    (CodeOrigin::Jit, &["jit"]),
    (CodeOrigin::Inlined, &["inlined"]),
    (CodeOrigin::Native, &["native", "traced"]),
    (CodeOrigin::Kernel, &["kernel", "hypervisor"]),
    (CodeOrigin::Type, &["type"]),
    (CodeOrigin::Unknown, &["unknown"]),
];
