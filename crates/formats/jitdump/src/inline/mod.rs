//! Samply's extension records: four incompatible ways to tell lines and inlined calls, told apart by their structure, and
//! the two records the gist names without a layout. See this folder's README.

mod check;
pub mod convert;
pub mod debug_info2;
mod describe;
pub mod embedded;
mod entries;
pub mod frames;
mod ingest;
pub mod inline_info1;
pub mod inline_info2;
mod strings;
#[cfg(test)]
mod tests;
pub mod tier;
mod tree;

use perfuse_wire::{Endian, ParseError};

use super::consts::RecordTag;
use super::records::RawRecord;

pub use check::check;
pub use describe::fields;
pub use entries::MAX_DEPTH;
pub(super) use ingest::known;
pub use ingest::{inlined, table, with_tree};
pub use strings::StringTable;
pub use tree::{Call, Declaration, Frame, InlineTree, Line};

/// What an extension record's body turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// A: the gist's six lists.
    DebugInfo2,
    /// B: samply's branch and WebKit, chains of frames.
    Frames,
    /// C: ranges of inlined calls.
    InlineInfo1,
    /// D: one stack an address.
    InlineInfo2,
    /// The tier of a piece of code, in perfuse's layout.
    Tier,
    /// A source text, in perfuse's layout.
    EmbeddedFile,
    /// Anything else; travels whole.
    Unknown,
}

/// A decoded extension record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extension<'a> {
    /// Dialect A.
    DebugInfo2(debug_info2::DebugInfo2<'a>),
    /// Dialect B.
    Frames(frames::Frames<'a>),
    /// Dialect C.
    InlineInfo1(inline_info1::InlineInfo1<'a>),
    /// Dialect D.
    InlineInfo2(inline_info2::InlineInfo2<'a>),
    /// The tier of a piece of code.
    Tier(tier::Tier<'a>),
    /// A source text.
    EmbeddedFile(embedded::EmbeddedFile<'a>),
}

/// Which code a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The next JIT_CODE_LOAD.
    Next,
    /// The code that starts at this address.
    Code(u64),
    /// The code this address lies in.
    Within(u64),
}

impl Extension<'_> {
    /// Which dialect it is.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        match self {
            Self::DebugInfo2(_) => Dialect::DebugInfo2,
            Self::Frames(_) => Dialect::Frames,
            Self::InlineInfo1(_) => Dialect::InlineInfo1,
            Self::InlineInfo2(_) => Dialect::InlineInfo2,
            Self::Tier(_) => Dialect::Tier,
            Self::EmbeddedFile(_) => Dialect::EmbeddedFile,
        }
    }

    /// The code whose lines or inlined calls it tells; `None` for a tier or a source text.
    #[must_use]
    pub fn subject(&self) -> Option<Subject> {
        match self {
            Self::DebugInfo2(_) => Some(Subject::Next),
            Self::Frames(info) => Some(Subject::Code(info.code_addr)),
            Self::InlineInfo1(info) => Some(Subject::Code(info.code_addr)),
            Self::InlineInfo2(info) => Some(Subject::Within(info.code_addr)),
            Self::Tier(_) | Self::EmbeddedFile(_) => None,
        }
    }

    /// Encodes the body: byte for byte what was decoded.
    #[must_use]
    pub fn encode(&self, endian: Endian) -> Vec<u8> {
        match self {
            Self::DebugInfo2(info) => debug_info2::encode(info, endian),
            Self::Frames(info) => frames::encode(info, endian),
            Self::InlineInfo1(info) => inline_info1::encode(info, endian),
            Self::InlineInfo2(info) => inline_info2::encode(info, endian),
            Self::Tier(info) => tier::encode(info, endian),
            Self::EmbeddedFile(info) => embedded::encode(info, endian),
        }
    }
}

/// Decodes the body of an extension record as the one dialect whose parts add up to its size.
///
/// Two ids carry more than one layout, so structure decides: on 827346259 and 827346260 perfuse's tier (by its magic), then
/// the dialect the id belongs to, then the other; on 5 the calls, whose addresses and depths must agree, then the stack.
///
/// # Errors
/// When none fits: the error of the layout the id belongs to. [`ErrorKind::Invalid`](perfuse_wire::ErrorKind) for a tag
/// that is no extension's.
pub fn decode(tag: RecordTag, body: &[u8], offset: u64, endian: Endian) -> Result<Extension<'_>, ParseError> {
    let gist = || debug_info2::decode(body, offset, endian).map(Extension::DebugInfo2);
    let frames = || frames::decode(body, offset, endian).map(Extension::Frames);
    match tag {
        RecordTag::JIT_CODE_INLINE_INFO => {
            let calls = inline_info1::decode(body, offset, endian).map(Extension::InlineInfo1);
            calls.or_else(|error| {
                inline_info2::decode(body, offset, endian).map(Extension::InlineInfo2).map_err(|_| error)
            })
        }
        RecordTag::SAMPLY_JIT_CODE_DEBUG_INFO2 => gist().or_else(|error| frames().map_err(|_| error)),
        RecordTag::SAMPLY_JIT_TIER => {
            let tier = tier::decode(body, offset, endian).map(Extension::Tier);
            tier.or_else(|_| frames().or_else(|error| gist().map_err(|_| error)))
        }
        RecordTag::SAMPLY_EMBEDDED_SOURCE_FILE => {
            embedded::decode(body, offset, endian).map(Extension::EmbeddedFile)
        }
        other => Err(entries::invalid(other.0.into(), "the id of an extension", offset, "id")),
    }
}

/// Decodes a raw record as an extension; `None` for other kinds and for payloads no dialect fits.
#[must_use]
pub fn extension<'a>(record: &RawRecord<'a>) -> Option<Extension<'a>> {
    decode(record.tag(), record.body, record.body_offset(), record.endian).ok()
}

/// The kind a record is shown and counted as: what samply's branch writes under the id of SAMPLY_JIT_TIER is debug
/// information.
#[must_use]
pub fn shown_tag(record: &RawRecord<'_>) -> RecordTag {
    match record.tag() {
        RecordTag::SAMPLY_JIT_TIER if extension(record).is_some_and(|found| found.subject().is_some()) => {
            RecordTag::SAMPLY_JIT_CODE_DEBUG_INFO2
        }
        tag => tag,
    }
}

/// Which dialect a body is of.
#[must_use]
pub fn dialect(tag: RecordTag, body: &[u8], endian: Endian) -> Dialect {
    decode(tag, body, 0, endian).map_or(Dialect::Unknown, |extension| extension.dialect())
}
