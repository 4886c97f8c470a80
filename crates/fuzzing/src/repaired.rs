//! Repaired files.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, process};

use perfuse_formats::{Format, Recording};
use perfuse_wire::{Diagnostics, Rule, Severity};

use crate::open::open;

/// Repairs a file.
///
/// # Panics
/// When the repaired file cannot be opened, has an error that the file did not have and that the repair did not report, has
/// other bytes although nothing was changed, or is changed by a second repair.
pub(crate) fn repair(format: &'static Format, bytes: &[u8]) {
    let Some(recording) = open(format, bytes) else { return };
    let mut known = errors(&*recording);
    let Some(Repair { bytes: once, changes, lost }) = repaired(&*recording) else { return };
    assert!(!changes.is_empty() || once == bytes, "nothing was changed, but the bytes are others");
    known.extend(lost);
    let Some(recording) = open(format, &once) else { panic!("the repaired file cannot be opened") };
    for code in errors(&*recording) {
        assert!(known.contains(&code), "the repaired file has {code}");
    }
    let Some(again) = repaired(&*recording) else { panic!("the repaired file cannot be repaired") };
    assert_eq!(again.changes, [""; 0], "a repaired file is changed by a repair");
    assert!(again.bytes == once, "a repaired file gets other bytes by a repair");
}

fn errors(recording: &dyn Recording) -> Vec<&'static str> {
    let mut sink = Diagnostics::default();
    recording.check(&mut sink);
    let is_error = |rule: &&'static Rule| rule.severity == Severity::Error;
    sink.rows().iter().map(|found| found.rule).filter(is_error).map(|rule| rule.code).collect()
}

/// The result of a repair: the file, codes of the changes and of what was lost.
struct Repair {
    bytes: Vec<u8>,
    changes: Vec<&'static str>,
    lost: Vec<&'static str>,
}

/// The repaired file; `None` where the repair is refused.
fn repaired(recording: &dyn Recording) -> Option<Repair> {
    let mut out = in_memory();
    let done = recording.repair(&mut out).ok()?;
    let mut bytes = Vec::new();
    out.seek(SeekFrom::Start(0)).expect("a file in memory can be rewound");
    out.read_to_end(&mut bytes).expect("a file in memory can be read");
    let changes = done.changes.iter().map(|change| change.rule.code).collect();
    Some(Repair { bytes, changes, lost: done.lost.iter().map(|lost| lost.rule.code).collect() })
}

/// A file without a name, in memory where there is a folder for that.
fn in_memory() -> File {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let shared = Path::new("/dev/shm");
    let folder = if shared.is_dir() { shared.to_path_buf() } else { env::temp_dir() };
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(format!("perfuse-repaired-{}-{number}", process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path);
    let file = file.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let _ = fs::remove_file(&path);
    file
}
