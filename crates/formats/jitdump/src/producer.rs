//! The producer of a dump, detected from its header and names. Some fields have a different meaning for each producer.

use std::fmt;

use super::consts::V8_PAD;
use super::layout::FileHeader;

/// A program that writes JITDUMP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Producer {
    /// V8: node, Chromium.
    V8,
    /// Dart's virtual machine, `--generate_perf_jitdump`.
    Dart,
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
    /// No known producer.
    #[default]
    Unknown,
}

/// Names of code that Dart's virtual machine writes first. Its header is V8's.
const DART_STUBS: [&str; 4] = ["JumpToFrame", "RunExceptionHandler", "DeoptForRewind", "InvokeDartCode"];

impl Producer {
    /// Detects the producer from the header, the path, and the first loads: each name, and whether `vma` is 0 and
    /// `code_addr` is not.
    #[must_use]
    pub fn detect<'a>(header: &FileHeader, path: &str, loads: impl Iterator<Item = (&'a str, bool)>) -> Self {
        if header.pad1 == V8_PAD {
            let mut names = loads.map(|(name, _)| name);
            return if names.any(|name| DART_STUBS.contains(&name)) { Self::Dart } else { Self::V8 };
        }
        let mut vma_is_zero = false;
        for (name, no_vma) in loads {
            vma_is_zero |= no_vma;
            if let Some(producer) = Self::from_name(name) {
                return producer;
            }
        }
        let has_undefined_flags = header.flags > 1;
        if path.contains("java-jit-") {
            Self::OpenJdk
        } else if vma_is_zero || has_undefined_flags || path.contains("llvm-IR-jit-") {
            Self::Llvm
        } else {
            Self::Unknown
        }
    }

    /// The producer that writes names of this form.
    fn from_name(name: &str) -> Option<Self> {
        const PREFIXES: [(&str, Producer); 17] = [
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
        let by_prefix =
            PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, producer)| *producer);
        by_prefix.or_else(|| {
            let java = name.starts_with('L') && name.contains(';') && name.contains('(');
            java.then_some(Self::OpenJdk).or_else(|| (name == "flush_icache_stub").then_some(Self::OpenJdk))
        })
    }

    /// Whether `discrim` of debug entries is a column; otherwise it is a DWARF discriminator.
    #[must_use]
    pub fn writes_columns(self) -> bool {
        !matches!(self, Self::Llvm)
    }

    /// Whether a debug entry is at the end of the code that it describes. HotSpot's tables have a return address for a call
    /// and the last instruction for other code (`nmethod::pc_desc_near`), and the agent copies them.
    #[must_use]
    pub fn entries_end_lines(self) -> bool {
        matches!(self, Self::OpenJdk)
    }
}

impl fmt::Display for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V8 => "V8",
            Self::Dart => "Dart",
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
