//! Finds the files of a recording on this machine: by build id, path and debug link.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use object::Object;
use perfuse_mapped::UnpackLimit;

use super::elf_module::is_stripped;
use super::follow::Follow;
use super::image::{ElfBuildId, Image};
use super::split_dwarf::SplitFiles;

/// Opens the file recorded as `path`; files with another build id are rejected.
///
/// # Errors
/// The reason why the first file was rejected, or that no file was found.
pub(crate) fn find_image(
    search: &SearchPath,
    path: &str,
    deleted: bool,
    build_id: Option<&ElfBuildId>,
) -> Result<Arc<Image>, Arc<str>> {
    if deleted && build_id.is_none() {
        return Err("the file was deleted while recording, and its build id was not recorded".into());
    }
    let mut first_reason = None;
    for candidate in search.images(path, build_id) {
        match open_elf(search, &candidate, build_id) {
            Ok(image) => return Ok(Arc::new(image)),
            Err(Refusal::Absent) => {}
            Err(Refusal::Because(reason)) => first_reason = first_reason.or(Some(reason)),
        }
    }
    let absent = search.follow.refusal().unwrap_or("module file not found");
    Err(first_reason.unwrap_or_else(|| absent.into()))
}

/// Opens the first of several files whose build id is the one given.
pub(crate) fn first_with_id(
    search: &SearchPath,
    candidates: &[impl AsRef<Path>],
    build_id: &ElfBuildId,
) -> Option<Arc<Image>> {
    let open = |path: &Path| open_elf(search, path, Some(build_id)).ok().map(Arc::new);
    candidates.iter().find_map(|candidate| open(candidate.as_ref()))
}

/// The file with what a stripped image lacks: its separate debug file by build id, another copy of the file recorded as `path`
/// (`strip` does not change the id, and perf's cache has whichever copy was recorded first), or its `.gnu_debuglink`.
pub(crate) fn find_debug_image(
    search: &SearchPath,
    image: &Image,
    path: &str,
    with_dwarf: bool,
) -> Option<Arc<Image>> {
    let elf = image.elf().ok()?;
    if !is_stripped(&elf, with_dwarf) {
        return None;
    }
    let id = ElfBuildId::of(&elf);
    if let Some(id) = &id {
        let found = first_with_id(search, &search.debug_files(id), id);
        if let Some(found) = found.or_else(|| more_complete_copy(search, image, path, id, with_dwarf)) {
            return Some(found);
        }
    }
    let (link, crc) = elf.gnu_debuglink().ok()??;
    let candidates = search.linked_debug_files(&image.path, std::str::from_utf8(link).ok()?);
    // The link of a file that is its own debug file names the file itself.
    let mut others = candidates.iter().filter(|candidate| **candidate != image.path);
    others.find_map(|candidate| {
        let debug = open_elf(search, candidate, None).ok()?;
        let is_its = match (&id, debug.build_id()) {
            (Some(id), Some(other)) => id.matches(&other),
            _ => crc32(&debug) == crc,
        };
        is_its.then(|| Arc::new(debug))
    })
}

/// A copy of the file recorded as `path` that has what the one found first lacks: DWARF, or at least the full symbol table.
fn more_complete_copy(
    search: &SearchPath,
    found: &Image,
    path: &str,
    id: &ElfBuildId,
    with_dwarf: bool,
) -> Option<Arc<Image>> {
    let candidates: Vec<_> =
        search.images(path, Some(id)).into_iter().filter(|candidate| *candidate != found.path).collect();
    let first_that_has = |dwarf: bool| {
        candidates.iter().find_map(|candidate| {
            let copy = open_elf(search, candidate, Some(id)).ok()?;
            copy.elf().is_ok_and(|elf| !is_stripped(&elf, dwarf)).then(|| Arc::new(copy))
        })
    };
    let with_all = if with_dwarf { first_that_has(true) } else { None };
    with_all.or_else(|| if is_stripped(&found.elf().ok()?, false) { first_that_has(false) } else { None })
}

/// The file with common parts of several debug files, as dwz writes it.
pub(crate) fn find_supplement(search: &SearchPath, image: &Image) -> Option<Arc<Image>> {
    let elf = image.elf().ok()?;
    let (path, id) = elf.gnu_debugaltlink().ok()??;
    let (path, id) = (Path::new(std::str::from_utf8(path).ok()?), ElfBuildId::new(id)?);
    // The path is content of the image: it may lead anywhere.
    let linked = if search.follow == Follow::All { Some(image.path.parent()?.join(path)) } else { None };
    let linked = linked.and_then(|path| first_with_id(search, &[path], &id));
    linked.or_else(|| first_with_id(search, &search.debug_files(&id), &id))
}

