//! Compiles the programs under test.

use std::path::{Path, PathBuf};
use std::process::Command;

pub use crate::toolchain::{Scratch, options, run, symbolizer};

pub const SOURCE: &str = r#"
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace shapes {
struct Square {
    double side;
    __attribute__((always_inline)) inline double half() const { return side * side / 2; }
    __attribute__((always_inline)) inline double area() const { return half() + half() * std::rand(); }
};

__attribute__((noinline)) double total(const std::vector<Square> &all) {
    double sum = 0;
    for (const Square &one : all)
        sum += one.area();
    return sum;
}

template <typename T> __attribute__((noinline)) T twice(T value) { return value + value; }
}

extern "C" __attribute__((noinline)) int plain(int count) {
    std::string text;
    for (int i = 0; i < count; i++)
        text += std::to_string(std::rand() % 7);
    return std::puts(text.c_str());
}

int main(int argc, char **) {
    std::vector<shapes::Square> all(argc, shapes::Square{1.5});
    return plain(argc) + int(shapes::total(all)) + shapes::twice(argc) + int(shapes::twice(1.5));
}
"#;

impl Scratch {
    /// Compiles [`SOURCE`].
    pub fn compile(&self, name: &str, flags: &[&str]) -> PathBuf {
        let source = self.0.join("shapes.cc");
        std::fs::write(&source, SOURCE).expect("the source");
        let program = self.0.join(name);
        let mut command = Command::new("c++");
        command.args(["-O2", "-Wl,--build-id"]).args(flags).arg(&source).arg("-o").arg(&program);
        run(&mut command);
        program
    }
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("a path of text")
}

/// The build id, as readelf reads it.
pub fn build_id(program: &Path) -> String {
    let notes = run(Command::new("readelf").arg("-n").arg(program));
    let id = notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: "));
    id.expect("a build id").to_owned()
}

/// A function as nm has it.
pub struct Function {
    pub address: u64,
    pub size: u64,
    pub name: String,
}

/// The sized functions in a file's text. Addresses are file offsets too: these programs are linked to be so.
pub fn functions(program: &Path, flags: &[&str]) -> Vec<Function> {
    let listing = run(Command::new("nm").args(["-S", "--defined-only"]).args(flags).arg(program));
    let function = |line: &str| {
        let mut words = line.split_whitespace();
        let (address, size, kind) = (words.next()?, words.next()?, words.next()?);
        let number = |digits| u64::from_str_radix(digits, 16).ok();
        let (address, size) = (number(address)?, number(size)?);
        matches!(kind, "t" | "T" | "w" | "W").then(|| words.next()).flatten().map(|name| Function {
            address,
            size,
            name: name.to_owned(),
        })
    };
    listing.lines().filter_map(function).collect()
}

/// Offset in the file of an address, by the program headers as readelf reads them.
pub fn file_offset(program: &Path, address: u64) -> u64 {
    let headers = run(Command::new("readelf").arg("-lW").arg(program));
    let offset = |line: &str| {
        let mut numbers = line
            .strip_prefix("LOAD")?
            .split_whitespace()
            .map(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap_or_default());
        let (offset, start) = (numbers.next()?, numbers.next()?);
        let len = numbers.nth(1)?;
        (start..start + len).contains(&address).then(|| address - start + offset)
    };
    headers.lines().find_map(|line| offset(line.trim())).expect("a segment")
}
