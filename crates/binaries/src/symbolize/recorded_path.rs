//! Paths of mappings, as recorders write them.

use perfuse_addresses::mapped_memory::is_memory;

/// The origin of a mapping's code, by its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordedPath<'a> {
    /// The kernel of the recorded machine; perf writes the name of its reference symbol after the bracket.
    Kernel { reference: &'a str },
    /// The kernel of a virtual machine on the recorded machine, with the name of its reference symbol as above.
    Guest { reference: &'a str },
    /// A kernel module, by its name.
    KernelModule(&'a str),
    /// The vdso, which the kernel maps into every process.
    Vdso,
    /// Memory that is not backed by a file with symbols.
    Anonymous,
    /// A file; one that is `deleted` may since have been replaced by another with that path.
    File { path: &'a str, deleted: bool },
}

impl<'a> RecordedPath<'a> {
    /// Classifies the path of a mapping that has a build id or not.
    pub(crate) fn parse(path: &'a str, has_build_id: bool) -> Self {
        if path.starts_with("[guest") {
            return Self::Guest { reference: path.split_once(']').map_or("", |(_, reference)| reference) };
        }
        for kernel in ["[kernel.kallsyms]", "[kernel.vmlinux]", "[kernel]"] {
            if let Some(reference) = path.strip_prefix(kernel) {
                return Self::Kernel { reference };
            }
        }
        if path == "[vdso]" {
            return Self::Vdso;
        }
        if let Some(name) = path.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let is_memory =
                name.starts_with("anon:") || matches!(name, "heap" | "stack" | "vsyscall" | "uprobes");
            return if is_memory || name.starts_with("stack:") {
                Self::Anonymous
            } else {
                Self::KernelModule(name)
            };
        }
        if let Some(stem) = kernel_module_stem(path) {
            return Self::KernelModule(stem);
        }
        let (bare, deleted) = path.strip_suffix(" (deleted)").map_or((path, false), |bare| (bare, true));
        if bare.is_empty() || is_memory(bare.as_bytes(), has_build_id) {
            return Self::Anonymous;
        }
        Self::File { path: bare, deleted }
    }
}

/// Name of the kernel module that a mapping is of, as perf shows it: `[snd_hda_intel]`. `None` for other mappings.
#[must_use]
pub fn kernel_module(path: &str) -> Option<String> {
    match RecordedPath::parse(path, false) {
        RecordedPath::KernelModule(name) if path.starts_with('[') => Some(format!("[{name}]")),
        // The kernel's names of modules have no hyphens; those of their files may.
        RecordedPath::KernelModule(name) => Some(format!("[{}]", name.replace('-', "_"))),
        _ => None,
    }
}

/// Whether a mapping is of the kernel itself.
#[must_use]
pub fn is_kernel_image(path: &str) -> bool {
    matches!(RecordedPath::parse(path, false), RecordedPath::Kernel { .. })
}

/// `nf_tables` of `/lib/modules/6.1.0/kernel/net/netfilter/nf_tables.ko.xz`.
fn kernel_module_stem(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next()?;
    let name = [".xz", ".zst", ".gz"].iter().find_map(|packed| name.strip_suffix(packed)).unwrap_or(name);
    name.strip_suffix(".ko").filter(|stem| !stem.is_empty())
}

#[cfg(test)]
mod tests {
    use super::RecordedPath::{self, Anonymous, File, Guest, Kernel, KernelModule, Vdso};
    use super::kernel_module;

    #[test]
    fn paths_as_recorders_write_them() {
        for (path, expected) in [
            ("[kernel.kallsyms]_text", Kernel { reference: "_text" }),
            ("[kernel]", Kernel { reference: "" }),
            ("[guest.kernel.kallsyms.1234]", Guest { reference: "" }),
            ("[guest.kernel.kallsyms]_text", Guest { reference: "_text" }),
            ("[nf_tables]", KernelModule("nf_tables")),
            ("/lib/modules/6.1.0/kernel/fs/ext4/ext4.ko.xz", KernelModule("ext4")),
            ("[vdso]", Vdso),
            ("[vsyscall]", Anonymous),
            ("[anon:v8]", Anonymous),
            ("//anon", Anonymous),
            ("/memfd:doublemapper (deleted)", Anonymous),
            ("/dev/zero (deleted)", Anonymous),
            ("", Anonymous),
            ("/dev/shm/program", File { path: "/dev/shm/program", deleted: false }),
            ("/usr/bin/node", File { path: "/usr/bin/node", deleted: false }),
            ("/tmp/a.out (deleted)", File { path: "/tmp/a.out", deleted: true }),
        ] {
            assert_eq!(RecordedPath::parse(path, false), expected, "{path}");
        }
        let in_memory = File { path: "/memfd:program", deleted: true };
        assert_eq!(RecordedPath::parse("/memfd:program (deleted)", true), in_memory);
    }

    #[test]
    fn modules_have_the_names_that_perf_shows() {
        for (path, expected) in [
            ("/lib/modules/6.1.0/kernel/sound/snd-hda-intel.ko.xz", Some("[snd_hda_intel]")),
            ("[ext4]", Some("[ext4]")),
            ("[kernel.kallsyms]_text", None),
            ("/usr/lib/debug/boot/vmlinux-6.1.0", None),
        ] {
            assert_eq!(kernel_module(path).as_deref(), expected, "{path}");
        }
    }
}
