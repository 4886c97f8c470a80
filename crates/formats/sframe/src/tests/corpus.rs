//! Files of the corpus. Without it, these tests do nothing.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::SFrame;
use perfuse_recording::Source;

/// Every file of the corpus of this format that a test selects by its path, sorted.
pub fn files(select: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let files = perfuse_corpus::files(&["sframe"]);
    files.into_iter().filter(|path| select(&path.to_string_lossy())).collect()
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