impl SplitFiles for SearchPath {
    fn packages(&self, program: &Path) -> Vec<Arc<Image>> {
        let Some(name) = program.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
        let mut name = PathBuf::from(name);
        name.as_mut_os_string().push(".dwp");
        self.opened(self.beside(program, &name))
    }

    fn units(&self, program: &Path, name: &Path, directory: Option<&Path>) -> Vec<Arc<Image>> {
        let recorded = directory.unwrap_or(Path::new("")).join(name);
        let mut found: Vec<PathBuf> =
            self.symbol_dirs.iter().map(|dir| dir.join(relative_path(&recorded))).collect();
        if self.follow == Follow::All && recorded.is_absolute() {
            found.push(recorded);
        }
        found.extend(name.file_name().into_iter().flat_map(|name| self.beside(program, Path::new(name))));
        self.opened(found)
    }
}

/// Why a file was not opened.
enum Refusal {
    /// There is no such file.
    Absent,
    Because(Arc<str>),
}

fn open_elf(search: &SearchPath, path: &Path, expected: Option<&ElfBuildId>) -> Result<Image, Refusal> {
    let because = |reason: String| Refusal::Because(reason.into());
    let image = Image::open_within(path, search.unpack_limit).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Refusal::Absent,
        // A build-id directory is a directory in newer caches and a file in older ones.
        io::ErrorKind::InvalidInput => Refusal::Absent,
        _ => because(format!("module file cannot be read: {error}")),
    })?;
    // Assemblies of .NET, and what Wine runs.
    if image.starts_with(b"MZ") {
        return Err(because("a PE file, whose symbols are not read".to_owned()));
    }
    let elf = image.elf().map_err(|error| because(format!("not a readable ELF file: {error}")))?;
    let found = ElfBuildId::of(&elf);
    match (expected, found) {
        (Some(expected), Some(found)) if !expected.matches(&found) => {
            Err(because(format!("build id differs: the file here has {found}, the recorded one {expected}")))
        }
        (Some(expected), None) => {
            Err(because(format!("the file here has no build id, the recorded one {expected}")))
        }
        _ => Ok(image),
    }
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// The directories that are searched for files.
#[derive(Debug)]
pub(crate) struct SearchPath {
    pub(crate) symbol_dirs: Vec<PathBuf>,
    pub(crate) build_id_dirs: Vec<PathBuf>,
    pub(crate) debug_dirs: Vec<PathBuf>,
    pub(crate) follow: Follow,
    pub(crate) unpack_limit: UnpackLimit,
}

impl SearchPath {
    /// Candidates for a file that belongs to a program: in the given directories, and beside the program.
    fn beside(&self, program: &Path, name: &Path) -> Vec<PathBuf> {
        self.symbol_dirs
            .iter()
            .map(PathBuf::as_path)
            .chain(program.parent())
            .map(|dir| dir.join(name))
            .collect()
    }

    /// Those candidates that are ELF files.
    fn opened(&self, candidates: Vec<PathBuf>) -> Vec<Arc<Image>> {
        candidates.iter().filter_map(|path| open_elf(self, path, None).ok().map(Arc::new)).collect()
    }

    /// Candidates for the file recorded as `path`, the most likely first.
    pub(crate) fn images(&self, path: &str, build_id: Option<&ElfBuildId>) -> Vec<PathBuf> {
        let relative = relative_path(Path::new(path));
        let mut found = Vec::new();
        for dir in &self.symbol_dirs {
            found.push(dir.join(&relative));
            found.extend(relative.file_name().map(|name| dir.join(name)));
            // A program in memory has the name that its loader gave it.
            found.extend(path.strip_prefix("/memfd:").map(|name| dir.join(relative_path(Path::new(name)))));
        }
        // Debug files are beside the program itself: a copy in a cache has none.
        if self.follow == Follow::All {
            found.push(PathBuf::from(path));
        }
        if let Some(id) = build_id {
            found.extend(self.cached(id, path, "elf"));
            found.extend(by_id(&self.symbol_dirs, id, ""));
            found.extend(debuginfod(&self.symbol_dirs, id, "executable"));
            found.extend(debuginfod(&self.debug_dirs, id, "executable"));
        }
        found
    }

