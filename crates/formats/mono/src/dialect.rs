//! What the layout of events depends on: the data version, the profiler's own version, the pointer size, and where one number
//! stands for several layouts, which of them.

use super::layout::FileHeader;

/// How a log writes its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// Data version.
    pub version: u8,
    /// Major version of the profiler: tells the two layouts of data version 16 apart.
    pub major: u8,
    /// Minor version of the profiler: tells the two producers of data version 1 apart.
    pub minor: u8,
    /// Bytes of a pointer: 4 or 8.
    pub pointer_bytes: u8,
    /// Layouts that were in a repository under a number for days or weeks, until the released one.
    pub early: Early,
}

/// Layouts that lived under a data version before its released one. Nothing in a file tells them; see [`Dialect::candidates`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Early {
    /// Data version 14 until July 2017: a sample still has its type.
    pub sample_type: bool,
    /// Data version 15 in its first week: classes in the place of vtables, roots as in 14.
    pub class_pointers: bool,
    /// Data version 5 on its first day: text counters have no mark for null.
    pub bare_strings: bool,
}

impl Dialect {
    /// The released layout of what a header says.
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

    /// The released layout of a data version, as its profiler wrote it.
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

    /// Every layout this number stood for, the released one first.
    #[must_use]
    pub fn candidates(&self) -> Vec<Self> {
        let early = |early| Self { early, ..*self };
        let mut all = vec![*self];
        match self.version {
            5 => all.push(early(Early { bare_strings: true, ..Early::default() })),
            // Until September 2017 the type of a root was a byte, too; those types are below 0x80, so that reads as a number.
            14 => all.push(early(Early { sample_type: true, ..Early::default() })),
            15 => all.push(early(Early { class_pointers: true, ..Early::default() })),
            _ => {}
        }
        all
    }

    /// What of a 64-bit result is an address.
    #[must_use]
    pub fn pointer_mask(&self) -> u64 {
        if self.pointer_bytes == 4 { 0xffff_ffff } else { u64::MAX }
    }

    /// Whether every event has a time, enumerations are bytes and backtraces are of methods: since data version 13.
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

    /// Whether the log is of profiler 3: data version 16 with that major version, and 17.
    #[must_use]
    #[inline]
    pub fn third(&self) -> bool {
        self.version > 16 || (self.version == 16 && self.major >= 3)
    }

    /// Whether counters' descriptions and values have their type as a byte, units and variances too.
    #[must_use]
    #[inline]
    pub fn counter_bytes(&self) -> bool {
        matches!(self.version, 13 | 14)
    }

    /// Name for people: `17`, `14 (2017-07)`.
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
