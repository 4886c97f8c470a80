//! Samply's extension records: four incompatible layouts (dialects) of lines and inlined calls, recognized by their
//! structure, and two records that samply's document names without a layout. See this folder's README.

pub mod convert;
pub mod debug_info2;
pub mod embedded;
pub(super) mod entries;
pub mod frames;
pub mod inline_info1;
pub mod inline_info2;
mod strings;
#[cfg(test)]
mod tests;
pub mod tier;
mod tree;

use std::borrow::Cow;

use perfuse_wire::{Diagnostics, Endian, ParseError, Value};

use super::consts::RecordTag;
use super::reader::RawRecord;
use super::rules::{FOREIGN_PAYLOAD, INLINE_DIALECT, INLINE_INVALID};

pub use entries::MAX_DEPTH;
pub use strings::StringList;
pub use tree::{DeclaredFunction, InlineCall, InlineFrame, InlineTree, SourceLine, nonzero};

/// Layout of the body of an extension record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtensionDialect {
    /// A: six lists, from samply's document.
    DebugInfo2,
    /// B: chains of frames, from samply's branch and WebKit.
    Frames,
    /// C: ranges of inlined calls.
    InlineInfo1,
    /// D: one stack for each address.
    InlineInfo2,
    /// The tier of a piece of code, in perfuse's layout.
    Tier,
    /// A source text, in perfuse's layout.
    EmbeddedFile,
    /// None of these; the body is kept as bytes.
    Unknown,
}

