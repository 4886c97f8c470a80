//! Files of the corpus of recordings, for the tests of other crates.
//!
//! The corpus is the folder in the environment variable `PERFUSE_CORPUS`, or else `../shared/corpus` beside the repository. A
//! checkout without the corpus can run the tests, which then skip it. Where the environment variable `CI` is set, a missing
//! corpus fails the test instead.

use std::path::{Path, PathBuf};

/// A file or folder of the corpus, by its path in it; `None` where it does not exist.
///
/// # Panics
/// When it does not exist and `CI` is set.
#[must_use]
pub fn find(path: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let root = std::env::var_os("PERFUSE_CORPUS").map_or_else(beside, PathBuf::from);
    let found = root.join(path);
    if !found.exists() {
        assert!(std::env::var_os("CI").is_none(), "the corpus has no {}", found.display());
        return None;
    }
    Some(found)
}

/// All files in these folders of the corpus and in folders below them, sorted by path; none where a folder does not exist.
///
/// # Panics
/// When a folder does not exist and `CI` is set, or cannot be read.
#[must_use]
pub fn files(folders: &[&str]) -> Vec<PathBuf> {
    let mut pending: Vec<PathBuf> = folders.iter().filter_map(|folder| find(folder)).collect();
    let mut files = Vec::new();
    while let Some(folder) = pending.pop() {
        let entries = folder.read_dir().unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() { pending.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}
