//! The data of an open log: its bytes and header, and what is computed from them once: survey, names and stacks.

use std::sync::{Arc, OnceLock};

use perfuse_recording::{Source, TableRequest};
use perfuse_wire::ParseError;

use crate::consts::{EventByte, KindSet};
use crate::header::Header;
use crate::named_log::NamedLog;
use crate::names::LogNames;
use crate::open_calls::{self, OpenCallsByBuffer};
use crate::stacks::{self, LogStacks};
use crate::survey::LogSurvey;

/// The data of an open log that its tables share.
#[derive(Debug)]
pub struct LogData {
    /// The bytes of the file.
    pub source: Arc<Source>,
    /// The file header.
    pub header: Header,
    survey: OnceLock<LogSurvey>,
    names: OnceLock<LogNames>,
    open_calls: OnceLock<OpenCallsByBuffer>,
    event_stacks: OnceLock<LogStacks>,
    stacks: OnceLock<LogStacks>,
    table_stacks: [OnceLock<LogStacks>; stacks::TABLES.len()],
}

impl LogData {
    /// Reads the header.
    ///
    /// # Errors
    /// When there is no valid header, or the data version is unknown.
    pub fn new(source: Arc<Source>) -> Result<Self, ParseError> {
        let header = Header::read(&source)?;
        Ok(Self {
            source,
            header,
            survey: OnceLock::new(),
            names: OnceLock::new(),
            open_calls: OnceLock::new(),
            event_stacks: OnceLock::new(),
            stacks: OnceLock::new(),
            table_stacks: Default::default(),
        })
    }

    /// The result of the survey; computed once.
    #[must_use]
    pub fn survey(&self) -> &LogSurvey {
        self.survey.get_or_init(|| LogSurvey::new(&self.source, self.header.dialect(), self.header.size))
    }

    /// The names of the log; computed once.
    #[must_use]
    pub fn names(&self) -> &LogNames {
        self.names.get_or_init(|| LogNames::new(self.survey()))
    }

    /// The log with its names.
    #[must_use]
    pub fn named(&self) -> NamedLog<'_> {
        NamedLog { source: &self.source, survey: self.survey(), names: self.names() }
    }

    /// The open calls at the start of each buffer, if they are the stacks of events of these kinds; computed once.
    #[must_use]
    pub fn open_calls(&self, kinds: KindSet) -> Option<&OpenCallsByBuffer> {
        let is_needed = open_calls::kinds(self.survey()).meets(kinds);
        is_needed.then(|| self.open_calls.get_or_init(|| OpenCallsByBuffer::new(self.named())))
    }

    /// The stacks of events of these kinds.
    fn gather(&self, kinds: KindSet) -> LogStacks {
        LogStacks::gather(self.named(), kinds, self.open_calls(kinds))
    }

    /// Every distinct stack of events other than allocations; computed once.
    #[must_use]
    pub fn event_stacks(&self) -> &LogStacks {
        self.event_stacks.get_or_init(|| self.gather(stacks::OF_EVENTS))
    }

    /// The stacks of a table's rows: only those of the table that `request.stacks_of` names, otherwise those of all
    /// events except allocations. `None` if no stacks are requested.
    #[must_use]
    pub fn stacks_for(&self, request: &TableRequest) -> Option<&LogStacks> {
        if request.no_stacks {
            return None;
        }
        let table = stacks::TABLES
            .iter()
            .zip(&self.table_stacks)
            .find(|((name, _), _)| request.stacks_of == Some(name));
        Some(match table {
            Some(((_, kinds), made)) => made.get_or_init(|| self.gather(*kinds)),
            None => self.event_stacks(),
        })
    }

    /// Every distinct stack, those of events other than allocations first; computed once, in another scan.
    #[must_use]
    pub fn stacks(&self) -> &LogStacks {
        let events = self.event_stacks();
        let open_calls = self.open_calls(stacks::OF_ALLOCATIONS);
        if self.survey().count(EventByte::ALLOC_BT) == 0 && open_calls.is_none() {
            return events;
        }
        self.stacks.get_or_init(|| events.clone().with_allocations(self.named(), open_calls))
    }
}
