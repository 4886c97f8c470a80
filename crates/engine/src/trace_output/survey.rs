//! A first look over a trace: what was lost at its start, which threads it has, when it begins.

use std::ops::Range;

use super::instants::Instants;
use super::{Error, GoOn, Tables, drive};
use crate::calls::{Calls, Entry, Events, Frame, Leave, Lost, Selection, Visitor};

/// What has to be known before the first event is written.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Calls that were open when the recording began.
    pub lost: Lost,
    /// Keys of threads that have events or instants, sorted.
    pub thread_ids: Vec<u32>,
    /// Time of the first of them; `None` where there is none.
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
        let scout =
            Scout { range: selection.time_ns.clone().unwrap_or(i64::MIN..i64::MAX), ..Scout::default() };
        let mut calls = Calls::new(scout, selection.clone(), Lost::default());
        drive((tables.call_events)(), &mut calls, go_on, |_| false)?;
        let (mut scout, lost) = calls.finish();
        let num_events = scout.num_rows;
        for batch in (tables.instants)() {
            scout.instants(&Instants::new(&batch)?, selection);
        }
        let thread_ids = (0..).zip(&scout.threads).filter(|(_, there)| **there).map(|(id, _)| id).collect();
        let num_instants = scout.num_rows - num_events;
        Ok(Self { lost, thread_ids, first_ns: scout.first_ns, num_events, num_instants })
    }

    /// Whether there is neither a call nor an instant.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.thread_ids.is_empty()
    }
}

#[derive(Debug, Default)]
struct Scout {
    range: Range<i64>,
    first_ns: Option<i64>,
    num_rows: u64,
    threads: Vec<bool>,
}

impl Scout {
    fn meet(&mut self, thread_id: u32, times: &[i64]) {
        // Calls reach from one event to the next, so that those around the range count too.
        let (Some(&first), Some(&last)) = (times.iter().min(), times.iter().max()) else { return };
        self.num_rows += times.len() as u64;
        if last < self.range.start || first >= self.range.end {
            return;
        }
        let first = first.max(self.range.start);
        self.first_ns = Some(self.first_ns.map_or(first, |known| known.min(first)));
        let index = thread_id as usize;
        if index >= self.threads.len() {
            self.threads.resize(index + 1, false);
        }
        self.threads[index] = true;
    }

    fn instants(&mut self, instants: &Instants<'_>, selection: &Selection) {
        for row in instants.selected(selection) {
            self.meet(instants.thread_id(row), &[instants.ts_ns(row)]);
        }
    }
}

impl Visitor for Scout {
    type Mark = ();

    #[inline]
    fn enter(&mut self, _entry: &Entry, _parent: Option<&Frame<()>>) {}

    #[inline]
    fn leave(&mut self, _call: &Frame<()>, _leave: &Leave, _parent: Option<&Frame<()>>) {}

    fn rows(&mut self, events: &Events<'_>, rows: Range<usize>) {
        self.meet(events.get(rows.start).thread_id, events.times(rows));
    }
}
