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
    pub const ALL: [Self; 11] = [
        Self::Interpreter,
        Self::Baseline,
        Self::MidTier,
        Self::Optimised,
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
            "jit" if matches!(code_kind, "stub" | "helper") => Self::Stub,
            "jit" => tier.map_or(Self::Jit, Self::of_tier),
            "type" => Self::Type,
            "native" | "traced" if named => Self::Native,
            _ => Self::Unknown,
        }
    }

    /// Tiers as their runtimes call them: V8, SpiderMonkey, JavaScriptCore, .NET, HotSpot, wasm, CPython, BEAM.
    fn of_tier(tier: &str) -> Self {
        match tier.to_ascii_lowercase().as_str() {
            "ignition" | "interpreter" | "interpreted" | "llint" | "blinterp" | "blinterpinterpreter" => {
                Self::Interpreter
            }
            "sparkplug" | "baseline" | "liftoff" | "bbq" | "wasmbbq" | "tier0" | "quickjitted"
            | "minoptjitted" | "c1" | "instrumented" => Self::Baseline,
            "maglev" | "dfg" | "prejit" | "readytorun" => Self::MidTier,
            "turbofan" | "turboshaft" | "ion" | "ftl" | "omg" | "wasmomg" | "wasm" | "c2" | "tier1"
            | "tier1osr" | "optimizedtier1" | "optimizedtier1osr" | "optimized" => Self::Optimised,
            "builtin" | "stub" | "ignition handler" | "regexp" | "trampoline" | "ionic" | "baselineic"
            | "ic" | "blinterpop" | "vmwrapper" => Self::Stub,
            _ => Self::Jit,
        }
    }
}
