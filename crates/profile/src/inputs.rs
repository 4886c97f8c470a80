//! Files that cannot be read to their end, such as those that become shorter meanwhile: an error instead of a wrong answer.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow_array::RecordBatch;
use perfuse_formats::{CUT, Recording, Source};

/// The inputs of a recording or of a profile.
#[derive(Clone)]
pub struct Inputs {
    sources: Arc<[Arc<Source>]>,
    damage: Damage,
}

/// What is wrong with a file whose rows are streams that cannot fail.
#[derive(Clone, Debug, Default)]
pub struct Damage(Arc<OnceLock<Unreadable>>);

impl Damage {
    /// Stores what is wrong; what was stored first stays.
    pub(crate) fn note(&self, path: &str, reason: impl fmt::Display) {
        let _ = self.0.set(Unreadable { path: path.to_owned(), reason: reason.to_string() });
    }
}

impl From<&Arc<Source>> for Inputs {
    fn from(source: &Arc<Source>) -> Self {
        Self { sources: [Arc::clone(source)].into(), damage: Damage::default() }
    }
}

impl Inputs {
    /// The inputs of recordings.
    pub fn of<'a>(recordings: impl IntoIterator<Item = &'a Arc<dyn Recording>>) -> Self {
        let sources = recordings.into_iter().map(|recording| Arc::clone(recording.source())).collect();
        Self { sources, damage: Damage::default() }
    }

    /// The same with damage that is found meanwhile.
    #[must_use]
    pub fn with_damage(self, damage: Damage) -> Self {
        Self { damage, ..self }
    }

    /// What was found to be wrong with an input: what was computed of it is not right.
    #[must_use]
    pub fn damaged(&self) -> Option<&Unreadable> {
        self.damage.0.get()
    }

    /// Path of an input that became shorter since it was opened: what was computed of it may be wrong.
    #[must_use]
    pub fn cut(&self) -> Option<&str> {
        self.sources.iter().find(|source| source.is_cut()).map(|source| source.path.as_str())
    }

    /// Batches that are computed from the inputs, with an error at the end where one of them was cut; [`take_unreadable`]
    /// then returns it.
    pub fn batches<E: Error + Send + Sync + 'static>(
        &self,
        batches: impl Iterator<Item = Result<RecordBatch, E>> + Send + 'static,
    ) -> impl Iterator<Item = Result<RecordBatch, ReadError>> + Send + 'static {
        let inputs = self.clone();
        let batches = batches.map(|batch| batch.map_err(|error| ReadError::Batch(Box::new(error))));
        let mut failed = false;
        let unreadable = move || match (inputs.cut(), inputs.damaged()) {
            (Some(path), _) => Some(Unreadable::noted(path, CUT)),
            (None, Some(damaged)) => Some(Unreadable::noted(&damaged.path, &damaged.reason)),
            (None, None) => None,
        };
        batches.map(Some).chain([None]).map_while(move |batch| match unreadable() {
            _ if failed => None,
            None => batch,
            Some(unreadable) => {
                failed = true;
                Some(Err(ReadError::Cut(unreadable)))
            }
        })
    }
}

/// An input that made a stream fail.
#[derive(Clone, Debug)]
pub struct Unreadable {
    /// Its path.
    pub path: String,
    /// What is wrong with it.
    pub reason: String,
}

/// The last one, until [`take_unreadable`] returns it.
static LAST_UNREADABLE: Mutex<Option<Unreadable>> = Mutex::new(None);

impl Unreadable {
    /// One that [`take_unreadable`] will return.
    pub(crate) fn noted(path: &str, reason: impl fmt::Display) -> Self {
        let unreadable = Self { path: path.to_owned(), reason: reason.to_string() };
        *LAST_UNREADABLE.lock().unwrap_or_else(PoisonError::into_inner) = Some(unreadable.clone());
        unreadable
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.path, self.reason)
    }
}

/// An input that could not be read to its end while batches were computed from it; each is returned once.
pub fn take_unreadable() -> Option<Unreadable> {
    LAST_UNREADABLE.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Why batches of a table ended early.
#[derive(Debug)]
pub enum ReadError {
    /// An input became shorter.
    Cut(Unreadable),
    /// A batch could not be computed.
    Batch(Box<dyn Error + Send + Sync>),
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut(input) => input.fmt(out),
            Self::Batch(error) => error.fmt(out),
        }
    }
}

impl Error for ReadError {}
