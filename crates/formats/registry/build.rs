//! Generates the list of formats from this crate's dependencies on the crates beside it.

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    let manifest =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("Cargo.toml");
    println!("cargo::rerun-if-changed={}", manifest.display());
    println!("cargo::rerun-if-changed=build.rs");
    let text = fs::read_to_string(&manifest).expect("the manifest can be read");
    let formats: Vec<(String, &str)> = text.lines().filter_map(format_line).collect();
    assert!(!formats.is_empty(), "no dependency has the form `NAME = {{ path = \"../FOLDER\" }}`");
    let entries = formats.iter().map(|(name, _)| format!("&{name}::FORMAT, ")).collect::<String>();
    let exports =
        formats.iter().map(|(name, folder)| format!("pub use {name} as {folder};\n")).collect::<String>();
    let list = format!(
        "{exports}\n/// Every format, in the order of the manifest.\npub static FORMATS: &[&Format] = &[{entries}];\n"
    );
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("formats.rs");
    fs::write(out, list).expect("the output directory can be written to");
}

/// The crate in code and the folder of a dependency line such as `perfuse-mono = { path = "../mono" }`.
fn format_line(line: &str) -> Option<(String, &str)> {
    let (name, source) = line.split_once('=')?;
    let folder = source.trim().strip_prefix("{ path = \"../")?.strip_suffix("\" }")?;
    Some((name.trim().replace('-', "_"), folder))
}
