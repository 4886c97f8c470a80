//! The C interface of [`perfuse_symbolizer`], which `include/perfuse_symbolizer.h` declares: `make header` makes it of this crate.
//!
//! Every function returns a [`perfuse_status`], never unwinds into its caller, and writes its results through pointers. Handles are
//! opaque; each has a function that frees it.

mod answer;
mod dump;
mod handle;
mod status;
mod unwind;

pub use answer::{perfuse_answer, perfuse_code, perfuse_frame};
pub use dump::{PERFUSE_LATEST, perfuse_dump, perfuse_dump_facts};
pub use status::perfuse_status;
pub use unwind::{perfuse_expression, perfuse_expression_base, perfuse_unwind_row, perfuse_unwind_table};
