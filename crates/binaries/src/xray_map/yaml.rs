//! Maps as YAML, which `llvm-xray extract` writes: a list of sleds, each with the id of its function, and its name with
//! `--symbolize`.

use std::sync::Arc;

use super::findings::Error;
use super::map::{CodeLocation, InstrumentationMap, InstrumentedFunction, Sled, SledKind};
use crate::symbolize::{SymbolFrame, demangled};

/// A map, and the names of its functions in the order of their ids; empty where it has none.
pub(super) struct YamlMap {
    pub(super) map: InstrumentationMap,
    pub(super) names: Vec<Option<SymbolFrame>>,
}

/// Whether a file is a list of sleds: such a list begins with `- {`, after comments and the start of a document.
pub(super) fn is_yaml(bytes: &[u8]) -> bool {
    let mut parser = SledListParser { bytes, at: 0 };
    parser.skip_start();
    parser.take(b"-") && parser.take(b"{")
}

/// Reads a map.
///
/// # Errors
/// [`Error::Yaml`] with the offset of what is not understood.
pub(super) fn read(bytes: &[u8]) -> Result<YamlMap, Error> {
    let mut parser = SledListParser { bytes, at: 0 };
    parser.skip_start();
    let mut sleds = Vec::new();
    let mut functions: Vec<InstrumentedFunction> = Vec::new();
    let mut names: Vec<Option<SymbolFrame>> = Vec::new();
    while parser.take(b"-") {
        let offset = parser.at as u64;
        let SledEntry { id, sled, name } = parser.entry()?;
        let at = sleds.len();
        match functions.last_mut() {
            Some(last) if last.id == id => last.sleds.end = at.saturating_add(1),
            last => {
                if last.map_or(0, |last| last.id).checked_add(1) != Some(id) {
                    return Err(Error::Yaml("ids of functions do not follow each other", offset));
                }
                let sleds = at..at.saturating_add(1);
                functions.push(InstrumentedFunction { id, location: sled.function, sleds });
                names.push(name);
            }
        }
        sleds.push(Sled { offset, ..sled });
    }
    parser.skip_space();
    if parser.at < bytes.len() && !parser.rest().starts_with(b"...") {
        return Err(parser.error("neither a sled nor the end of the list"));
    }
    let map = InstrumentationMap {
        architecture: "unknown",
        pointer_bytes: 8,
        sleds,
        functions,
        findings: Vec::new(),
        section_names: Vec::new(),
        slice: 0..0,
        is_mach_o: false,
    };
    Ok(YamlMap { map, names })
}

/// A sled with its function.
struct SledEntry {
    id: u32,
    sled: Sled,
    name: Option<SymbolFrame>,
}

/// Reads the YAML that LLVM writes for such lists, with any white space.
struct SledListParser<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl SledListParser<'_> {
    fn rest(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn error(&self, why: &'static str) -> Error {
        Error::Yaml(why, self.at as u64)
    }

    /// Skips white space and comments.
    fn skip_space(&mut self) {
        loop {
            let rest = self.rest();
            let num_spaces = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.at = self.at.saturating_add(num_spaces);
            if self.rest().first() != Some(&b'#') {
                return;
            }
            let len = self.rest().iter().take_while(|&&byte| byte != b'\n').count();
            self.at = self.at.saturating_add(len);
        }
    }

    fn skip_start(&mut self) {
        self.skip_space();
        if self.rest().starts_with(b"---") {
            self.at = self.at.saturating_add(3);
        }
    }

    /// Takes a mark after white space, if it is there.
    fn take(&mut self, mark: &[u8]) -> bool {
        self.skip_space();
        let is_here = self.rest().starts_with(mark);
        if is_here {
            self.at = self.at.saturating_add(mark.len());
        }
        is_here
    }

    fn entry(&mut self) -> Result<SledEntry, Error> {
        if !self.take(b"{") {
            return Err(self.error("a sled is not in braces"));
        }
        let (mut id, mut address, mut function, mut kind) = (None, None, None, None);
        let (mut always_instrument, mut version, mut name) = (false, 0, None);
        loop {
            let key = self.scalar(b":")?;
            if !self.take(b":") {
                return Err(self.error("a colon is missing"));
            }
            let start = self.at;
            let value = self.scalar(b",}")?;
            let is_read = match key.as_str() {
                "id" => number(&value).and_then(|id| u32::try_from(id).ok()).map(|number| id = Some(number)),
                "address" => number(&value).map(|number| address = Some(number)),
                "function" => number(&value).map(|number| function = Some(number)),
                "kind" => SledKind::named(&value).map(|named| kind = Some(named)),
                "always-instrument" => value.parse().ok().map(|is_set| always_instrument = is_set),
                "version" => value.parse().ok().map(|number| version = number),
                "function-name" => {
                    name = (!value.is_empty()).then(|| frame(&value));
                    Some(())
                }
                _ => Some(()),
            };
            if is_read.is_none() {
                return Err(Error::Yaml("a value is not one of its key", start as u64));
            }
            if self.take(b"}") {
                break;
            }
            if !self.take(b",") {
                return Err(self.error("a comma is missing"));
            }
        }
        let (Some(id), Some(kind)) = (id, kind) else {
            return Err(self.error("a sled has no id or no kind"));
        };
        let [location, function] =
            [address, function].map(|it| it.map(|address| CodeLocation { section: None, address }));
        Ok(SledEntry {
            id,
            sled: Sled { location, function, kind, always_instrument, version, offset: 0 },
            name,
        })
    }

    /// A text up to one of some marks, or in quotes.
    fn scalar(&mut self, ends: &[u8]) -> Result<String, Error> {
        self.skip_space();
        let mut text = Vec::new();
        let quote = self.rest().first().copied().filter(|byte| matches!(byte, b'\'' | b'"'));
        if quote.is_some() {
            self.at = self.at.saturating_add(1);
        }
        loop {
            let &[byte, ref after @ ..] = self.rest() else {
                return Err(self.error("the file ends in a sled"));
            };
            let next = after.first().copied();
            let mut len = 1;
            match quote {
                None if ends.contains(&byte) || byte == b'\n' => break,
                None => text.push(byte),
                Some(b'\'') if byte == b'\'' && next == Some(b'\'') => {
                    text.push(byte);
                    len = 2;
                }
                Some(b'"') if byte == b'\\' => {
                    let escaped = next.filter(|byte| matches!(byte, b'"' | b'\\' | b'/'));
                    text.push(escaped.ok_or_else(|| self.error("an escape is not known"))?);
                    len = 2;
                }
                Some(quote) if byte == quote => {
                    self.at = self.at.saturating_add(1);
                    return Ok(String::from_utf8_lossy(&text).into_owned());
                }
                Some(_) => text.push(byte),
            }
            self.at = self.at.saturating_add(len);
        }
        Ok(String::from_utf8_lossy(text.trim_ascii_end()).into_owned())
    }
}

/// A decimal number, or a hexadecimal one after `0x`.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The name of a function, which is mangled or not.
fn frame(name: &str) -> SymbolFrame {
    let raw: Arc<str> = name.into();
    let (name, linkage_name) = match demangled(name) {
        Some(demangled) => (demangled.into(), Some(raw)),
        None => (raw, None),
    };
    SymbolFrame { name, linkage_name, path: None, line: None, column: None }
}
