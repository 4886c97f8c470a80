//! Programs and libraries: symbols, debug information, unwinding rows, instrumentation maps; perf maps.

use std::fs;
use std::path::PathBuf;

use perfuse_binaries::eh_frame::{EhFrame, cross_check};
use perfuse_binaries::symbolize::{Options, PerfMap, Symbolizer};
use perfuse_binaries::xray_map::InstrumentationMap;

/// Names positions of a program, and reads its `.eh_frame`.
///
/// # Panics
/// When a position has other names alone than together with others.
pub(crate) fn symbols(bytes: &[u8]) {
    if let Ok(eh_frame) = EhFrame::of_elf(bytes) {
        let found = cross_check(&eh_frame.table, &eh_frame.table);
        // Where functions overlap, an address has several answers.
        let overlap = eh_frame.table.functions.windows(2).any(|two| two[1].start < two[0].end());
        assert!(overlap || found.disagreements.is_empty(), "a table differs from itself");
    }
    // A symbolizer reads files only.
    let path = PathBuf::from(format!(
        "/dev/shm/perfuse-fuzz-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    if fs::write(&path, bytes).is_err() {
        return;
    }
    let module = Symbolizer::new(Options { debug: true, ..Options::default() }).file(&path);
    let positions: Vec<u64> = (0..64).map(|at| at * bytes.len() as u64 / 64).collect();
    let together = module.resolve_many(&positions);
    for (position, expected) in positions.iter().zip(together) {
        assert!(module.resolve(*position) == expected, "position {position:#x} has two answers");
    }
    let _ = fs::remove_file(&path);
}

/// Reads an instrumentation map.
pub(crate) fn xray_map(bytes: &[u8]) {
    for architecture in [None, Some("x86_64")] {
        if let Ok(map) = InstrumentationMap::read(bytes, architecture) {
            let known: Vec<_> = (0..8).filter_map(|id| map.function(id)).collect();
            assert!(known.is_empty() || !map.versions().is_empty(), "functions without a version");
        }
    }
}

/// Reads a perf map and looks addresses up.
///
/// # Panics
/// When an entry that was found does not contain the address.
pub(crate) fn perf_map(bytes: &[u8]) {
    let map = PerfMap::parse(bytes.to_vec());
    for address in [0, 1, 0x1000, 0x7fff_ffff_f000, u64::MAX] {
        if let Some(entry) = map.find(address) {
            assert!(entry.start_address <= address, "{address:#x} is before the entry found for it");
        }
    }
}
