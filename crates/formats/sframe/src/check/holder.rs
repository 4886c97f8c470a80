//! What sections are in: several without being merged, relocations, segments.

use perfuse_wire::Diagnostics;

use crate::SFrame;
use crate::container::{Holder, Section};
use crate::rules::*;
use crate::starts::Starts;

/// Every departure of what is around the sections.
pub(super) fn check(file: &SFrame, sink: &mut Diagnostics) {
    for (index, section) in file.sections().iter().enumerate() {
        let start = section.place.start as u64;
        let pieces: Vec<_> = file.pieces().iter().filter(|piece| piece.section == index).collect();
        let behind = file.trailing(index);
        if behind > 0 && section.holder != Holder::Segment && !pieces.is_empty() {
            let offset = (section.place.end as u64).saturating_sub(behind as u64);
            sink.push(&TRAILING, offset, None, "", || format!("{behind} bytes").into());
        }
        if let [first, rest @ ..] = pieces.as_slice()
            && !rest.is_empty()
        {
            let num = pieces.len();
            sink.push(&NOT_MERGED, start, None, "", || format!("{num} headers in one section").into());
            let other =
                rest.iter().find(|piece| (piece.version(), piece.abi()) != (first.version(), first.abi()));
            if let Some(other) = other {
                let offset = start.saturating_add(other.at as u64);
                sink.push(&SEVERAL_VERSIONS, offset, None, "sfp_version", || {
                    let (was, is) = (first.version(), other.version());
                    format!("version {was} for {}, then version {is} for {}", first.abi(), other.abi()).into()
                });
            }
        }
        for piece in &pieces {
            if !piece.is_pcrel() && matches!(piece.starts, Starts::FromField(_)) {
                let offset = start.saturating_add(piece.at as u64);
                sink.push(&UNSAID_BASE, offset, None, "sfp_flags", || piece.starts.reason().into());
            }
        }
        if let Some(segment) = section.segment_bytes.filter(|bytes| *bytes > section.place.len() as u64) {
            let there = section.place.len();
            sink.push(&SEGMENT_SIZE, start, None, "p_filesz", || {
                format!("a segment of {segment} bytes for a section of {there}").into()
            });
        }
        relocations(file, index, section, sink);
    }
}

fn relocations(file: &SFrame, index: usize, section: &Section, sink: &mut Diagnostics) {
    let Some(done) = &section.relocated else { return };
    let start = section.place.start as u64;
    let end = section.place.end as u64;
    for refused in &done.refused {
        sink.push(&RELOCATION, start.saturating_add(*refused).min(end), None, "r_offset", || {
            format!("a relocation at {refused:#x} that was not applied").into()
        });
    }
    for view in file.views().filter(|view| view.piece.section == index) {
        for function in view.functions() {
            if done.section_of(function.at as u64).is_none() {
                sink.push(&NOT_RELOCATED, view.offset(function.at), None, "sfde_func_start_address", || {
                    format!("function {} has no relocation", function.index).into()
                });
            }
        }
    }
}
