//! Unwind rules of `.eh_frame` as plain rows: call frame instructions are executed once, and each change of a rule is a row.
//!
//! [`EhFrame::of_elf`] reads a linked file or an object file, [`read`] a section from elsewhere, such as JIT code's. The rule
//! of a row is one that SFrame's rows can have too, or the reason why it cannot be represented, so that tables of both can be
//! compared and converted.

mod augmentation;
mod coverage;
mod cross_check;
mod elf;
mod reader;
mod rules;
mod table;
#[cfg(test)]
mod tests;

pub use coverage::{CodeSectionCoverage, Coverage, EhFrameEntry, UncoveredFunction};
pub use cross_check::{CrossCheck, Difference, Disagreement, cross_check};
pub use elf::{CodeSection, EhFrame, Error, SectionBases};
pub use gimli::RunTimeEndian;
pub use reader::{SectionBytes, UnreadEntry, read};
pub use rules::DwarfRegisters;
pub use table::{PltRule, RowRule, Unrepresentable, UnwindFunction, UnwindRow, UnwindTable};
