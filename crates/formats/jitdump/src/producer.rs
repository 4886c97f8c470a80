//! Who wrote a dump, told by its habits: what a reader may believe depends on it.

use std::fmt;

use super::consts::V8_PAD;
use super::layout::FileHeader;

/// A program that writes JITDUMP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Producer {
    /// V8: node, Chromium.
    V8,
    /// CPython 3.13 and later, `-X perf_jit`.
    CPython,
    /// JavaScriptCore.
    JavaScriptCore,
    /// SpiderMonkey.
    SpiderMonkey,
    /// .NET (CoreCLR).
    DotNet,
    /// OpenJDK with perf's JVMTI agent.
    OpenJdk,
    /// LLVM's MCJIT listener or ORC plug-in: Julia, PostgreSQL, llvm-jitlink.
    Llvm,
    /// Erlang/OTP.
    Erlang,
    /// QEMU user mode.
    Qemu,
    /// wasmtime.
    Wasmtime,
    /// PHP OPcache.
    Php,
    /// Nobody known.
    #[default]
    Unknown,
}

impl Producer {
    /// Tells by the header, the path, and the names and `vma`s of the first loads.
    #[must_use]
    pub fn tell<'a>(header: &FileHeader, path: &str, loads: impl Iterator<Item = (&'a str, bool)>) -> Self {
        if header.pad1 == V8_PAD {
            return Self::V8;
        }
        let mut vma_is_zero = false;
        for (name, no_vma) in loads {
            vma_is_zero |= no_vma;
            if let Some(known) = Self::by_name(name) {
                return known;
            }
        }
        let garbage_flags = header.flags > 1;
        if path.contains("java-jit-") {
            Self::OpenJdk
        } else if vma_is_zero || garbage_flags || path.contains("llvm-IR-jit-") {
            Self::Llvm
        } else {
            Self::Unknown
        }
    }

    fn by_name(name: &str) -> Option<Self> {
        const MARKS: [(&str, Producer); 17] = [
            ("py::", Producer::CPython),
            ("JSC-", Producer::JavaScriptCore),
            ("JS:", Producer::V8),
            ("Builtin:", Producer::V8),
            ("LazyCompile:", Producer::V8),
            ("Ion: ", Producer::SpiderMonkey),
            ("IonIC: ", Producer::SpiderMonkey),
            ("Baseline: ", Producer::SpiderMonkey),
            ("BlinterpOp: ", Producer::SpiderMonkey),
            ("VMWrapper: ", Producer::SpiderMonkey),
            ("stub<", Producer::DotNet),
            ("guest-0x", Producer::Qemu),
            ("JIT$", Producer::Php),
            ("wasm[", Producer::Wasmtime),
            ("signatures[", Producer::Wasmtime),
            ("global::", Producer::Erlang),
            ("StubRoutines", Producer::OpenJdk),
        ];
        let marked = MARKS.iter().find(|(mark, _)| name.starts_with(mark)).map(|(_, producer)| *producer);
        marked.or_else(|| {
            let java = name.starts_with('L') && name.contains(';') && name.contains('(');
            java.then_some(Self::OpenJdk).or_else(|| (name == "flush_icache_stub").then_some(Self::OpenJdk))
        })
    }

    /// Whether the `discrim` of its debug entries is a column.
    #[must_use]
    pub fn writes_columns(self) -> bool {
        !matches!(self, Self::Llvm)
    }
}

impl fmt::Display for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V8 => "V8",
            Self::CPython => "CPython",
            Self::JavaScriptCore => "JavaScriptCore",
            Self::SpiderMonkey => "SpiderMonkey",
            Self::DotNet => ".NET",
            Self::OpenJdk => "OpenJDK (perf's JVMTI agent)",
            Self::Llvm => "LLVM",
            Self::Erlang => "Erlang/OTP",
            Self::Qemu => "QEMU",
            Self::Wasmtime => "wasmtime",
            Self::Php => "PHP OPcache",
            Self::Unknown => "unknown",
        })
    }
}
