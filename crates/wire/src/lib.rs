//! Bytes, and what is wrong with them. Knows no format.
//!
//! * [`Cursor`] reads typed fields at absolute offsets in either endianness.
//! * [`layout!`] turns a table of a specification into a struct, its decoder, its encoder and its description.
//! * [`ParseError`] says what is missing, where; [`Diagnostic`] is a departure that does not stop the reading.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::panic
    )
)]

mod cursor;
mod diagnostic;
mod error;
mod layout;
mod view;

pub use cursor::{Cursor, Endian, Part, Put};
pub use diagnostic::{Diagnostic, Diagnostics, Rule, Severity};
pub use error::{ErrorKind, ParseError};
pub use layout::{Field, FieldType, Layout};
pub use view::{RecordView, Value};
