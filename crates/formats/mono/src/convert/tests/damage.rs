//! Tests of damaged logs: readable events are written, and the output is valid.

use perfuse_recording::{Recording, Source};

use crate::convert::tests::{Options, fixture, part, to};
use crate::convert::{LogSelection, convert};
use crate::recording::MonoLog;
use crate::tests::assemble::open;

/// A deterministic generator of pseudorandom numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

fn reads_as_written(bytes: Vec<u8>, options: &Options) {
    let Ok(source) = Source::from_bytes("log", bytes) else { return };
    let Ok(log) = MonoLog::open(std::sync::Arc::new(source)) else { return };
    let mut out = Vec::new();
    if let Ok(summary) = convert(&[&log], options, &mut out) {
        let again = open(out);
        assert_eq!(again.survey().num_events(), summary.num_events);
        assert_eq!(again.survey().events.faults, []);
        assert_eq!(again.survey().buffers.damage, []);
    }
}

#[test]
fn flipped_bits() {
    let mut numbers = Numbers(7);
    for name in ["crafted-v17", "crafted-v12", "crafted-v05", "crafted-v14", "crafted-v01-32bit"] {
        let log = fixture(name);
        let whole: &[u8] = log.source();
        for version in (1..=17).cycle().take(400) {
            let mut bytes = whole.to_vec();
            for _ in 0..=numbers.below(4) {
                let at = numbers.below(bytes.len());
                bytes[at] ^= 1 << numbers.below(8);
            }
            reads_as_written(bytes.clone(), &to(version));
            let (start, end) = (numbers.below(1 << 20) as u64, u64::MAX >> numbers.below(64));
            let time = Some(start.min(end)..end);
            reads_as_written(bytes, &part(LogSelection { time, ..LogSelection::default() }));
        }
    }
}

#[test]
fn every_cut() {
    let log = fixture("crafted-v16");
    let whole: &[u8] = log.source();
    for len in 0..whole.len() {
        reads_as_written(whole[..len].to_vec(), &to(1 + (len % 17) as u8));
    }
}
