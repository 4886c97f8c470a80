//! Which mappings are of memory rather than of a file with symbols, by the names that kernels record.

/// How the names of mapped memory begin.
const MEMORY: [&[u8]; 8] =
    [b"//anon", b"[anon:", b"/memfd:", b"/dev/", b"/anon_hugepage", b"/SYSV", b"anon_inode:", b"//toolong"];
/// The file system of POSIX shared memory, whose files have names of their own among those of devices.
const SHARED_MEMORY_FILES: &[u8] = b"/dev/shm/";

/// Whether a mapping is of memory without symbols, by the path in its record. A build id is only of an ELF file: memory that has one
/// is a program or a library, as where a loader writes it to a `memfd`.
#[must_use]
pub fn is_memory(path: &[u8], has_build_id: bool) -> bool {
    !has_build_id
        && !path.starts_with(SHARED_MEMORY_FILES)
        && MEMORY.iter().any(|prefix| path.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::is_memory;

    #[test]
    fn memory_is_what_has_neither_a_file_nor_a_build_id() {
        for path in
            ["//anon", "[anon:v8]", "/memfd:jit (deleted)", "/dev/zero (deleted)", "/anon_hugepage (deleted)"]
        {
            assert!(is_memory(path.as_bytes(), false), "{path}");
        }
        for path in ["/dev/shm/program", "/usr/bin/node", "[vdso]", "[nf_tables]", "/device/program"] {
            assert!(!is_memory(path.as_bytes(), false), "{path}");
        }
        assert!(!is_memory(b"/memfd:program (deleted)", true));
    }
}
