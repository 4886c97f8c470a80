//! Compilers and linkers, and what they know of what they made.

use std::path::{Path, PathBuf};
use std::process::Command;

pub use crate::toolchain::{Scratch, options, run, symbolizer};

impl Scratch {
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("written");
        path
    }
}

/// Whether all these programs are here; in CI they have to be.
pub fn have(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| Command::new(program).arg("--version").output().is_err());
    assert!(missing.is_none() || std::env::var_os("CI").is_none(), "{missing:?} is not installed");
    missing.is_none()
}

/// A function as nm has it.
#[derive(Debug)]
pub struct Function {
    pub address: u64,
    /// 0 in Mach-O, which has no sizes.
    pub size: u64,
    pub name: String,
}

/// The functions in a file's text, by LLVM's nm, which reads every machine's; sorted by address.
pub fn functions(file: &Path) -> Vec<Function> {
    let listing = run(Command::new("llvm-nm-22").args(["-S", "--defined-only", "--format=posix"]).arg(file));
    let function = |line: &str| {
        let mut words = line.split_whitespace();
        let (name, kind) = (words.next()?, words.next()?);
        let mut number = || words.next().map(|digits| u64::from_str_radix(digits, 16).expect("a number"));
        let (address, size) = (number()?, number().unwrap_or(0));
        matches!(kind, "t" | "T" | "w" | "W").then(|| Function { address, size, name: name.to_owned() })
    };
    let mut found: Vec<Function> = listing.lines().filter_map(function).collect();
    found.sort_by_key(|function| function.address);
    found
}
