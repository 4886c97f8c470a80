//! Calls, out of the events that tell where they begin and end.

mod events;
mod machine;
#[cfg(test)]
mod tests;

pub use events::{Event, Events};
pub use machine::{Calls, Entry, Frame, Leave, Lost, Selection, Visitor, visit};
