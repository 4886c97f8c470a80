//! SFrame sections together with other unwinding information: compared with `.eh_frame`, made from `.eh_frame` and from
//! records of JIT code, and used to unwind one stack.

mod coverage;
mod cross_check;
mod from_eh_frame;
mod unwind;

pub use coverage::{MissingFunction, SectionCoverage, section_coverage};
pub use cross_check::cross_check_recording;
pub use from_eh_frame::{FromEhFrameError, OmittedFunction, section_from_eh_frame};
pub use unwind::{parse_registers, unwind_by_sframe};
