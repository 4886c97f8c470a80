//! Damaged and hostile logs: no panic, and output in proportion to the input.

use proptest::prelude::*;

use super::*;
use crate::convert::{ConvertError, RecordSelection};

const TARGETS: [(Mode, u16); 4] = [(Mode::Fdr, 5), (Mode::Fdr, 1), (Mode::Fdr, 3), (Mode::Basic, 3)];

/// Converts to several versions, whole and selected; returns the largest size.
fn convert_all(bytes: &[u8]) -> usize {
    let source = Source::from_bytes("<test>", bytes.to_vec()).unwrap();
    let Ok(log) = XRay::open(Arc::new(source)) else { return 0 };
    let middle = log.span().map_or(0, |(first, last)| first / 2 + last / 2);
    let cut = RecordSelection { ticks: Some(0..middle), ..RecordSelection::default() };
    let mut largest = 0;
    for (mode, version) in TARGETS {
        for selection in [RecordSelection::default(), cut.clone()] {
            let mut out = Vec::new();
            let options = Options { selection, ..to(mode, version, Endian::Little) };
            match convert(&[&log], &options, &mut out) {
                Ok(_) | Err(ConvertError::Padding { .. } | ConvertError::Profile) => {}
                Err(error) => panic!("{error}"),
            }
            largest = largest.max(out.len());
        }
    }
    largest
}

#[test]
fn malformed_logs_are_converted_as_far_as_they_are_read() {
    for path in files(&["malformed"]) {
        let log = match std::fs::read(&path)
            .map(|bytes| XRay::open(Arc::new(Source::from_bytes("<test>", bytes).unwrap())))
        {
            Ok(Ok(log)) => log,
            _ => continue,
        };
        let (bytes, _) = converted(&[&log], &Options::like(&log));
        // The counter overflows 2^64 by a delta there: in nanoseconds those times are after all others.
        let runs_over = path.ends_with("tsc-wrap-max.xray");
        if log.header().is_known_version() && !runs_over {
            let mut expected = rows(&log);
            // A log has to contain a processor, which is none where its times are those of a clock.
            let written = log.has_processors().then_some(0);
            expected.values_mut().flatten().for_each(|row| row.1 = row.1.or(written));
            assert_eq!(rows(&of_bytes(&bytes)), expected, "{}", path.display());
        }
        convert_all(log.source());
    }
}

#[test]
fn any_cut_of_a_log_is_converted() {
    for name in ["fdr/quoted-names-v5", "synthetic/typed-ok-v5", "fdr-old/small_nc-v3", "basic/basic-fork-v3"]
    {
        let Some(path) = corpus_log(name) else { continue };
        let bytes = std::fs::read(path).unwrap();
        for len in (0..bytes.len()).step_by(if bytes.len() > 500 { 13 } else { 1 }) {
            convert_all(&bytes[..len]);
        }
    }
}

/// 60,000 events that each state the size of the file: their replacements must not exceed the file.
#[test]
fn sizes_that_lie_do_not_make_a_log_large() {
    let mut bytes = Vec::new();
    bytes.extend(crate::encode::header(Mode::Fdr, 1, (true, true), 1000, 1 << 20, Endian::Little));
    let record = |begin: &[u8]| {
        let mut record = begin.to_vec();
        record.resize(16, 0);
        record
    };
    bytes.extend(record(&[0x01, 1]));
    bytes.extend(record(&[0x09, 1]));
    bytes.extend(record(&[0x05, 1]));
    for _ in 0..60_000 {
        bytes.extend(record(&[0x0b, 0, 0, 15]));
    }
    bytes.extend(record(&[0x03]));
    let largest = convert_all(&bytes);
    assert!(largest <= bytes.len() * 3, "{largest} of {}", bytes.len());
}

/// One large buffer among many small ones would make version 1 nearly all padding.
#[test]
fn padding_is_bounded() {
    use crate::writer::{BufferStart, BufferWriter, FdrWriter, LogSpec, TscStamp};
    let spec = LogSpec {
        mode: Mode::Fdr,
        version: 5,
        endian: Endian::Little,
        cycle_frequency: 1000,
        tsc_flags: (true, true),
        buffer_size: 4096,
    };
    let mut writer = FdrWriter::new(Vec::new(), spec).unwrap();
    for i in 0..2000 {
        let at = TscStamp { tsc: i, cpu: 0 };
        let mut buffer =
            BufferWriter::new(writer.dialect(), &BufferStart { thread_ids: (1, 1), wall: (i as i64, 0), at });
        buffer.event(at, None, &vec![1; if i == 0 { 1 << 17 } else { 1 }]).unwrap();
        writer.write(&mut buffer).unwrap();
    }
    let log = of_bytes(&writer.finish().unwrap());
    let refused = convert(&[&log], &to(Mode::Fdr, 1, Endian::Little), Vec::new());
    assert!(matches!(refused, Err(ConvertError::Padding { .. })), "{refused:?}");
}

/// A stack of 200,000 calls, and as many exits of calls that are not open: no search of the stack for each.
#[test]
fn a_deep_stack_is_cut_in_time() {
    use crate::consts::Action;
    use crate::convert::selection::TimeRangeCut;
    use crate::writer::TscStamp;
    let mut cut = TimeRangeCut::new(1_000_000..2_000_000);
    let thread = cut.thread((1, 1));
    let mut num_events = 0u32;
    let mut emit = |_: TscStamp, _: crate::writer::ThreadEvent<'_>| num_events += 1;
    for tsc in 0..200_000 {
        thread.enter(TscStamp { tsc, cpu: 0 }, Action::ENTRY, 1, &mut emit);
    }
    for tsc in 200_000..400_000 {
        thread.leave(TscStamp { tsc, cpu: 0 }, Action::EXIT, 2, &mut emit);
    }
    thread.leave(TscStamp { tsc: 1_500_000, cpu: 0 }, Action::EXIT, 1, &mut emit);
    assert_eq!(num_events, 200_001);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bytes_do_no_harm(flips in prop::collection::vec((0..2000usize, any::<u8>()), 1..6), which in 0..4usize) {
        let names = ["fdr/small-v5", "fdr-old/small_nc-v3", "fdr/typed-v5", "basic/basic-orphan-argpayload-v3"];
        if let Some(path) = corpus_log(names[which]) {
            let mut bytes = std::fs::read(path).unwrap();
            let len = bytes.len();
            flips.iter().for_each(|&(at, byte)| bytes[at % len] ^= byte);
            convert_all(&bytes);
        }
    }
}
