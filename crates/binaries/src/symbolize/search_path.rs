use std::path::{Component, Path, PathBuf};

use super::build_id::BuildId;

/// The directories that files are looked for in.
#[derive(Debug)]
pub(crate) struct SearchPath {
    pub(crate) symbol_dirs: Vec<PathBuf>,
    pub(crate) build_id_dirs: Vec<PathBuf>,
    pub(crate) debug_dirs: Vec<PathBuf>,
}

impl SearchPath {
    /// Where the file recorded as `path` may be, the likeliest first.
    pub(crate) fn images(&self, path: &str, build_id: Option<&BuildId>) -> Vec<PathBuf> {
        let relative = below(Path::new(path));
        let mut found = Vec::new();
        for dir in &self.symbol_dirs {
            found.push(dir.join(&relative));
            found.extend(relative.file_name().map(|name| dir.join(name)));
        }
        if let Some(id) = build_id {
            found.extend(self.cached(id, path, "elf"));
            found.extend(by_id(&self.symbol_dirs, id, ""));
            found.extend(debuginfod(&self.symbol_dirs, id, "executable"));
            found.extend(debuginfod(&self.debug_dirs, id, "executable"));
        }
        found.push(PathBuf::from(path));
        found
    }

    /// What perf's build-id cache has of a file: `elf`, `vdso` or `kallsyms`, by the id alone and below the path.
    pub(crate) fn cached(&self, id: &BuildId, path: &str, what: &str) -> Vec<PathBuf> {
        let mut found = by_id(&self.build_id_dirs, id, &format!("/{what}"));
        for dir in &self.build_id_dirs {
            found
                .extend(id.spellings().iter().map(|id| dir.join(below(Path::new(path))).join(id).join(what)));
        }
        if what == "elf" {
            // Before perf 4.12 the id led to the file itself.
            found.extend(by_id(&self.build_id_dirs, id, ""));
        }
        found
    }

    /// Debug files that belong to a build id.
    pub(crate) fn debug_files(&self, id: &BuildId) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for dirs in [&self.symbol_dirs, &self.debug_dirs] {
            found.extend(by_id(dirs, id, ".debug"));
            found.extend(debuginfod(dirs, id, "debuginfo"));
        }
        found.extend(by_id(&self.build_id_dirs, id, "/debug"));
        found
    }

    /// Where the debug file may be that a program at `path` names in its `.gnu_debuglink`.
    pub(crate) fn linked_debug_files(&self, path: &Path, link: &str) -> Vec<PathBuf> {
        // A link is a bare name; one with directories in it is up to no good.
        if link.is_empty() || Path::new(link).file_name() != Some(link.as_ref()) {
            return Vec::new();
        }
        let mut found: Vec<PathBuf> = self.symbol_dirs.iter().map(|dir| dir.join(link)).collect();
        // `/lib` may be a link to `/usr/lib`, and debug files are sorted by the latter.
        let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if let Some(home) = real.parent() {
            found.extend([home.join(link), home.join(".debug").join(link)]);
            found.extend(self.debug_dirs.iter().map(|dir| dir.join(below(home)).join(link)));
        }
        found
    }
}

/// `.build-id/ab/cdef...` in each directory, as distributions and perf have it.
fn by_id(dirs: &[PathBuf], id: &BuildId, ending: &str) -> Vec<PathBuf> {
    let spellings = id.spellings();
    let path = |id: &String| format!(".build-id/{}/{}{ending}", &id[..2], &id[2..]);
    dirs.iter().flat_map(|dir| spellings.iter().map(move |id| dir.join(path(id)))).collect()
}

/// `abcdef.../debuginfo` in each directory, as debuginfod's cache has it.
fn debuginfod(dirs: &[PathBuf], id: &BuildId, what: &str) -> Vec<PathBuf> {
    dirs.iter().map(|dir| dir.join(id.to_string()).join(what)).collect()
}

/// A recorded path made relative, so that it cannot lead out of the directory it is joined to.
fn below(path: &Path) -> PathBuf {
    path.components().filter(|part| matches!(part, Component::Normal(_))).collect()
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{BuildId, SearchPath};

    fn search_path() -> SearchPath {
        SearchPath {
            symbol_dirs: vec!["/s".into()],
            build_id_dirs: vec!["/b".into()],
            debug_dirs: vec!["/d".into()],
        }
    }

    #[test]
    fn a_given_directory_comes_first_and_the_path_itself_last() {
        let id = BuildId::from_hex("abcdef0123456789abcdef0123456789abcdef01").expect("hex");
        let found = search_path().images("/usr/bin/../lib/x", Some(&id));
        assert_eq!(found[0], Path::new("/s/usr/bin/lib/x"), "no way out of the directory");
        assert_eq!(found[1], Path::new("/s/x"));
        assert_eq!(found.last().map(PathBuf::as_path), Some(Path::new("/usr/bin/../lib/x")));
        let cached = Path::new("/b/.build-id/ab/cdef0123456789abcdef0123456789abcdef01/elf");
        assert!(found.iter().any(|path| path == cached), "{found:?}");
    }

    #[test]
    fn a_debug_link_is_a_bare_name() {
        assert!(search_path().linked_debug_files(Path::new("/bin/x"), "../../etc/x").is_empty());
        assert!(search_path().linked_debug_files(Path::new("/bin/x"), "").is_empty());
        let found = search_path().linked_debug_files(Path::new("/opt/none/x"), "x.debug");
        assert_eq!(
            found[1..],
            ["/opt/none/x.debug", "/opt/none/.debug/x.debug", "/d/opt/none/x.debug"].map(PathBuf::from)
        );
    }
}
