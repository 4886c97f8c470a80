//! LineFindings, damage and names; the writer and the extension records have tests of their own.

mod assemble;
mod damage;
mod habits;
mod names;
mod unwinding;
mod writer;
