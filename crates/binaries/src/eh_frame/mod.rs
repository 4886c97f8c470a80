//! How code is unwound by `.eh_frame`, as plain rows: call frame instructions run once, each change of a rule a row.
//!
//! [`EhFrame::of_elf`] reads a finished file or an object file, [`read`] bytes from elsewhere, such as JIT code's. What a row
//! says is one of the values that SFrame's rows have too, or why there is none: so both can be compared, and the one be made
//! from the other.

mod augmentation;
mod coverage;
mod cross_check;
mod error;
mod object_file;
mod reader;
mod registers;
mod rules;
mod section;
mod table;
#[cfg(test)]
mod tests;

pub use coverage::{Coverage, Covered, Known, Without};
pub use cross_check::{CrossCheck, Differs, Disagreement, cross_check};
pub use error::Error;
pub use gimli::RunTimeEndian;
pub use object_file::SectionBases;
pub use reader::{Bytes, Unread, read};
pub use registers::Registers;
pub use section::{Code, EhFrame};
pub use table::{Function, Row, Says, Stub, Unsayable, UnwindTable};
