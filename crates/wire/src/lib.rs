//! Reading and writing bytes, layouts of fields, parse errors and diagnostics. This crate does not depend on any format.
//!
//! * [`Cursor`] reads typed fields at absolute offsets, in either byte order.
//! * [`layout!`] generates a struct, its decoder, its encoder and its description from a table of a specification.
//! * [`ParseError`] is an error that stops decoding; [`Diagnostic`] is a departure from a specification that does not.
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
mod machine;
mod view;

pub use cursor::{Cursor, Endian, FixedFields, Put};
pub use diagnostic::{Diagnostic, Diagnostics, Rule, Severity};
pub use error::{ErrorKind, ParseError};
pub use layout::{Field, FieldType, Layout};
pub use machine::{machine_name, machine_pointer_bytes};
pub use view::{RecordView, Value};
