//! Files that may become shorter while they are read: an error instead of a wrong answer.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use perfuse_formats::{CUT, Recording, Source};

/// The inputs of a recording or of a profile.
#[derive(Clone)]
pub struct Inputs(Arc<[Arc<Source>]>);

impl From<&Arc<Source>> for Inputs {
    fn from(source: &Arc<Source>) -> Self {
        Self([Arc::clone(source)].into())
    }
}

impl Inputs {
    /// The inputs of recordings.
    pub fn of<'a>(recordings: impl IntoIterator<Item = &'a Arc<dyn Recording>>) -> Self {
        Self(recordings.into_iter().map(|recording| Arc::clone(recording.source())).collect())
    }

    /// Path of an input that became shorter since it was opened: what was computed of it may be wrong.
    #[must_use]
    pub fn cut(&self) -> Option<&str> {
        self.0.iter().find(|source| source.is_cut()).map(|source| source.path.as_str())
    }

    /// Batches that are computed from the inputs, with an error at the end where one of them was cut; [`take_cut`] then
    /// returns its path.
    pub fn batches<E: Error + Send + Sync + 'static>(
        &self,
        batches: impl Iterator<Item = Result<RecordBatch, E>> + Send + 'static,
    ) -> impl Iterator<Item = Result<RecordBatch, ReadError>> + Send + 'static {
        let inputs = self.clone();
        let batches = batches.map(|batch| batch.map_err(|error| ReadError::Batch(Box::new(error))));
        let mut failed = false;
        batches.map(Some).chain([None]).map_while(move |batch| match inputs.cut() {
            _ if failed => None,
            None => batch,
            Some(path) => {
                failed = true;
                *LAST_CUT.lock().unwrap_or_else(PoisonError::into_inner) = Some(path.to_owned());
                Some(Err(ReadError::Cut(path.to_owned())))
            }
        })
    }
}

/// Path of the last input that made a stream fail, until [`take_cut`] returns it.
static LAST_CUT: Mutex<Option<String>> = Mutex::new(None);

/// Path of an input that became shorter while batches were computed from it; each is returned once.
pub fn take_cut() -> Option<String> {
    LAST_CUT.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Why batches of a table ended early.
#[derive(Debug)]
pub enum ReadError {
    /// An input became shorter: its path.
    Cut(String),
    /// A batch could not be computed.
    Batch(Box<dyn Error + Send + Sync>),
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut(path) => write!(out, "{path}: {CUT}"),
            Self::Batch(error) => error.fmt(out),
        }
    }
}

impl Error for ReadError {}
