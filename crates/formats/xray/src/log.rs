//! An open log or profile, as every recording is and with what only XRay knows.

use std::any::Any;
use std::fs::File;
use std::io;
use std::sync::{Arc, OnceLock};

use perfuse_tables::{Alignment, Offsets};
use perfuse_wire::{Diagnostics, ParseError, RecordView};

use super::consts::{Action, EMULATED_HZ, FUNCTION_ID_BITS, Kind};
use super::header::{Header, Mode};
use super::rate::{self, Estimate, Pair};
use super::survey::Survey;
use super::{FORMAT, basic, check, describe, ingest, profile, repair};
use perfuse_recording::{
    BatchStream, CallStream, Clock, ClockMap, Format, Placement, Position, Rate, Recording, Repaired, Source,
    Summary, TableRequest,
};

/// An open log or profile. Cheap to clone.
#[derive(Clone, Debug)]
pub struct XRay {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    source: Arc<Source>,
    header: Header,
    content: OnceLock<Content>,
}

/// What one pass finds.
#[derive(Debug)]
pub enum Content {
    /// In a log of FDR mode.
    Fdr(Survey),
    /// In a log of Basic mode.
    Basic(basic::Survey),
    /// In a profile.
    Profile(profile::Survey),
}

impl XRay {
    /// Reads the header.
    ///
    /// # Errors
    /// When there is none, or it is of a type that nobody knows.
    pub fn open(source: Arc<Source>) -> Result<Self, ParseError> {
        let header = Header::read(&source)?;
        Ok(Self { shared: Arc::new(Shared { source, header, content: OnceLock::new() }) })
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.shared.header
    }

    /// What one pass finds; made once.
    #[must_use]
    pub fn content(&self) -> &Content {
        self.shared.content.get_or_init(|| {
            let Shared { source, header, .. } = &*self.shared;
            match header.mode {
                Mode::Fdr => Content::Fdr(Survey::new(source, header)),
                Mode::Basic => Content::Basic(basic::Survey::new(source, header)),
                Mode::Profile => Content::Profile(profile::Survey::new(source, header.endian)),
            }
        })
    }

    /// The function ids in it, ascending, as unsigned.
    #[must_use]
    pub fn function_ids(&self) -> &[u32] {
        match self.content() {
            Content::Fdr(survey) => &survey.function_ids,
            Content::Basic(survey) => &survey.function_ids,
            Content::Profile(survey) => &survey.function_ids,
        }
    }

    /// Wall time and counter at the beginning of each buffer, copies left out.
    #[must_use]
    pub fn moments(&self) -> Vec<Pair> {
        let Content::Fdr(survey) = self.content() else { return Vec::new() };
        let blocks = survey.order.iter().filter_map(|&index| survey.blocks.get(index));
        let moments = blocks.filter_map(|block| {
            // 0 is what a log made of one without wall times has.
            let (seconds, microseconds) = block.wall.filter(|&wall| wall != (0, 0))?;
            let ns = seconds
                .checked_mul(1_000_000_000)?
                .checked_add(i64::from(microseconds).checked_mul(1000)?)?;
            Some((ns, block.first_cpu?.1))
        });
        moments.collect()
    }

    /// The rate the log itself shows, where it has moments enough.
    #[must_use]
    pub fn estimate(&self) -> Option<Estimate> {
        rate::estimate(&self.moments())
    }

    /// The rate to use, where it is from, and how far off it may be as a share.
    fn hz(&self, rate: Rate) -> (Option<u64>, &'static str, Option<f64>) {
        let stated = Some(self.header().file.cycle_frequency).filter(|&hz| hz > 0);
        let header = (stated, if stated.is_some() { "header" } else { "unknown" }, None);
        match rate {
            Rate::Hz(hz) => (Some(hz.max(1)), "given", None),
            Rate::Header => header,
            // Nanoseconds of a clock that is read in place of a counter.
            Rate::Auto if stated == Some(EMULATED_HZ) => (stated, "header", Some(0.0)),
            Rate::Auto => match (stated, self.estimate()) {
                (Some(stated), Some(found)) if agrees(stated, &found) => {
                    (Some(stated), "header", Some(found.relative_error))
                }
                (_, Some(found)) if found.relative_error < 0.05 => (
                    Some(found.hz.round() as u64).filter(|&hz| hz > 0),
                    "estimated",
                    Some(found.relative_error),
                ),
                _ => header,
            },
        }
    }
}

/// Whether the header's rate may be the true one, for all the log shows.
#[must_use]
pub fn agrees(stated: u64, found: &Estimate) -> bool {
    (stated as f64 / found.hz - 1.0).abs() <= found.relative_error + 1e-5
}

impl Recording for XRay {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn source(&self) -> &Arc<Source> {
        &self.shared.source
    }

