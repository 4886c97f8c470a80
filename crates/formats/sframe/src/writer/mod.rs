//! Changes sections and writes them: as values, and as bytes again.

mod add;
mod contents;
mod convert;
mod elf;
mod encode;
mod merge;

pub use add::{Added, Mark, row_of};
pub use contents::{Contents, Described, OwnedRow, WriteError};
pub use convert::Misfit;
pub use elf::{insert, put_back, put_into};
pub use merge::{Merged, merge};
