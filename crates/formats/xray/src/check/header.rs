//! The header, held against what the log shows.

use perfuse_wire::Diagnostics;

use super::super::consts::HEADER_BYTES;
use super::super::header::Mode;
use super::super::log::{XRay, agrees};
use super::super::rate::Estimate;
use super::super::rules::{FREQUENCY_WRONG, FREQUENCY_ZERO, HEADER_GARBAGE, NOTHING, VERSION};
use super::say;
use perfuse_recording::Recording;

/// Share from which on a rate is told to be wrong: less does not show in a report.
const NOTICEABLE: f64 = 0.01;

/// Largest share that an estimate may be off and still be believed.
const BELIEVED: f64 = 0.05;

/// The rate the log shows, where the header's is not it or there is none.
pub fn true_rate(log: &XRay) -> Option<Estimate> {
    let stated = log.header().file.cycle_frequency;
    let found = log.estimate().filter(|found| found.relative_error < BELIEVED)?;
    let differs = !agrees(stated, &found) && (stated as f64 / found.hz - 1.0).abs() > NOTICEABLE;
    (stated == 0 || differs).then_some(found)
}

/// Tells what is wrong with it.
pub fn tell(log: &XRay, sink: &mut Diagnostics) {
    let header = log.header();
    if !header.is_known_version() {
        let (version, offset) = match header.profile {
            Some(profile) => (format!("{:#x}", profile.version), 8),
            None => (header.file.version.to_string(), 0),
        };
        say(sink, &VERSION, offset, "version", format!("version is {version}"));
    }
    if header.mode == Mode::Profile {
        return;
    }
    rate(log, sink);
    let file = &header.file;
    let size_is_garbage = header.mode == Mode::Basic && file.buffer_size != 0;
    let other_flags = file.flags & !header.tsc_flag_bits() != 0;
    if other_flags || size_is_garbage || file.reserved != 0 {
        let offset = if other_flags {
            4
        } else if size_is_garbage {
            16
        } else {
            24
        };
        let message = format!(
            "flags are {:#x}, bytes 16 to 31 {:#x} and {:#x}",
            file.flags, file.buffer_size, file.reserved
        );
        say(sink, &HEADER_GARBAGE, offset, "reserved", message);
    }
    if log.source().len() <= HEADER_BYTES {
        say(sink, &NOTHING, 0, "", "nothing follows the header".to_owned());
    }
}

fn rate(log: &XRay, sink: &mut Diagnostics) {
    let stated = log.header().file.cycle_frequency;
    let shown = |found: &Estimate| {
        let (mhz, share) = (found.hz / 1e6, found.relative_error * 100.0);
        format!("wall times of {} buffers show {mhz:.3} MHz, within {share:.2} %", found.num_pairs)
    };
    match (stated, true_rate(log)) {
        (0, Some(found)) => {
            let message = format!("cycle_frequency is 0; {}", shown(&found));
            say(sink, &FREQUENCY_ZERO, 8, "cycle_frequency", message);
        }
        (0, None) => {
            say(sink, &FREQUENCY_ZERO, 8, "cycle_frequency", "cycle_frequency is 0".to_owned());
        }
        (stated, Some(found)) => {
            let message = format!("the header says {:.3} MHz; {}", stated as f64 / 1e6, shown(&found));
            say(sink, &FREQUENCY_WRONG, 8, "cycle_frequency", message);
        }
        _ => {}
    }
}
