//! The string table, which all others refer to by number.

use rustc_hash::FxHashMap;

use super::fields::profile;
use crate::protobuf::Encoder;

/// The string table; number 0 is the empty string.
#[derive(Debug, Default)]
pub struct StringTable {
    ids: FxHashMap<String, u64>,
    all: Vec<String>,
}

impl StringTable {
    /// Number of a string.
    pub fn id(&mut self, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        self.all.push(text.to_owned());
        let id = self.all.len() as u64;
        self.ids.insert(text.to_owned(), id);
        id
    }

    /// Writes the table.
    pub fn write(&self, out: &mut Encoder) {
        out.data(profile::STRING_TABLE, b"");
        for text in &self.all {
            out.data(profile::STRING_TABLE, text.as_bytes());
        }
    }
}