    fn summary(&self) -> Summary {
        let header = self.header();
        let mode = match header.mode {
            Mode::Fdr => "FDR",
            Mode::Basic => "Basic",
            Mode::Profile => "Profiling",
        };
        let version = match header.profile {
            Some(_) => format!("{mode} mode"),
            None => format!("{} ({mode} mode)", header.file.version),
        };
        let clock = self.clock(Rate::Auto);
        // Nanoseconds where the log shows its rate, ticks where it does not.
        let known = clock.alignment == Alignment::WallTime;
        let scale = clock.map.around(self.span().map_or(0, |(first, _)| first));
        let ns = |tsc: u64| u64::try_from(scale.ns(tsc)).unwrap_or(0);
        Summary {
            version: Some(version),
            endian: header.endian,
            pointer_bytes: None,
            arch: None,
            producer: None,
            clock: clock.kind,
            span: self.span().map(|(first, last)| if known { (ns(first), ns(last)) } else { (first, last) }),
            counts: self.counts(),
            header: describe::header(header),
        }
    }

    fn next_record<'a>(&'a self, at: &mut Position) -> Option<RecordView<'a>> {
        describe::next(self, at)
    }

    fn check(&self, sink: &mut Diagnostics) {
        check::check(self, sink);
    }

    fn findings(&self, sink: &mut Diagnostics) {
        check::findings(self, sink);
    }

    fn repair(&self, out: &mut File) -> io::Result<Repaired> {
        repair::repair(self, out)
    }

    fn clock(&self, rate: Rate) -> Clock {
        let (hz, hz_source, relative_error) = self.hz(rate);
        let mut map =
            ClockMap { numerator: EMULATED_HZ, denominator: hz.unwrap_or(EMULATED_HZ), offset_ns: 0 };
        let moments = self.moments();
        let offset = hz.and_then(|hz| rate::offset(&moments, hz));
        let emulated = self.header().file.cycle_frequency == EMULATED_HZ;
        let (kind, alignment, uncertainty_ns) = match offset {
            Some((offset, spread)) => {
                map.offset_ns = offset;
                let span = self.span().map_or(0, |(first, last)| last.wrapping_sub(first));
                let span_ns = ClockMap { offset_ns: 0, ..map }.ns(span) as f64;
                let drift = span_ns * relative_error.unwrap_or(0.0) / 2.0;
                ("monotonic", Alignment::WallTime, Some(spread.saturating_add(drift as i64)))
            }
            None if emulated => ("realtime", Alignment::NotAligned, None),
            None if hz.is_some() => ("tsc", Alignment::NotAligned, None),
            None => ("unknown", Alignment::NotAligned, None),
        };
        let stated_hz = Some(self.header().file.cycle_frequency).filter(|&hz| hz > 0);
        Clock { kind, hz, hz_source, stated_hz, map, uncertainty_ns, alignment }
    }

    fn span(&self) -> Option<(u64, u64)> {
        match self.content() {
            Content::Fdr(survey) => survey.span,
            Content::Basic(survey) => survey.span,
            Content::Profile(_) => None,
        }
    }

    fn function_id_bits(&self) -> Option<u32> {
        match self.header().mode {
            Mode::Fdr => Some(FUNCTION_ID_BITS),
            Mode::Basic | Mode::Profile => Some(u32::BITS),
        }
    }

    fn extent(&self) -> Offsets {
        let functions = u32::try_from(self.function_ids().len()).unwrap_or(u32::MAX);
        Offsets { source: 1, function: functions, ..Offsets::default() }
    }

    fn table(&self, name: &str, placement: &Placement, _request: &TableRequest) -> Option<BatchStream> {
        ingest::table(self, name, placement)
    }

    fn call_segments(&self, placement: &Placement) -> Vec<CallStream> {
        ingest::call_segments(self, placement)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl XRay {
    fn counts(&self) -> Vec<(String, u64)> {
        let action = |action: u8| Action(action).to_string();
        let mut counts: Vec<(String, u64)> = match self.content() {
            Content::Fdr(survey) => {
                let functions = (0u8..).zip(survey.counts.functions).map(|(it, count)| (action(it), count));
                let metadata =
                    (0u8..).zip(survey.counts.metadata).map(|(it, count)| (Kind(it).to_string(), count));
                functions
                    .chain(metadata)
                    .chain([("Unknown Kind".to_owned(), survey.counts.unknown)])
                    .collect()
            }
            Content::Basic(survey) => {
                let kinds = (0u8..4).zip(survey.kinds).map(|(it, count)| (action(it), count));
                let odd = survey.kinds.last().copied().unwrap_or(0);
                let others = [
                    ("Unknown Action".to_owned(), odd),
                    ("ArgPayload".to_owned(), survey.arguments),
                    ("Unknown Record".to_owned(), survey.unknown.0),
                ];
                kinds.chain(others).collect()
            }
            Content::Profile(survey) => {
                vec![("Block".to_owned(), survey.blocks.len() as u64), ("Path".to_owned(), survey.num_paths)]
            }
        };
        counts.retain(|(_, count)| *count > 0);
        counts
    }
}
