//! Processors: which thread was on each of them, from context switches, else from samples, else from calls.

use rustc_hash::FxHashMap;

use super::runs::{TimedSample, usual_gap_ns};

/// The longest time between two events of a thread that are one stint whatever other threads do.
const MAX_GAP_NS: i64 = 100_000;

/// A time that a thread was seen on a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stint {
    /// Number of the processor.
    pub cpu: u32,
    /// Thread.
    pub thread_id: u32,
    /// Start on the profile's clock.
    pub start_ns: i64,
    /// Its end.
    pub end_ns: i64,
}

/// The stints of events that are given thread by thread.
#[derive(Debug, Default)]
pub struct Stints {
    /// By processor. The last of each is extended while its thread continues.
    of: FxHashMap<u32, Vec<Stint>>,
}

impl Stints {
    /// Adds events of one thread on one processor, by their times; how events are divided among calls does not matter.
    pub fn add(&mut self, cpu: u32, thread_id: u32, mut times: impl Iterator<Item = i64>) {
        let Some(first) = times.next() else { return };
        let stints = self.of.entry(cpu).or_default();
        let of_thread = |stint: &Stint| stint.thread_id == thread_id;
        let mut last = stints.last().copied().filter(of_thread);
        if last.is_some() {
            stints.pop();
        }
        for ts_ns in std::iter::once(first).chain(times) {
            match &mut last {
                Some(last) if (last.start_ns..=last.end_ns.saturating_add(MAX_GAP_NS)).contains(&ts_ns) => {
                    last.end_ns = last.end_ns.max(ts_ns);
                }
                _ => stints.extend(last.replace(Stint { cpu, thread_id, start_ns: ts_ns, end_ns: ts_ns })),
            }
        }
        stints.extend(last);
    }

    /// The stints, by processor and time. Those of a thread are one where no other thread begins between them.
    #[must_use]
    pub fn finish(self) -> Vec<Stint> {
        let mut all: Vec<Stint> = self.of.into_values().flatten().collect();
        all.sort_by_key(|stint| (stint.cpu, stint.start_ns, stint.thread_id));
        let mut joined: Vec<Stint> = Vec::new();
        for stint in all {
            match joined.last_mut() {
                Some(last) if (last.cpu, last.thread_id) == (stint.cpu, stint.thread_id) => {
                    last.end_ns = last.end_ns.max(stint.end_ns);
                }
                _ => joined.push(stint),
            }
        }
        joined
    }
}

/// The stints of samples: consecutive samples of one thread on a processor. A sample lasts until the next one on its processor, at
/// most twice the usual distance of samples there.
pub(super) fn sampled_stints(samples: &[TimedSample]) -> Vec<Stint> {
    let mut of: Vec<(u32, TimedSample)> =
        samples.iter().filter_map(|sample| Some((sample.cpu?, *sample))).collect();
    of.sort_by_key(|(cpu, sample)| (*cpu, sample.ts_ns));
    let mut stints: Vec<Stint> = Vec::new();
    for on_processor in of.chunk_by(|a, b| a.0 == b.0) {
        let samples: Vec<TimedSample> = on_processor.iter().map(|(_, sample)| *sample).collect();
        let gap_ns = usual_gap_ns(&samples).saturating_mul(2);
        for (&(cpu, sample), next) in
            on_processor.iter().zip(on_processor.iter().skip(1).map(Some).chain([None]))
        {
            let longest = sample.ts_ns.saturating_add(gap_ns);
            let end_ns = match next {
                Some((_, next)) => next.ts_ns.min(longest),
                None => sample.ts_ns.saturating_add(gap_ns / 2),
            };
            let continues = |last: &&mut Stint| {
                last.cpu == cpu && last.thread_id == sample.thread_id && last.end_ns >= sample.ts_ns
            };
            match stints.last_mut().filter(continues) {
                Some(last) => last.end_ns = last.end_ns.max(end_ns),
                None => {
                    stints.push(Stint { cpu, thread_id: sample.thread_id, start_ns: sample.ts_ns, end_ns })
                }
            }
        }
    }
    stints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stint(cpu: u32, thread_id: u32, start_ns: i64, end_ns: i64) -> Stint {
        Stint { cpu, thread_id, start_ns, end_ns }
    }

    fn samples(of: &[(i64, u32, Option<u32>)]) -> Vec<TimedSample> {
        of.iter().map(|&(ts_ns, thread_id, cpu)| TimedSample::without_stack(ts_ns, thread_id, cpu)).collect()
    }

    #[test]
    fn events_of_a_thread_are_one_stint_until_another_thread_begins() {
        let mut stints = Stints::default();
        stints.add(0, 7, [0, 10].into_iter());
        // Long after, and another thread in between.
        stints.add(0, 7, [10, 30, 9_000_000, 9_000_050].into_iter());
        // Long after, and nothing in between.
        stints.add(1, 8, [5, 6, 8_000_000].into_iter());
        stints.add(1, 8, std::iter::empty());
        // Given later, but earlier than the end of thread 7.
        stints.add(0, 9, [4_000_000, 4_000_001].into_iter());
        assert_eq!(
            stints.finish(),
            [
                stint(0, 7, 0, 30),
                stint(0, 9, 4_000_000, 4_000_001),
                stint(0, 7, 9_000_000, 9_000_050),
                stint(1, 8, 5, 8_000_000)
            ]
        );
    }

    #[test]
    fn samples_last_until_the_next_one_of_their_processor() {
        let found = sampled_stints(&samples(&[
            (0, 7, Some(0)),
            (10, 7, Some(0)),
            (20, 8, Some(0)),
            (30, 7, Some(1)),
            (30, 8, Some(0)),
            // After a gap, which ends the stint after twice the usual distance.
            (90, 8, Some(0)),
            (100, 8, None),
        ]));
        let only = 30 + 1_000_000;
        assert_eq!(
            found,
            [stint(0, 7, 0, 20), stint(0, 8, 20, 50), stint(0, 8, 90, 100), stint(1, 7, 30, only)]
        );
    }
}
