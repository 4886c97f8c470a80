//! Logs of Basic mode.

use std::borrow::Cow;

use perfuse_wire::{Diagnostics, Rule};

use super::super::basic::{Entry, Survey, entry_at, offset_of};
use super::super::log::XRay;
use super::super::rules::{
    BASIC_BACK, BASIC_COPIES, BASIC_KIND, BASIC_ORPHAN, BASIC_TAIL, BASIC_TYPE, RESERVED,
};
use super::say;
use perfuse_recording::Recording;

/// Tells what is known of the log as a whole.
pub fn tell(survey: &Survey, sink: &mut Diagnostics) {
    if let (num, Some(first)) = survey.copies {
        say(sink, &BASIC_COPIES, first, "", format!("{num} records are there before"));
    } else if let Some(first) = survey.first_back {
        say(
            sink,
            &BASIC_BACK,
            first,
            "tsc",
            "the time is before that of the thread's last record".to_owned(),
        );
    }
    if survey.tail > 0 {
        let offset = offset_of(survey.num_records) as u64;
        say(sink, &BASIC_TAIL, offset, "", format!("{} bytes are left, a record needs 32", survey.tail));
    }
}

/// Tells of records that cannot be read, or of no call: how many of each.
pub fn summed_up(survey: &Survey, sink: &mut Diagnostics) {
    let odd = survey.kinds.last().copied().unwrap_or(0);
    let mut tell = |rule, num: u64, first: Option<u64>, field| {
        if let Some(first) = first {
            say(sink, rule, first, field, format!("{num} of {} records", survey.num_records));
        }
    };
    tell(&BASIC_TYPE, survey.unknown.0, survey.unknown.1, "record_type");
    tell(&BASIC_KIND, odd, survey.first_odd_kind, "kind");
    tell(&BASIC_ORPHAN, survey.orphans, survey.first_orphan, "function_id");
}

/// Tells of each of them.
pub fn records(log: &XRay, survey: &Survey, sink: &mut Diagnostics) {
    let header = log.header();
    let mut entered = None;
    for index in 0..survey.num_records {
        let offset = offset_of(index) as u64;
        let Some(entry) = entry_at(log.source(), index, header.endian) else { continue };
        let mut tell = |rule: &'static Rule, field, message: String| {
            sink.push(rule, offset, Some(index as u64), field, || Cow::Owned(message));
        };
        let reserved = match entry {
            Entry::Normal(record) => {
                if record.kind > 3 {
                    tell(&BASIC_KIND, "kind", format!("kind is {}", record.kind));
                }
                record.reserved
            }
            Entry::Argument(argument) => {
                if !argument.is_of(entered) {
                    tell(
                        &BASIC_ORPHAN,
                        "function_id",
                        format!("no entry of {} before it", argument.function_id),
                    );
                }
                argument.reserved | u64::from(argument.padding)
            }
            Entry::Unknown(record_type) => {
                tell(&BASIC_TYPE, "record_type", format!("record_type is {record_type}"));
                0
            }
        };
        if reserved != 0 {
            tell(&RESERVED, "reserved", "bytes that mean nothing are not 0".to_owned());
        }
        if let Entry::Normal(record) = entry {
            entered = Some(record);
        }
    }
}
