//! How large compressed data may become.

use std::error::Error;
use std::fmt;
use std::io;

/// Limit on the size of unpacked data: by its ratio to the compressed size, and in bytes.
///
/// A few kilobytes can unpack to terabytes. Recordings unpack to 3 to 60 times their size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnpackLimit {
    /// The bytes that a caller allows, of any ratio; `None` for the usual limits.
    pub allowed_bytes: Option<u64>,
}

/// Most bytes that a file or stream becomes, where the caller does not say otherwise.
const MOST_BYTES: u64 = 64 << 30;
/// Most times its compressed size.
const MOST_RATIO: u64 = 250;
/// Size that data may have at any ratio.
const ANY_RATIO_BYTES: u64 = 256 << 20;
/// The same for sections of ELF files, which are unpacked in memory, several of a file and of many files. Real ones unpack to less than 40 times their size.
const MOST_SECTION_BYTES: u64 = 4 << 30;
const ANY_RATIO_SECTION_BYTES: u64 = 1 << 20;

impl UnpackLimit {
    /// At most this number of bytes, of any ratio.
    #[must_use]
    pub fn bytes(allowed: u64) -> Self {
        Self { allowed_bytes: Some(allowed) }
    }

    /// Most bytes that a file or stream of this compressed size may become.
    #[must_use]
    pub fn of_packed(self, packed_bytes: u64) -> u64 {
        let usual = packed_bytes.saturating_mul(MOST_RATIO).clamp(ANY_RATIO_BYTES, MOST_BYTES);
        self.allowed_bytes.unwrap_or(usual)
    }

    /// Most bytes that a stream that is not compressed may have.
    #[must_use]
    pub fn of_stream(self) -> u64 {
        self.allowed_bytes.unwrap_or(MOST_BYTES)
    }

    /// Most bytes that a section of this compressed size may become.
    #[must_use]
    pub fn of_section(self, packed_bytes: u64) -> u64 {
        let usual =
            packed_bytes.saturating_mul(MOST_RATIO).clamp(ANY_RATIO_SECTION_BYTES, MOST_SECTION_BYTES);
        self.allowed_bytes.unwrap_or(u64::MAX).min(usual)
    }
}

/// The error of data that exceeds an [`UnpackLimit`], inside of an [`io::Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// The limit that was exceeded, in bytes.
    pub limit_bytes: u64,
    /// Whether the data is compressed.
    pub is_packed: bool,
}

impl TooLarge {
    /// That error in an error of input and output, if it is one.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

impl fmt::Display for TooLarge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.is_packed { "unpacks to" } else { "has" };
        write!(out, "it {what} more than {}, the limit", size_text(self.limit_bytes))
    }
}

impl Error for TooLarge {}

impl From<TooLarge> for io::Error {
    fn from(error: TooLarge) -> Self {
        Self::new(io::ErrorKind::FileTooLarge, error)
    }
}

/// A size in the largest unit of which it is a multiple.
fn size_text(bytes: u64) -> String {
    let units =
        [("GiB", 1u64 << 30), ("GB", 1_000_000_000), ("MiB", 1 << 20), ("MB", 1_000_000), ("KiB", 1 << 10)];
    match units.into_iter().find(|&(_, size)| bytes != 0 && bytes.is_multiple_of(size)) {
        Some((unit, size)) => format!("{} {unit}", bytes.checked_div(size).unwrap_or_default()),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::{TooLarge, UnpackLimit};

    #[test]
    fn a_ratio_holds_between_a_size_for_all_and_a_size_for_none() {
        let usual = UnpackLimit::default();
        assert_eq!(usual.of_packed(0), 268_435_456);
        assert_eq!(usual.of_packed(10_000_000), 2_500_000_000);
        assert_eq!(usual.of_packed(u64::MAX), 68_719_476_736);
        assert_eq!(usual.of_section(100), 1_048_576);
        assert_eq!(usual.of_section(2_000_000), 500_000_000);
        assert_eq!(usual.of_section(u64::MAX), 4_294_967_296);
    }

    #[test]
    fn what_the_caller_allows_counts_alone_but_for_sections() {
        let given = UnpackLimit::bytes(1 << 40);
        assert_eq!((given.of_packed(1), given.of_stream()), (1 << 40, 1 << 40));
        assert_eq!(given.of_section(100), 1_048_576, "sections are in memory");
        assert_eq!(UnpackLimit::bytes(1000).of_section(100), 1000);
    }

    #[test]
    fn sizes_have_the_largest_unit_that_is_exact() {
        let text = |limit_bytes| TooLarge { limit_bytes, is_packed: true }.to_string();
        assert_eq!(text(64 << 30), "it unpacks to more than 64 GiB, the limit");
        assert_eq!(text(1536), "it unpacks to more than 1536 bytes, the limit");
        assert_eq!(text(32_000_000), "it unpacks to more than 32 MB, the limit");
        assert_eq!(text(2048), "it unpacks to more than 2 KiB, the limit");
    }
}
