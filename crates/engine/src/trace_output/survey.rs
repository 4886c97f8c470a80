//! A first look over a trace: what was lost at its start, which threads it has, when it begins.

use std::ops::Range;

use super::instants::Instants;
use super::{Error, GoOn, Tables, drive};
use crate::calls::{Calls, Entry, Events, Frame, Leave, Level, Lost, Selection, Visitor};

/// What has to be known before the first event is written.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Calls that were open when the recording began.
    pub lost: Lost,
    /// Keys of the threads that are there in the selected time, sorted.
    pub thread_ids: Vec<u32>,
    /// When the first of them is; `None` where there is none.
    pub first_ns: Option<i64>,
    /// Rows of `call_events`.
    pub num_events: u64,
    /// Rows of `instants` that are selected.
    pub num_instants: u64,
}

impl Survey {
    /// Looks over the tables.
    ///
    /// # Errors
    /// [`Error::Column`] and [`Error::Stopped`].
    pub fn of(tables: Tables<'_>, selection: &Selection, go_on: &mut GoOn<'_>) -> Result<Self, Error> {
        let mut calls = Calls::new(Scout::default(), selection.clone(), Lost::default());
        drive((tables.call_events)(), &mut calls, go_on, |_| false)?;
        let (mut scout, lost) = calls.finish();
        let num_events = scout.num_rows;
        for batch in (tables.instants)() {
            let instants = Instants::new(&batch)?;
            for row in instants.selected(selection) {
                scout.meet(instants.thread_id(row), &[instants.ts_ns(row)]);
            }
        }
        let (thread_ids, since): (Vec<_>, Vec<_>) = scout.there(selection).into_iter().unzip();
        let num_instants = scout.num_rows - num_events;
        Ok(Self { lost, thread_ids, first_ns: since.into_iter().min(), num_events, num_instants })
    }
}

#[derive(Debug, Default)]
struct Scout {
    num_rows: u64,
    /// First and last time of each thread, by key.
    spans: Vec<Option<(i64, i64)>>,
}

impl Scout {
    fn meet(&mut self, thread_id: u32, times: &[i64]) {
        let (Some(&first), Some(&last)) = (times.iter().min(), times.iter().max()) else { return };
        self.num_rows += times.len() as u64;
        let index = thread_id as usize;
        if index >= self.spans.len() {
            self.spans.resize(index + 1, None);
        }
        let known = self.spans[index].get_or_insert((first, last));
        *known = (known.0.min(first), known.1.max(last));
    }

    /// Threads that are there in the selected time, and since when. Calls reach from one event to another, so that threads
    /// with events around it count too.
    fn there(&self, selection: &Selection) -> Vec<(u32, i64)> {
        let range = selection.time_ns.clone().unwrap_or(i64::MIN..i64::MAX);
        let there = |(thread_id, span): (u32, &Option<(i64, i64)>)| {
            let (first, last) = (*span)?;
            (first < range.end && last >= range.start).then_some((thread_id, first.max(range.start)))
        };
        (0..).zip(&self.spans).filter_map(there).collect()
    }
}

impl Visitor for Scout {
    type Mark = ();

    #[inline]
    fn enter(&mut self, _entry: &Entry, _parent: Option<&Frame<()>>) {}

    #[inline]
    fn leave(&mut self, _call: &Frame<()>, _level: Level, _leave: &Leave, _parent: Option<&Frame<()>>) {}

    fn rows(&mut self, events: &Events<'_>, rows: Range<usize>) {
        self.meet(events.get(rows.start).thread_id, events.times(rows));
    }
}
