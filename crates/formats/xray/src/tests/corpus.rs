//! All logs of the corpus, real and malformed: findings are inside the file, and repairs are clean and have every
//! call.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::assemble::*;
use crate::{LogContent, XRay};
use perfuse_recording::{Recording, Source};

/// Findings that no repair removes: an unknown rate, an empty log, negative thread ids, ambiguous function ids,
/// negative times.
const BEYOND_REPAIR: [&str; 6] = ["XR002", "XR005", "XR027", "XR028", "XR055", "XR072"];

/// The logs in these folders of the corpus; none where it does not exist.
fn logs(folders: &[&str]) -> Vec<PathBuf> {
    let folders: Vec<String> = folders.iter().map(|folder| format!("xray/{folder}")).collect();
    let files = perfuse_corpus::files(&folders.iter().map(String::as_str).collect::<Vec<_>>());
    files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "xray")).collect()
}

const REAL: [&str; 7] = ["basic", "dso", "fdr", "fdr-old", "profiling", "synthetic", "synthetic-be"];

fn read(path: &Path) -> Result<XRay, perfuse_wire::ParseError> {
    XRay::open(Arc::new(Source::open(path.to_str().unwrap()).unwrap()))
}

#[test]
fn repairs_are_clean_and_have_every_call() {
    for path in logs(&REAL).iter().chain(&logs(&["malformed"])) {
        let Ok(log) = read(path) else { continue };
        let name = path.display();
        let repaired_log = repaired(&log);
        let left = serious(&checked(&repaired_log));
        assert!(left.iter().all(|code| BEYOND_REPAIR.contains(code)), "{name}: {left:?}");
        // Times past 2^63 ticks cannot be compared.
        if !path.ends_with("tsc-wrap-max.xray") {
            assert_same(&calls_by_thread(&repaired_log), &calls_by_thread(&log), &name.to_string());
        }
        let again = repaired(&repaired_log);
        assert_eq!(&again.source()[..], &repaired_log.source()[..], "{name}: a repaired log stays as it is");
    }
}

/// Reports the first row that differs, not thousands of rows.
fn assert_same(repaired_log: &[Call], whole: &[Call], name: &str) {
    let differs = repaired_log.iter().zip(whole).position(|(a, b)| a != b);
    let (a, b) = differs.map_or((None, None), |row| (repaired_log.get(row), whole.get(row)));
    assert_eq!((a, repaired_log.len()), (b, whole.len()), "{name}: row {differs:?}");
}

#[test]
fn real_logs_keep_to_the_grammar() {
    for path in logs(&REAL) {
        let log = read(&path).unwrap();
        let name = path.display();
        assert!(checked(&log).iter().all(|d| d.rule.severity != perfuse_wire::Severity::Error), "{name}");
    }
}

#[test]
fn a_check_reports_every_finding_of_the_tables() {
    for path in logs(&REAL).iter().chain(&logs(&["malformed"])) {
        let Ok(log) = read(path) else { continue };
        let findings = codes(&checked(&log));
        let found = codes(&found(&log));
        assert!(
            found.iter().all(|code| findings.contains(code)),
            "{}: {found:?} {findings:?}",
            path.display()
        );
    }
}

#[test]
fn findings_of_malformed_logs_are_inside_the_file() {
    for path in logs(&["malformed"]) {
        let len = std::fs::metadata(&path).unwrap().len();
        let name = path.display();
        match read(&path) {
            Err(error) => assert!(error.offset <= len, "{name}"),
            Ok(log) => {
                let findings = checked(&log);
                assert!(findings.iter().all(|d| d.offset <= len), "{name}");
                let sound = ["custom-size-zero", "deep-stack-200k", "walltime-same-second-40-blocks"];
                let file = path.file_stem().unwrap().to_str().unwrap();
                assert!(
                    !findings.is_empty() || sound.contains(&file) || file.starts_with("two-threads"),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn overwritten_events_lose_only_their_bytes() {
    for path in logs(&["fdr-old"]).iter().filter(|path| path.to_str().unwrap().contains("custom-v")) {
        let log = read(path).unwrap();
        let LogContent::Fdr(survey) = log.content() else { panic!() };
        let version = log.header().file.version;
        assert!(survey.blocks.iter().all(|block| block.payloads == (version == 4)), "{}", path.display());
        assert!(survey.blocks.iter().all(|block| block.broken.is_none()));
        assert_eq!(codes(&checked(&log)).contains(&"XR040"), version < 4);
    }
}
