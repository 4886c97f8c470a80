//! A first pass over a trace: calls open at its start, its threads, its first time stamp, and which slices nest with calls.

use std::collections::{BTreeMap, BTreeSet};

use super::counters::{Counter, CounterValue, CounterValues, make_titles_unique};
use super::instants::Instants;
use super::nesting::Nesting;
use super::spans::Span;
use super::{Error, Progress, Tables, drive};
use perfuse_engine::calls::{
    CallEntry, Calls, Event, Leave, Level, LostEntries, OpenCall, Selection, Visitor,
};

/// Facts about a trace that writers need before the first event.
#[derive(Clone, Debug, Default)]
pub struct TraceSurvey {
    /// Calls that were open when the recording began.
    pub lost: LostEntries,
    /// Keys of the threads present in the selected time, sorted.
    pub thread_ids: Vec<u32>,
    /// Time of the first event; `None` where there is none.
    pub first_ns: Option<i64>,
    /// Rows of `call_events`.
    pub num_events: u64,
    /// Rows of `instants` that are selected.
    pub num_instants: u64,
    /// Slices that are not calls.
    pub spans: Vec<Span>,
    /// By slice, whether it nests with the calls of its thread.
    pub nests: Vec<bool>,
    /// Counters that have values in the selected time, by key.
    pub counters: BTreeMap<u32, Counter>,
    /// Number of those values.
    pub num_counts: u64,
}

impl TraceSurvey {
    /// Reads the tables once.
    ///
    /// # Errors
    /// [`Error::Column`] and [`Error::Stopped`].
    pub fn of(tables: Tables<'_>, selection: &Selection, progress: &mut Progress<'_>) -> Result<Self, Error> {
        let mut spans = Vec::new();
        for batch in (tables.slices)() {
            Span::read(&batch, selection, &mut spans)?;
        }
        let visitor = SurveyVisitor { nesting: Nesting::of(&spans), ..SurveyVisitor::default() };
        let mut calls = Calls::new(visitor, selection.clone(), LostEntries::default());
        drive((tables.call_events)(), &mut calls, progress, |_| false)?;
        let (mut visitor, lost) = calls.finish();
        let num_events = visitor.num_rows;
        for batch in (tables.instants)() {
            let instants = Instants::new(&batch)?;
            for row in instants.selected(selection) {
                visitor.add(instants.thread_id(row), std::iter::once(instants.ts_ns(row)));
            }
        }
        let num_instants = visitor.num_rows - num_events;
        for span in &spans {
            visitor.add(span.thread_id, [span.start_ns, span.end_ns].into_iter());
        }
        let nesting = std::mem::take(&mut visitor.nesting);
        let nests = nesting.finish(&spans, selection, &lost.threads());
        let mut counters = Counter::all(tables.counters, tables.pids)?;
        let mut counted = CounterSurvey::default();
        for batch in (tables.counter_samples)() {
            let values = CounterValues::new(&batch)?;
            counted.add(values.selected(selection).filter(|value| counters.contains_key(&value.counter_id)));
        }
        counters.retain(|id, _| counted.counters.contains(id));
        make_titles_unique(&mut counters);
        let (thread_ids, since): (Vec<_>, Vec<_>) = visitor.present(selection).into_iter().unzip();
        let first_ns = since.into_iter().chain(counted.first_ns).min();
        let num_counts = counted.num;
        Ok(Self { lost, thread_ids, first_ns, num_events, num_instants, spans, nests, counters, num_counts })
    }
}

/// The counters that have values, and the time of the first value.
#[derive(Debug, Default)]
struct CounterSurvey {
    counters: BTreeSet<u32>,
    first_ns: Option<i64>,
    num: u64,
}

impl CounterSurvey {
    fn add(&mut self, counts: impl Iterator<Item = CounterValue>) {
        for count in counts {
            self.counters.insert(count.counter_id);
            self.first_ns = Some(self.first_ns.map_or(count.ts_ns, |first| first.min(count.ts_ns)));
            self.num += 1;
        }
    }
}

#[derive(Debug, Default)]
struct SurveyVisitor {
    num_rows: u64,
    /// First and last time of each thread, by key.
    spans: Vec<Option<(i64, i64)>>,
    nesting: Nesting,
}

impl SurveyVisitor {
    fn add(&mut self, thread_id: u32, times: impl Iterator<Item = i64>) {
        let times = times.inspect(|_| self.num_rows += 1);
        let span = times.fold(None, |span: Option<(i64, i64)>, time| {
            Some(span.map_or((time, time), |(first, last)| (first.min(time), last.max(time))))
        });
        let Some((first, last)) = span else { return };
        let index = thread_id as usize;
        if index >= self.spans.len() {
            self.spans.resize(index + 1, None);
        }
        let known = self.spans[index].get_or_insert((first, last));
        *known = (known.0.min(first), known.1.max(last));
    }

    /// Threads that are there in the selected time, and since when. Calls reach from one event to another, so that threads
    /// with events around it count too.
    fn present(&self, selection: &Selection) -> Vec<(u32, i64)> {
        let range = selection.time_ns.clone().unwrap_or(i64::MIN..i64::MAX);
        let there = |(thread_id, span): (u32, &Option<(i64, i64)>)| {
            let (first, last) = (*span)?;
            (first < range.end && last >= range.start).then_some((thread_id, first.max(range.start)))
        };
        (0..).zip(&self.spans).filter_map(there).collect()
    }
}

impl Visitor for SurveyVisitor {
    type CallData = ();

    #[inline]
    fn enter(&mut self, entry: &CallEntry, _parent: Option<&OpenCall<()>>) {
        self.nesting.edge(entry.thread_id, entry.start_ns, entry.depth, entry.depth + 1);
    }

    #[inline]
    fn leave(&mut self, _call: &OpenCall<()>, level: Level, leave: &Leave, _parent: Option<&OpenCall<()>>) {
        self.nesting.edge(level.thread_id, leave.end_ns, level.depth + 1, level.depth);
    }

    fn orphan(&mut self, event: &Event, _cpu: Option<u32>, depth: u32, _parent: Option<&OpenCall<()>>) {
        self.nesting.edge(event.thread_id, event.ts_ns, depth, depth);
    }

    fn rows(
        &mut self,
        thread_id: u32,
        _cpu: Option<u32>,
        _num_rows: usize,
        times: impl DoubleEndedIterator<Item = i64>,
    ) {
        self.add(thread_id, times);
    }
}
