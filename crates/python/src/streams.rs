//! Streams of record batches as Arrow libraries pull them: panics and stopped calls become errors.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_schema::ArrowError;
use perfuse_stopping::StopReason;

use crate::call::StoppableStream;
use crate::errors::payload_text;

/// The items of an iterator; a panic becomes an error, since it must not unwind into the Arrow library that pulls them.
pub struct CatchPanics<I: Iterator>(pub StoppableStream<I>);

impl<T: Send, I: Iterator<Item = Result<T, ArrowError>> + Send> Iterator for CatchPanics<I> {
    type Item = Result<T, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = catch_unwind(AssertUnwindSafe(|| self.0.next()));
        let failed = |why: String| Some(Err(ArrowError::ExternalError(why.into())));
        match next {
            Ok(Ok(item)) => item,
            Ok(Err(StopReason::Interrupted)) => failed("interrupted".to_owned()),
            Ok(Err(StopReason::OutOfMemory)) => failed("memory is at its limit".to_owned()),
            Err(payload) => failed(format!("internal error: {}", payload_text(&*payload))),
        }
    }
}
