//! Files of the corpus: in the folder `PERFUSE_CORPUS`, else beside the repository. Without it the tests that use it
//! do nothing, except under `CI`, where they fail.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::SFrame;
use perfuse_recording::Source;

/// The folder of the corpus.
pub fn corpus() -> PathBuf {
    match std::env::var_os("PERFUSE_CORPUS") {
        Some(path) => path.into(),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/corpus"),
    }
}

/// Every file below the folder of this format whose path is accepted, sorted.
pub fn files(pick: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    files_below(corpus().join("sframe"), pick)
}

/// Every file below a folder whose path is accepted, sorted.
pub fn files_below(folder: PathBuf, pick: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    assert!(folder.is_dir() || std::env::var_os("CI").is_none(), "{} is missing", folder.display());
    let mut found = Vec::new();
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => folders.push(path),
                false if pick(&path.to_string_lossy()) => found.push(path),
                false => {}
            }
        }
    }
    found.sort();
    found
}

/// A file's bytes; `.xz` is unpacked by the program of that name.
pub fn bytes(path: &Path) -> Vec<u8> {
    if path.extension().is_some_and(|extension| extension == "xz") {
        return Command::new("xz").arg("-dc").arg(path).output().expect("xz runs").stdout;
    }
    std::fs::read(path).expect("is there")
}

/// Opens bytes; a bare section is loaded at `address`.
pub fn open(bytes: Vec<u8>, address: Option<u64>) -> SFrame {
    let source = Source::from_bytes("test", bytes).expect("no file is needed");
    SFrame::open_at(Arc::new(source), address).expect("has a section")
}
