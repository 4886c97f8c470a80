//! Profiles of one and of two recordings.

use std::io;
use std::sync::Arc;

use perfuse_binaries::symbolize::Follow;
use perfuse_engine::calls::{Options, Selection};
use perfuse_formats::registry::FORMATS;
use perfuse_formats::{Rate, Recording, Sniff};
use perfuse_profile::{Profile, ProfileInput, ProfileOptions};
use perfuse_writers::{Error, Trace, TraceSurvey, chrome, perfetto, speedscope};

use crate::open::open;

/// A profile of one recording of the format that the bytes look like.
pub(crate) fn one(bytes: &[u8]) {
    if let Some(profile) = profile_of(&[bytes]) {
        everything(&profile);
    }
}

/// A profile of two recordings: the first two bytes are the length of the first one.
pub(crate) fn two(bytes: &[u8]) {
    let Some((length, rest)) = bytes.split_at_checked(2) else { return };
    let length = u16::from_le_bytes([length[0], length[1]]).into();
    let Some((first, second)) = rest.split_at_checked(length) else { return one(rest) };
    if let Some(profile) = profile_of(&[first, second]) {
        everything(&profile);
    }
}

/// A profile of one recording, written for viewers, and its JIT code as programs.
pub(crate) fn exported(bytes: &[u8]) {
    if let Some(profile) = profile_of(&[bytes]) {
        let _ = exports(&profile);
    }
}

pub(crate) fn profile_of(parts: &[&[u8]]) -> Option<Profile> {
    let inputs = parts.iter().map(|bytes| {
        let recording = recording_of(bytes)?;
        Some(ProfileInput {
            clock: recording.clock(Rate::Auto),
            recording,
            pid: None,
            nth_of_pid: Arc::default(),
            definitions: None,
        })
    });
    // What is beside a recording on this machine is the business of other targets, and slow.
    let options = ProfileOptions { follow: Follow::Nothing, ..ProfileOptions::default() };
    Some(Profile::new(inputs.collect::<Option<Vec<_>>>()?, options))
}

fn recording_of(bytes: &[u8]) -> Option<Arc<dyn Recording>> {
    let best = FORMATS.iter().max_by_key(|format| (format.sniff)(bytes))?;
    if (best.sniff)(bytes) == Sniff::No { None } else { open(best, bytes) }
}

pub(crate) fn everything(profile: &Profile) {
    for spec in perfuse_tables::TABLES {
        let Ok(Some(batches)) = profile.table(spec.name, true) else { continue };
        for batch in batches {
            let Ok(batch) = batch else { break };
            assert!(batch.num_columns() > 0, "{} has no columns", spec.name);
        }
    }
    let _ = profile.call_costs(&Options::default(), true);
    let _ = profile.snapshot_sums();
    let _ = profile.naming_findings();
    let _ = profile.first_uses(0, 1);
}

fn exports(profile: &Profile) -> Result<(), Error> {
    let selection = Selection::default();
    let mut go_on = |_| true;
    let survey = profile
        .with_trace_tables(&[], None, &selection, |tables| TraceSurvey::of(tables, &selection, &mut go_on))?;
    let (tracks, functions) = (profile.tracks()?, profile.recorded_functions()?);
    profile.with_trace_tables(&functions, None, &selection, |tables| {
        let trace = Trace { tables, selection: &selection, survey: &survey, tracks: &tracks };
        chrome::write(&trace, 0, io::sink(), &mut |_| true)
    })?;
    profile.with_trace_tables(&functions, None, &selection, |tables| {
        let trace = Trace { tables, selection: &selection, survey: &survey, tracks: &tracks };
        speedscope::write(&trace, io::sink(), &mut |_| true)
    })?;
    profile.with_trace_tables(&functions, None, &selection, |tables| {
        let trace = Trace { tables, selection: &selection, survey: &survey, tracks: &tracks };
        perfetto::write(&trace, None, io::sink(), &mut |_| true)
    })
}
