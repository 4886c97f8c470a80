use perfuse_engine::symbolize::{Options, Symbolizer};
use std::process::Command;

/// Runs a tool and gives what it says.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// A symbolizer that knows no directory of this machine.
pub fn symbolizer(debug: bool) -> Symbolizer {
    let none = Vec::new();
    Symbolizer::new(Options {
        symbol_dirs: none.clone(),
        debug,
        build_id_dirs: none.clone(),
        debug_dirs: none,
        live_kernel: false,
        recorded_on: None,
    })
}
