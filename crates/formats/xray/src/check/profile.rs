//! Profiles.

use perfuse_wire::Diagnostics;

use super::super::layout::ProfileBlock;
use super::super::log::XRay;
use super::super::profile::Survey;
use super::super::rules::{NOTHING, PROFILE_BLOCK, PROFILE_CUT, PROFILE_NEGATIVE};
use super::say;
use perfuse_recording::Recording;

/// Tells every departure: the survey has read all paths.
pub fn tell(log: &XRay, survey: &Survey, sink: &mut Diagnostics) {
    if survey.num_paths == 0 && survey.broken.is_none() {
        say(sink, &NOTHING, 0, "", "there is no call path".to_owned());
    }
    for block in &survey.blocks {
        let size = u64::from(block.header.size);
        if size < ProfileBlock::SIZE {
            say(sink, &PROFILE_BLOCK, block.offset, "size", format!("size is {size}"));
        }
        if let Some(error) = &block.broken {
            say(sink, &PROFILE_CUT, error.offset, error.field, error.to_string());
        } else if block.offset.saturating_add(size) > log.source().len() as u64 {
            let have = (log.source().len() as u64).saturating_sub(block.offset);
            say(sink, &PROFILE_CUT, block.offset, "size", format!("size is {size}, {have} bytes are there"));
        }
        if block.num_negative > 0 {
            let message = format!(
                "{} of {} paths of thread {}",
                block.num_negative, block.num_paths, block.header.thread
            );
            say(sink, &PROFILE_NEGATIVE, block.offset, "cumulative_local_time", message);
        }
    }
    if let Some(error) = &survey.broken {
        say(sink, &PROFILE_CUT, error.offset, error.field, error.to_string());
    }
}
