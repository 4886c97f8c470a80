//! An XRay log or profile as a [`Recording`]: its summary, clock, records, tables, check and repair.

use std::any::Any;
use std::fs::File;
use std::io;
use std::sync::Arc;

use perfuse_recording::{
    BatchStream, CallStream, Clock, ClockMap, Format, Placement, Position, Rate, Recording, Repaired, Source,
    Summary, TableRequest,
};
use perfuse_tables::{Alignment, Offsets};
use perfuse_wire::{Diagnostics, RecordView};

use super::check::MAX_RELATIVE_ERROR;
use super::consts::{Action, EMULATED_HZ, FUNCTION_ID_BITS, MetadataKind};
use super::fdr::thread_ids;
use super::header::Mode;
use super::log::{LogContent, XRay, agrees};
use super::rate::WallOffset;
use super::{FORMAT, check, describe, fork, ingest, rate, repair, seek};

/// Largest relative error of an estimate that is used in place of a rate that it contradicts.
const MAX_ESTIMATE_ERROR: f64 = 0.5;

impl Recording for XRay {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn source(&self) -> &Arc<Source> {
        self.file_source()
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
        // In nanoseconds where the log determines its rate and offset, else in ticks.
        let is_aligned = clock.alignment == Alignment::WallTime;
        let scale = clock.map.around(self.span().map_or(0, |(first, _)| first));
        let ns = |tsc: u64| u64::try_from(scale.ns(tsc)).unwrap_or(0);
        Summary {
            version: Some(version),
            endian: header.endian,
            pointer_bytes: None,
            arch: None,
            producer: None,
            clock: clock.kind,
            span: self
                .span()
                .map(|(first, last)| if is_aligned { (ns(first), ns(last)) } else { (first, last) }),
            counts: self.counts(),
            header: describe::header(header),
        }
    }

    fn read_record<'a>(&'a self, at: &mut Position, wanted: &dyn Fn(&str) -> bool) -> Option<RecordView<'a>> {
        describe::read_record(self, at, wanted)
    }

    fn seek_index(&self, index: u64) -> Position {
        seek::index(self, index)
    }

    fn seek_offset(&self, offset: u64) -> Option<Position> {
        Some(seek::offset(self, offset))
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
        let clock_pairs = self.clock_pairs();
        let offset = hz.and_then(|hz| rate::offset(&clock_pairs, hz));
        let is_emulated = self.header().file.cycle_frequency == EMULATED_HZ;
        let (kind, alignment, uncertainty_ns) = match offset {
            Some(WallOffset { offset_ns, spread_ns, pivot }) => {
                let (first, last) = self.span().unwrap_or((pivot, pivot));
                let reach = pivot.abs_diff(first).max(pivot.abs_diff(last));
                let drift = map.ns(reach) as f64 * relative_error;
                map.offset_ns = offset_ns;
                ("monotonic", Alignment::WallTime, Some(spread_ns.saturating_add(drift as i64)))
            }
            None if is_emulated => ("realtime", Alignment::NotAligned, None),
            None if hz.is_some() => ("tsc", Alignment::NotAligned, None),
            None => ("unknown", Alignment::NotAligned, None),
        };
        let stated_hz = Some(self.header().file.cycle_frequency).filter(|&hz| hz > 0);
        Clock { kind, hz, hz_source, stated_hz, map, uncertainty_ns, alignment }
    }

    fn span(&self) -> Option<(u64, u64)> {
        match self.content() {
            LogContent::Fdr(survey) => survey.span,
            LogContent::Basic(survey) => survey.span,
            LogContent::Profile(_) => None,
        }
    }

    fn without_copies_of(&self, earlier: &[Arc<dyn Recording>]) -> Option<(Arc<dyn Recording>, u64)> {
        let earlier: Vec<&XRay> = earlier.iter().filter_map(|one| one.as_any().downcast_ref()).collect();
        let (rest, num_copied) = fork::without_copies(self, &earlier)?;
        Some((Arc::new(rest), num_copied))
    }

    fn pids(&self) -> Vec<i32> {
        let mut pids: Vec<i32> = match self.content() {
            LogContent::Fdr(survey) => survey.blocks.iter().map(|block| thread_ids(block).0).collect(),
            LogContent::Basic(survey) => survey.owners.iter().map(|&(pid, _)| pid).collect(),
            LogContent::Profile(_) => self.header().profile.iter().map(|header| header.pid as i32).collect(),
        };
        pids.sort_unstable();
        pids.dedup();
        pids
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
    /// The counter rate to use, its source, and the greatest relative error of times that it gives.
    fn hz(&self, rate: Rate) -> (Option<u64>, &'static str, f64) {
        let stated = Some(self.header().file.cycle_frequency).filter(|&hz| hz > 0);
        let found = self.estimate();
        let header = || match stated {
            None => (None, "unknown", 0.0),
            // Emulated: nanoseconds of a clock that is read instead of a counter.
            Some(EMULATED_HZ) => (stated, "header", 0.0),
            Some(hz) => {
                let error = rate::stated_rate_error(hz, found.as_ref());
                (stated, if error < MAX_RELATIVE_ERROR { "header" } else { "unverified" }, error)
            }
        };
        match (rate, &found) {
            (Rate::Hz(hz), _) => (Some(hz.max(1)), "given", 0.0),
            (Rate::Auto, Some(found))
                if found.relative_error < MAX_ESTIMATE_ERROR
                    && found.hz >= 1.0
                    && !stated.is_some_and(|hz| hz == EMULATED_HZ || agrees(hz, found)) =>
            {
                (Some(found.hz.round() as u64), "estimated", found.relative_error)
            }
            _ => header(),
        }
    }

    /// Number of records by the specification's name, without those that do not occur.
    fn counts(&self) -> Vec<(String, u64)> {
        let action = |action: u8| Action(action).to_string();
        let mut counts: Vec<(String, u64)> = match self.content() {
            LogContent::Fdr(survey) => {
                let functions = (0u8..).zip(survey.counts.functions).map(|(it, count)| (action(it), count));
                let metadata = (0u8..)
                    .zip(survey.counts.metadata)
                    .map(|(it, count)| (MetadataKind(it).to_string(), count));
                functions
                    .chain(metadata)
                    .chain([("Unknown Kind".to_owned(), survey.counts.unknown)])
                    .collect()
            }
            LogContent::Basic(survey) => {
                let kinds = (0u8..4).zip(survey.kinds).map(|(it, count)| (action(it), count));
                let num_unknown = survey.kinds.last().copied().unwrap_or(0);
                let others = [
                    ("Unknown Action".to_owned(), num_unknown),
                    ("ArgPayload".to_owned(), survey.arguments),
                    ("Unknown Record".to_owned(), survey.unknown.0),
                    ("Unwritten".to_owned(), survey.unwritten.0),
                ];
                kinds.chain(others).collect()
            }
            LogContent::Profile(survey) => {
                vec![("Block".to_owned(), survey.blocks.len() as u64), ("Path".to_owned(), survey.num_paths)]
            }
        };
        counts.retain(|(_, count)| *count > 0);
        counts
    }
}
