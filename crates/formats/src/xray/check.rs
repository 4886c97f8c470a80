//! Holds a log against its specification.

use std::borrow::Cow;

use perfuse_wire::{Diagnostics, rules};

use super::log::{Content, XRay};

rules! {
    VERSION = "XR001", Error, "Header Section", "version is not known",
        "No release of LLVM writes it. Records are read as those of the latest version that is known.",
        "Check what wrote the file; a newer perfuse may know it.";
    LOST = "XR010", DataLoss, "Metadata Records", "bytes that are no buffer",
        "No buffer begins there. Reading went on where one does.",
        "`perfuse repair` leaves the bytes out.";
}

/// Tells every departure.
pub fn check(log: &XRay, sink: &mut Diagnostics) {
    let header = log.header();
    if !header.is_known_version() {
        let version = header.file.version;
        sink.push(&VERSION, 0, None, "version", || Cow::Owned(format!("version is {version}")));
    }
    if let Content::Fdr(survey) = log.content() {
        for gap in &survey.gaps {
            let message = || Cow::Owned(format!("{} bytes are no buffer", gap.len()));
            sink.push(&LOST, gap.start as u64, None, "", message);
        }
    }
}
