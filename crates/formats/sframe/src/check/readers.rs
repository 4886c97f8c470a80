//! Who would not take a section, and why.

use perfuse_wire::Rule;

use super::Checked;
use crate::consts::Abi;
use crate::container::Holder;
use crate::rules::*;

/// Tells of each reader that refuses a piece of a finished file.
pub(super) fn check(checked: &mut Checked<'_, '_>) {
    if matches!(checked.section.holder, Holder::Object | Holder::Bare) {
        return;
    }
    let readers: [(&'static Rule, Vec<&'static str>); 3] = [
        (&LINUX_REFUSES, linux(checked)),
        (&GLIBC_REFUSES, glibc(checked)),
        (&LIBSFRAME_REFUSES, libsframe(checked)),
    ];
    for (rule, reasons) in readers {
        if !reasons.is_empty() {
            checked.tell(rule, checked.view.piece.at, "", || reasons.join("; ").into());
        }
    }
}

fn linux(checked: &Checked<'_, '_>) -> Vec<&'static str> {
    let piece = checked.view.piece;
    let header = &piece.header;
    let mut reasons = Vec::new();
    let mut unless = |holds: bool, reason| {
        if !holds {
            reasons.push(reason);
        }
    };
    unless(piece.version() == 3, "it reads version 3 only");
    unless(piece.is_sorted(), "functions are not sorted");
    unless(piece.is_pcrel(), "starts do not count from their fields");
    unless(header.sfh_auxhdr_len == 0, "bytes follow the header");
    unless(header.sfh_num_fdes != 0 && header.sfh_num_fres != 0, "there are no functions or no rows");
    unless(piece.at == 0, "it stands behind another, which alone is seen");
    unless(piece.end <= checked.view.data.len(), "it goes past the end of the section");
    reasons
}

fn glibc(checked: &Checked<'_, '_>) -> Vec<&'static str> {
    let piece = checked.view.piece;
    let mut reasons = Vec::new();
    if piece.version() != 2 {
        reasons.push("it reads version 2 only");
    }
    if piece.at != 0 {
        reasons.push("it stands behind another, which alone is seen");
    }
    if !matches!(
        piece.abi(),
        Abi::AMD64_ENDIAN_LITTLE
            | Abi::AARCH64_ENDIAN_LITTLE
            | Abi::AARCH64_ENDIAN_BIG
            | Abi::S390X_ENDIAN_BIG
    ) {
        reasons.push("its ABI is not known");
    }
    reasons
}

fn libsframe(checked: &Checked<'_, '_>) -> Vec<&'static str> {
    let piece = checked.view.piece;
    let mut reasons = Vec::new();
    match piece.version() {
        2 if !piece.is_pcrel() => {
            reasons.push("it takes starts to count from their fields, and finds only some functions")
        }
        2 | 3 => {}
        _ => reasons.push("it reads versions 2 and 3"),
    }
    if piece.at != 0 {
        reasons.push("it stands behind another, which alone is seen");
    }
    reasons
}
