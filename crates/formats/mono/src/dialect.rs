//! The encoding of a log: data version, profiler version, pointer size, and which layout where one data version had
//! several.

use super::layout::FileHeader;

/// What the encoding of events depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// Data version.
    pub version: u8,
    /// Major version of the profiler: distinguishes the two layouts of data version 16.
    pub major: u8,
    /// Minor version of the profiler: distinguishes the two producers of data version 1.
    pub minor: u8,
    /// Size of a pointer in bytes: 4 or 8.
    pub pointer_bytes: u8,
    /// Layouts that a data version had before its release.
    pub early: Early,
}

/// Layouts that a data version had in Mono's repository before its release. No field of the file states them; see
/// [`LogDialect::candidates`](Dialect::candidates).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Early {
    /// Data version 14 until July 2017: a sample has its type.
    pub sample_type: bool,
    /// Data version 15 in its first week: classes instead of vtables, roots as in 14.
    pub class_pointers: bool,
    /// Data version 5 on its first day: text counters have no byte for null.
    pub bare_strings: bool,
}

impl Dialect {
    /// The released layout of the version in a header.
    #[must_use]
    pub fn of(header: &FileHeader) -> Self {
        Self {
            version: header.format,
            major: header.major,
            minor: header.minor,
            pointer_bytes: header.ptrsize,
            early: Early::default(),
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
        Self { version, major, minor, pointer_bytes, early: Early::default() }
    }

    /// Every layout that the data version had, the released one first.
    #[must_use]
    pub fn candidates(&self) -> Vec<Self> {
        let early = |early| Self { early, ..*self };
        let mut all = vec![*self];
        match self.version {
            5 => all.push(early(Early { bare_strings: true, ..Early::default() })),
            // Until September 2017 the type of a root also was a byte. Those values are below 0x80 and have the same
            // encoding as a number.
            14 => all.push(early(Early { sample_type: true, ..Early::default() })),
            15 => all.push(early(Early { class_pointers: true, ..Early::default() })),
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
    pub fn modern(&self) -> bool {
        self.version >= 13
    }

    /// Whether types are given as vtables: since data version 15.
    #[must_use]
    #[inline]
    pub fn vtables(&self) -> bool {
        self.version >= 15 && !self.early.class_pointers
    }

    /// Whether the log is by profiler 3: data version 17, and 16 with that major version.
    #[must_use]
    #[inline]
    pub fn third(&self) -> bool {
        self.version > 16 || (self.version == 16 && self.major >= 3)
    }

    /// Whether type, unit and variance of counters are single bytes: data versions 13 and 14.
    #[must_use]
    #[inline]
    pub fn counter_bytes(&self) -> bool {
        matches!(self.version, 13 | 14)
    }

    /// Name for users: `17`, `14 (before 2017-07-08)`.
    #[must_use]
    pub fn name(&self) -> String {
        let mark = match self.early {
            Early { sample_type: true, .. } => " (before 2017-07-08)",
            Early { class_pointers: true, .. } => " (before 2017-12-07)",
            Early { bare_strings: true, .. } => " (first day)",
            _ => "",
        };
        format!("{}{mark}", self.version)
    }
}
