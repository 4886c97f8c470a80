//! The encoding of a log: data version, profiler version, pointer size, and which layout where one data version had
//! several.

use std::fmt;

use crate::consts::NEWEST;
use crate::layout::FileHeader;

/// What the encoding of events depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogDialect {
    /// Data version.
    pub version: u8,
    /// Major version of the profiler: distinguishes the two layouts of data version 16.
    pub major: u8,
    /// Minor version of the profiler: distinguishes the two producers of data version 1.
    pub minor: u8,
    /// Size of a pointer in bytes: 4 or 8.
    pub pointer_bytes: u8,
    /// Layouts that a data version had before its release.
    pub prerelease: PrereleaseLayout,
}

/// Layouts that a data version had in Mono's repository before its release. No field of the file states them; see
/// [`LogDialect::candidates`](LogDialect::candidates).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrereleaseLayout {
    /// Data version 14 until July 2017: a sample has its type.
    pub sample_type: bool,
    /// Data version 15 in its first week: classes instead of vtables, roots as in 14.
    pub class_pointers: bool,
    /// Data version 5 on its first day: text counters have no byte for null.
    pub bare_strings: bool,
}

/// A data version or a size of pointers that no log has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownDialect {
    /// The data version.
    Version(u8),
    /// The size of a pointer.
    PointerBytes(u8),
}

impl fmt::Display for UnknownDialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => {
                write!(f, "data version {version} does not exist: the versions are 1 to {NEWEST}")
            }
            Self::PointerBytes(bytes) => write!(f, "pointers are 4 or 8 bytes, not {bytes}"),
        }
    }
}

impl LogDialect {
    /// The released layout of the version in a header.
    #[must_use]
    pub fn of(header: &FileHeader) -> Self {
        Self {
            version: header.format,
            major: header.major,
            minor: header.minor,
            pointer_bytes: header.ptrsize,
            prerelease: PrereleaseLayout::default(),
        }
    }

    /// The released layout of a data version.
    ///
    /// # Errors
    /// When no log has that version, or pointers of that size.
    pub fn existing(version: u8, pointer_bytes: u8) -> Result<Self, UnknownDialect> {
        match (version, pointer_bytes) {
            (1..=NEWEST, 4 | 8) => Ok(Self::released(version, pointer_bytes)),
            (1..=NEWEST, _) => Err(UnknownDialect::PointerBytes(pointer_bytes)),
            _ => Err(UnknownDialect::Version(version)),
        }
    }

    /// The released layout of a data version, with the profiler version that wrote it.
    #[must_use]
    pub fn released(version: u8, pointer_bytes: u8) -> Self {
        let (major, minor) = match version {
            0 | 1 => (0, 1),
            2 | 3 => (0, 2),
            4..=12 => (0, 4),
            13 => (1, 1),
            14 | 15 => (2, 0),
            _ => (3, 0),
        };
        Self { version, major, minor, pointer_bytes, prerelease: PrereleaseLayout::default() }
    }

    /// Every layout that the data version had, the released one first.
    #[must_use]
    pub fn candidates(&self) -> Vec<Self> {
        let prerelease = |prerelease| Self { prerelease, ..*self };
        let mut all = vec![*self];
        match self.version {
            5 => all.push(prerelease(PrereleaseLayout { bare_strings: true, ..PrereleaseLayout::default() })),
            // Until September 2017 the type of a root also was a byte. Those values are below 0x80 and have the same
            // encoding as a number.
            14 => all.push(prerelease(PrereleaseLayout { sample_type: true, ..PrereleaseLayout::default() })),
            15 => {
                all.push(prerelease(PrereleaseLayout { class_pointers: true, ..PrereleaseLayout::default() }))
            }
            _ => {}
        }
        all
    }

    /// The bits of a 64-bit value that are an address.
    #[must_use]
    pub fn pointer_mask(&self) -> u64 {
        if self.pointer_bytes == 4 { 0xffff_ffff } else { u64::MAX }
    }

    /// Data version 13 or newer: every event has a time, enumerations are bytes, and backtraces contain methods.
    #[must_use]
    #[inline]
    pub fn since_v13(&self) -> bool {
        self.version >= 13
    }

    /// Whether types are given as vtables: since data version 15.
    #[must_use]
    #[inline]
    pub fn has_vtables(&self) -> bool {
        self.version >= 15 && !self.prerelease.class_pointers
    }

    /// Whether the log is by profiler 3: data version 17, and 16 with that major version.
    #[must_use]
    #[inline]
    pub fn is_profiler_3(&self) -> bool {
        self.version > 16 || (self.version == 16 && self.major >= 3)
    }

    /// Whether type, unit and variance of counters are single bytes: data versions 13 and 14.
    #[must_use]
    #[inline]
    pub fn has_byte_counter_fields(&self) -> bool {
        matches!(self.version, 13 | 14)
    }

    /// Name for users: `17`, `14 (before 2017-07-08)`.
    #[must_use]
    pub fn name(&self) -> String {
        let mark = match self.prerelease {
            PrereleaseLayout { sample_type: true, .. } => " (before 2017-07-08)",
            PrereleaseLayout { class_pointers: true, .. } => " (before 2017-12-07)",
            PrereleaseLayout { bare_strings: true, .. } => " (first day)",
            _ => "",
        };
        format!("{}{mark}", self.version)
    }
}
