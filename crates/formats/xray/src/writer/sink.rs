//! What is told what threads did: a log on its way out.

use super::{Beginning, Moment, Owner, Told, WriteError, Written};

/// Takes in what threads did: by buffers, or thread by thread in order of time.
pub trait Sink {
    /// A buffer begins: what is told until its end is of its thread.
    fn begin(&mut self, beginning: &Beginning);

    /// The buffer ends. Without `even_empty` there was none if nothing was told.
    fn end(&mut self, even_empty: bool) -> Result<(), WriteError>;

    /// The log has the counter whole here, and the processor.
    fn new_cpu(&mut self, at: Moment);

    /// The log has the counter whole here.
    fn wrap(&mut self, tsc: u64);

    /// A thread did something.
    fn tell(&mut self, owner: Owner, at: Moment, told: Told<'_>);

    /// What failed since it was asked last.
    fn check(&mut self) -> Result<(), WriteError>;
}

/// A sink that ends.
pub trait Finish: Sink {
    /// Writes what is left, and says what was written.
    fn finish(&mut self) -> Result<Written, WriteError>;
}