/// A decoded extension record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extension<'a> {
    /// Dialect A.
    DebugInfo2(debug_info2::DebugInfo2<'a>),
    /// Dialect B.
    Frames(frames::FramesRecord<'a>),
    /// Dialect C.
    InlineInfo1(inline_info1::InlineInfo1<'a>),
    /// Dialect D.
    InlineInfo2(inline_info2::InlineInfo2<'a>),
    /// The tier of a piece of code.
    Tier(tier::Tier<'a>),
    /// A source text.
    EmbeddedFile(embedded::EmbeddedFile<'a>),
}

/// The code that a record describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordSubject {
    /// The next JIT_CODE_LOAD.
    Next,
    /// The code that starts at this address.
    Code(u64),
    /// The code that contains this address.
    Within(u64),
}

impl<'a> Extension<'a> {
    /// The dialect.
    #[must_use]
    pub fn dialect(&self) -> ExtensionDialect {
        match self {
            Self::DebugInfo2(_) => ExtensionDialect::DebugInfo2,
            Self::Frames(_) => ExtensionDialect::Frames,
            Self::InlineInfo1(_) => ExtensionDialect::InlineInfo1,
            Self::InlineInfo2(_) => ExtensionDialect::InlineInfo2,
            Self::Tier(_) => ExtensionDialect::Tier,
            Self::EmbeddedFile(_) => ExtensionDialect::EmbeddedFile,
        }
    }

    /// The code whose lines or inlined calls the record contains; `None` for a tier or a source text.
    #[must_use]
    pub fn subject(&self) -> Option<RecordSubject> {
        match self {
            Self::DebugInfo2(_) => Some(RecordSubject::Next),
            Self::Frames(info) => Some(RecordSubject::Code(info.code_addr)),
            Self::InlineInfo1(info) => Some(RecordSubject::Code(info.code_addr)),
            Self::InlineInfo2(info) => Some(RecordSubject::Within(info.code_addr)),
            Self::Tier(_) | Self::EmbeddedFile(_) => None,
        }
    }

    /// Names and values of the fields, as `perfuse records` prints them.
    #[must_use]
    pub(super) fn fields(&self) -> Vec<(&'static str, Value<'a>)> {
        let (mut fields, padding) = match self {
            Self::DebugInfo2(info) => (info.fields(), info.padding),
            Self::Frames(info) => (info.fields(), info.padding),
            Self::InlineInfo1(info) => (info.fields(), info.padding),
            Self::InlineInfo2(info) => (info.fields(), info.padding),
            Self::Tier(info) => (info.fields(), info.padding),
            Self::EmbeddedFile(info) => (info.fields(), info.padding),
        };
        fields.extend(entries::padding_field(padding));
        fields
    }

    /// Calls `visit` with every inlined function.
    pub fn visit_inlined_functions(&self, mut visit: impl FnMut(&DeclaredFunction<'_>)) {
        match self {
            Self::DebugInfo2(info) => {
                info.inline_calls.iter().for_each(|call| visit(&info.declaration(call.function_index)));
            }
            Self::Frames(info) => {
                let inlined = info.source_positions.iter().filter(|position| position.caller_index != -1);
                inlined.for_each(|position| visit(&info.frame(position).function));
            }
            Self::InlineInfo1(info) => {
                info.entries.iter().for_each(|entry| {
                    visit(&DeclaredFunction { name: entry.func_name, ..DeclaredFunction::default() });
                });
            }
            Self::InlineInfo2(info) => info.stack().skip(1).for_each(|frame| visit(&frame.function)),
            Self::Tier(_) | Self::EmbeddedFile(_) => {}
        }
    }

    /// Encodes the body. In the original byte order the result equals the decoded bytes.
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
/// Some ids are used for more than one layout. For 827346259 and 827346260 the order is: perfuse's tier (by its magic), the
/// dialect to which the id belongs, the other dialect. For 5: dialect C, whose addresses and depths must agree, then D.
///
/// # Errors
/// When no layout fits: the error of the layout to which the id belongs. [`ErrorKind::Invalid`](perfuse_wire::ErrorKind) for
/// a tag that is not an extension's.
pub fn decode(tag: RecordTag, body: &[u8], offset: u64, endian: Endian) -> Result<Extension<'_>, ParseError> {
    let lists = || debug_info2::decode(body, offset, endian).map(Extension::DebugInfo2);
    let frames = || frames::decode(body, offset, endian).map(Extension::Frames);
    match tag {
        RecordTag::JIT_CODE_INLINE_INFO => {
            let calls = inline_info1::decode(body, offset, endian).map(Extension::InlineInfo1);
            calls.or_else(|error| {
                inline_info2::decode(body, offset, endian).map(Extension::InlineInfo2).map_err(|_| error)
            })
        }
        RecordTag::SAMPLY_JIT_CODE_DEBUG_INFO2 => lists().or_else(|error| frames().map_err(|_| error)),
        RecordTag::SAMPLY_JIT_TIER => {
            let tier = tier::decode(body, offset, endian).map(Extension::Tier);
            tier.or_else(|_| frames().or_else(|error| lists().map_err(|_| error)))
        }
        RecordTag::SAMPLY_EMBEDDED_SOURCE_FILE => {
            embedded::decode(body, offset, endian).map(Extension::EmbeddedFile)
        }
        other => Err(entries::invalid(other.0.into(), "the id of an extension", offset, "id")),
    }
}

/// Decodes a raw record as an extension; `None` for other kinds and for bodies that no dialect fits.
#[must_use]
pub fn extension<'a>(record: &RawRecord<'a>) -> Option<Extension<'a>> {
    decode(record.tag(), record.body, record.body_offset(), record.endian).ok()
}

/// The kind under which a record is printed and counted: samply's branch writes debug information under the id of
/// SAMPLY_JIT_TIER.
#[must_use]
pub fn effective_tag(record: &RawRecord<'_>) -> RecordTag {
    match record.tag() {
        RecordTag::SAMPLY_JIT_TIER
            if extension(record)
                .map_or_else(|| is_damaged_frames(record), |found| found.subject().is_some()) =>
        {
            RecordTag::SAMPLY_JIT_CODE_DEBUG_INFO2
        }
        tag => tag,
    }
}

/// Whether a record with the id of SAMPLY_JIT_TIER that no layout fits is one of dialect B: its counts are not larger than
/// the record.
fn is_damaged_frames(record: &RawRecord<'_>) -> bool {
    record.tag() == RecordTag::SAMPLY_JIT_TIER
        && !has_magic(record, tier::TIER_MAGIC)
        && frames::has_plausible_counts(record.body, record.endian)
}

/// Whether the body begins with the magic number of a layout of perfuse.
fn has_magic(record: &RawRecord<'_>, magic: u32) -> bool {
    record.cursor().u32("magic").is_ok_and(|found| found == magic)
}

/// The dialect of a body.
#[must_use]
pub fn dialect(tag: RecordTag, body: &[u8], endian: Endian) -> ExtensionDialect {
    decode(tag, body, 0, endian).map_or(ExtensionDialect::Unknown, |extension| extension.dialect())
}

/// Reports which dialect an extension record has, or that it has none.
pub fn check(record: &RawRecord<'_>, sink: &mut Diagnostics) {
    let mut report = |rule, field, message: Cow<'static, str>| {
        sink.push(rule, record.offset, Some(record.index), field, || message);
    };
    match decode(record.tag(), record.body, record.body_offset(), record.endian) {
        Ok(extension) => {
            if let Some(name) = dialect_name(extension.dialect()) {
                report(&INLINE_DIALECT, "id", format!("id {} in {name}", record.prefix.id).into());
            }
        }
        Err(_) if is_foreign(record) => {
            report(
                &FOREIGN_PAYLOAD,
                "id",
                format!("{} of {} bytes", record.tag(), record.prefix.total_size).into(),
            );
        }
        Err(error) => report(&INLINE_INVALID, error.field, error.to_string().into()),
    }
}

/// Whether a payload of a kind without a published layout lacks the magic of perfuse's layout.
fn is_foreign(record: &RawRecord<'_>) -> bool {
    match record.tag() {
        RecordTag::SAMPLY_JIT_TIER => !has_magic(record, tier::TIER_MAGIC) && !is_damaged_frames(record),
        RecordTag::SAMPLY_EMBEDDED_SOURCE_FILE => !has_magic(record, embedded::EMBEDDED_MAGIC),
        _ => false,
    }
}

/// Description of a dialect for messages; `None` for perfuse's own layouts.
fn dialect_name(dialect: ExtensionDialect) -> Option<&'static str> {
    Some(match dialect {
        ExtensionDialect::DebugInfo2 => "the layout of samply's document (lists of calls and lines)",
        ExtensionDialect::Frames => "the layout of samply's branch and WebKit (chains of source positions)",
        ExtensionDialect::InlineInfo1 => "the first abandoned layout (ranges of calls)",
        ExtensionDialect::InlineInfo2 => "the second abandoned layout (one stack an address)",
        ExtensionDialect::Tier | ExtensionDialect::EmbeddedFile | ExtensionDialect::Unknown => return None,
    })
}
