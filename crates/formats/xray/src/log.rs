//! An open log or profile: its header, and the survey of its content.

use std::sync::{Arc, OnceLock};

use perfuse_wire::ParseError;

use super::consts::EMULATED_HZ;
use super::fdr::FdrSurvey;
use super::header::{Header, Mode};
use super::rate::{self, ClockPair, RateEstimate};
use super::{basic, profile};
use perfuse_recording::Source;

/// An open log or profile. Cheap to clone.
#[derive(Clone, Debug)]
pub struct XRay {
    shared: Arc<SharedLog>,
}

#[derive(Debug)]
struct SharedLog {
    source: Arc<Source>,
    header: Header,
    content: OnceLock<LogContent>,
}

/// The survey of a file: the result of one pass over it.
#[derive(Debug)]
pub enum LogContent {
    /// Of an FDR log.
    Fdr(FdrSurvey),
    /// Of a Basic mode log.
    Basic(basic::BasicSurvey),
    /// Of a profile.
    Profile(profile::ProfileSurvey),
}

impl XRay {
    /// Reads the header.
    ///
    /// # Errors
    /// When it is incomplete or of an unknown type.
    pub fn open(source: Arc<Source>) -> Result<Self, ParseError> {
        let header = Header::read(&source)?;
        Ok(Self { shared: Arc::new(SharedLog { source, header, content: OnceLock::new() }) })
    }

    /// The log with another survey: with a part of its records.
    pub(super) fn with_content(&self, content: LogContent) -> Self {
        let SharedLog { source, header, .. } = &*self.shared;
        let (source, header) = (Arc::clone(source), *header);
        Self { shared: Arc::new(SharedLog { source, header, content: content.into() }) }
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.shared.header
    }

    /// The bytes of the file.
    pub(super) fn file_source(&self) -> &Arc<Source> {
        &self.shared.source
    }

    /// The survey; computed once.
    #[must_use]
    pub fn content(&self) -> &LogContent {
        self.shared.content.get_or_init(|| {
            let SharedLog { source, header, .. } = &*self.shared;
            match header.mode {
                Mode::Fdr => LogContent::Fdr(FdrSurvey::new(source, header)),
                Mode::Basic => LogContent::Basic(basic::BasicSurvey::new(source, header)),
                Mode::Profile => LogContent::Profile(profile::ProfileSurvey::new(source, header.endian)),
            }
        })
    }

    /// All function ids, ascending, as unsigned numbers.
    #[must_use]
    pub fn function_ids(&self) -> &[u32] {
        match self.content() {
            LogContent::Fdr(survey) => &survey.function_ids,
            LogContent::Basic(survey) => &survey.function_ids,
            LogContent::Profile(survey) => &survey.function_ids,
        }
    }

    /// Whether it states processors. Where the runtime cannot use the counter it reads a clock instead, which has no
    /// processor, and writes 0 for each.
    #[must_use]
    pub fn has_processors(&self) -> bool {
        self.header().file.cycle_frequency != EMULATED_HZ
            || match self.content() {
                LogContent::Fdr(survey) => survey.cpus != 0,
                LogContent::Basic(survey) => survey.cpus != 0,
                LogContent::Profile(_) => false,
            }
    }

    /// Wall time and counter at the start of each buffer, without copies.
    #[must_use]
    pub fn clock_pairs(&self) -> Vec<ClockPair> {
        let LogContent::Fdr(survey) = self.content() else { return Vec::new() };
        let blocks = survey.order.iter().filter_map(|&index| survey.blocks.get(index));
        let clock_pairs = blocks.filter_map(|block| {
            // A log converted from one without wall times contains 0.
            Some((wall_ns(block.known_wall()?)?, block.first_cpu?.1))
        });
        clock_pairs.collect()
    }

    /// The counter rate estimated from the log; `None` where it contains too few pairs.
    #[must_use]
    pub fn estimate(&self) -> Option<RateEstimate> {
        rate::estimate(&self.clock_pairs())
    }
}

/// A wall time in nanoseconds.
pub fn wall_ns((seconds, microseconds): (i64, i32)) -> Option<i64> {
    let ns = i64::from(microseconds).checked_mul(1000)?;
    seconds.checked_mul(1_000_000_000)?.checked_add(ns)
}

/// Whether the rate in the header is within the error of the estimate.
#[must_use]
pub fn agrees(stated: u64, found: &RateEstimate) -> bool {
    (stated as f64 / found.hz - 1.0).abs() <= found.relative_error + 1e-5
}
