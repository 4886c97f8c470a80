//! Lists of records: which records to list, and each of them as text or JSON.

mod characters;
mod json;
mod output;
mod record_cursor;
mod text;

pub use json::append_json;
pub use output::{RecordForm, write_records};
pub use record_cursor::{RecordCursor, RecordRange};
pub use text::{RecordStyle, append_hex, append_text};
