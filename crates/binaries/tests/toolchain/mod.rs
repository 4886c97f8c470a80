//! Tools of this machine, directories for what they make, and symbolizers that read nothing else of it.

use std::path::PathBuf;
use std::process::Command;

use perfuse_binaries::symbolize::{Options, Symbolizer};

/// A directory of its own for one test, removed when it is done.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(test: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("perfuse-binaries-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory for the test");
        Self(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs a tool and returns its output.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Options that name no directory of this machine.
pub fn options(debug: bool) -> Options {
    let none = Vec::new();
    Options {
        symbol_dirs: none.clone(),
        debug,
        build_id_dirs: none.clone(),
        debug_dirs: none,
        live_kernel: false,
        recorded_on: None,
        ..Options::default()
    }
}

/// A symbolizer that uses no directory of this machine.
pub fn symbolizer(debug: bool) -> Symbolizer {
    Symbolizer::new(options(debug))
}