    /// Candidates in perf's build-id cache for the `elf`, `vdso` or `kallsyms` of a file: by the id alone and below the path.
    pub(crate) fn cached(&self, id: &ElfBuildId, path: &str, what: &str) -> Vec<PathBuf> {
        let mut found = by_id(&self.build_id_dirs, id, &format!("/{what}"));
        for dir in &self.build_id_dirs {
            found.extend(
                id.spellings().iter().map(|id| dir.join(relative_path(Path::new(path))).join(id).join(what)),
            );
        }
        if what == "elf" {
            // Before perf 4.12 the id led to the file itself.
            found.extend(by_id(&self.build_id_dirs, id, ""));
        }
        found
    }

    /// Candidates for the debug file of a build id.
    pub(crate) fn debug_files(&self, id: &ElfBuildId) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for dirs in [&self.symbol_dirs, &self.debug_dirs] {
            found.extend(by_id(dirs, id, ".debug"));
            found.extend(debuginfod(dirs, id, "debuginfo"));
        }
        found.extend(by_id(&self.build_id_dirs, id, "/debug"));
        found
    }

    /// Candidates for the debug file that a program at `path` names in its `.gnu_debuglink`.
    pub(crate) fn linked_debug_files(&self, path: &Path, link: &str) -> Vec<PathBuf> {
        // A link is a bare name; one with directories is not valid.
        if link.is_empty() || Path::new(link).file_name() != Some(link.as_ref()) {
            return Vec::new();
        }
        let mut found: Vec<PathBuf> = self.symbol_dirs.iter().map(|dir| dir.join(link)).collect();
        // `/lib` may be a link to `/usr/lib`, and debug files are sorted by the latter.
        let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if let Some(home) = real.parent() {
            found.extend([home.join(link), home.join(".debug").join(link)]);
            found.extend(self.debug_dirs.iter().map(|dir| dir.join(relative_path(home)).join(link)));
        }
        found
    }
}

/// `.build-id/ab/cdef...` in each directory, as distributions and perf store them.
fn by_id(dirs: &[PathBuf], id: &ElfBuildId, ending: &str) -> Vec<PathBuf> {
    let spellings = id.spellings();
    let path = |id: &String| {
        let (directory, file) = id.split_at_checked(2)?;
        Some(format!(".build-id/{directory}/{file}{ending}"))
    };
    let paths: Vec<String> = spellings.iter().filter_map(path).collect();
    dirs.iter().flat_map(|dir| paths.iter().map(move |path| dir.join(path))).collect()
}

/// `abcdef.../debuginfo` in each directory, as debuginfod's cache stores them.
fn debuginfod(dirs: &[PathBuf], id: &ElfBuildId, what: &str) -> Vec<PathBuf> {
    dirs.iter().map(|dir| dir.join(id.to_string()).join(what)).collect()
}

/// A recorded path made relative, so that it cannot lead out of the directory it is joined to.
fn relative_path(path: &Path) -> PathBuf {
    path.components().filter(|part| matches!(part, Component::Normal(_))).collect()
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{ElfBuildId, Follow, SearchPath, UnpackLimit};

    fn search_path() -> SearchPath {
        SearchPath {
            symbol_dirs: vec!["/s".into()],
            build_id_dirs: vec!["/b".into()],
            debug_dirs: vec!["/d".into()],
            follow: Follow::All,
            unpack_limit: UnpackLimit::default(),
        }
    }

    #[test]
    fn recorded_paths_are_candidates_only_where_all_are_followed() {
        let named = SearchPath { follow: Follow::Named, ..search_path() };
        let found = named.images("/usr/lib/x", None);
        assert_eq!(found, [PathBuf::from("/s/usr/lib/x"), PathBuf::from("/s/x")]);
    }

    #[test]
    fn a_given_directory_comes_first_then_the_path_itself_then_caches() {
        let id = ElfBuildId::from_hex("abcdef0123456789abcdef0123456789abcdef01").expect("hex");
        let found = search_path().images("/usr/bin/../lib/x", Some(&id));
        assert_eq!(found[0], Path::new("/s/usr/bin/lib/x"), "no way out of the directory");
        assert_eq!(found[1], Path::new("/s/x"));
        assert_eq!(found[2], Path::new("/usr/bin/../lib/x"));
        let cached = Path::new("/b/.build-id/ab/cdef0123456789abcdef0123456789abcdef01/elf");
        assert!(found[3..].iter().any(|path| path == cached), "{found:?}");
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
