//! Holds a log or profile against its specification.

mod basic;
mod buffers;
mod calls;
pub mod grammar;
mod header;
mod order;
mod profile;
mod records;

use std::borrow::Cow;

use perfuse_wire::{Diagnostics, Rule};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::log::{Content, XRay};
use super::survey::{Stretch, Survey, stretches};
use perfuse_recording::Recording;

pub use super::rules::RULES;
pub use header::true_rate;

/// Tells every departure.
pub fn check(log: &XRay, sink: &mut Diagnostics) {
    header::tell(log, sink);
    match log.content() {
        Content::Fdr(survey) => {
            buffers::gaps(survey, sink);
            take(sink, every_buffer(log, survey));
            order::tell(log, survey, sink);
            calls::fdr(log, survey, sink);
        }
        Content::Basic(survey) => {
            basic::tell(survey, sink);
            basic::records(log, survey, sink);
            calls::basic(log, survey, sink);
        }
        Content::Profile(survey) => profile::tell(log, survey, sink),
    }
}

/// Tells what is known without reading records again.
pub fn findings(log: &XRay, sink: &mut Diagnostics) {
    header::tell(log, sink);
    match log.content() {
        Content::Fdr(survey) => {
            buffers::gaps(survey, sink);
            for (index, block) in survey.blocks.iter().enumerate() {
                buffers::tell(log, survey, index, block, sink);
                buffers::summed_up(log, survey, index, block, sink);
            }
            order::tell(log, survey, sink);
        }
        Content::Basic(survey) => {
            basic::tell(survey, sink);
            basic::summed_up(survey, sink);
        }
        Content::Profile(survey) => profile::tell(log, survey, sink),
    }
}

/// Walks all buffers side by side; what is told is in the order of the file.
fn every_buffer(log: &XRay, survey: &Survey) -> Diagnostics {
    let mut first_record = 0u64;
    let firsts: Vec<u64> = survey
        .blocks
        .iter()
        .map(|block| {
            let first = first_record;
            first_record = first_record.saturating_add(block.counts.total());
            first
        })
        .collect();
    let jobs = stretches(&survey.blocks, |block| block.records.clone());
    let told = jobs.into_par_iter().fold(Diagnostics::default, |mut sink, Stretch { items, bytes }| {
        let first = items.start;
        let blocks = survey.blocks.get(items.clone()).unwrap_or_default().iter();
        let firsts = firsts.get(items).unwrap_or_default();
        for (index, (block, first_record)) in (first..).zip(blocks.zip(firsts)) {
            buffers::tell(log, survey, index, block, &mut sink);
            records::tell(log, survey, index, *first_record, &mut sink);
        }
        log.source().release(bytes);
        sink
    });
    told.reduce(Diagnostics::default, Diagnostics::followed_by)
}

fn take(sink: &mut Diagnostics, more: Diagnostics) {
    *sink = std::mem::take(sink).followed_by(more);
}

/// Tells a departure that is of no one record.
fn say(sink: &mut Diagnostics, rule: &'static Rule, offset: u64, field: &'static str, message: String) {
    sink.push(rule, offset, None, field, || Cow::Owned(message));
}
