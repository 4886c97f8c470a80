//! The file header: mode, version and byte order.

use std::ops::RangeInclusive;

use perfuse_recording::Sniff;
use perfuse_wire::{Cursor, Endian, ErrorKind, ParseError};

use super::consts::{
    FDR_LOG, LAST_BASIC_VERSION, LAST_FDR_VERSION, NAIVE_LOG, PROFILE_MAGIC, PROFILE_VERSION,
};
use super::layout::{FileHeader, ProfileHeader};
use super::records::XRayDialect;

/// The highest version that is accepted as a log. Unknown versions are read as the latest known one.
const SNIFFED_VERSIONS: u16 = 15;
/// Rates that processors' counters tick at, in ticks a second; emulated counters tick at 1e9.
const COUNTER_HZ: RangeInclusive<u64> = 1_000_000..=100_000_000_000;
/// First byte of a NewBuffer record, which begins buffers of versions 1 and 2.
const NEW_BUFFER_BYTE: u8 = 0x01;
/// First byte of a BufferExtents record, which begins buffers of later versions.
const EXTENTS_BYTE: u8 = 0x0f;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Flight data recorder: buffers of records of variable size.
    Fdr,
    /// Basic mode: records of 32 bytes.
    Basic,
    /// Profiling mode: sums of calls by call path.
    Profile,
}

impl Mode {
    /// The modes of logs by name.
    pub const LOGS: [(&'static str, Self); 2] = [("fdr", Self::Fdr), ("basic", Self::Basic)];

    /// The latest version of logs of this mode.
    #[must_use]
    pub fn latest_version(self) -> u16 {
        if self == Self::Basic { LAST_BASIC_VERSION } else { LAST_FDR_VERSION }
    }
}

/// The header of a file.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// The format.
    pub mode: Mode,
    /// The byte order.
    pub endian: Endian,
    /// The header of a log; in a profile filled as far as the fields apply.
    pub file: FileHeader,
    /// The header of a profile.
    pub profile: Option<ProfileHeader>,
}

/// How certain it is that these first bytes are of a log or profile. A log has no magic number: its version, type and counter
/// frequency have to be plausible, and its first record as well where one of them is not.
#[must_use]
pub fn sniff(head: &[u8]) -> Sniff {
    if endian_of_profile(head).is_some() {
        return Sniff::Certain;
    }
    let Some(endian) = endian_of_log(head) else { return Sniff::No };
    let mut cursor = Cursor::new(head, 0, endian);
    let (Ok(version), Ok(kind), Ok(flags), Ok(hz)) =
        (cursor.u16("version"), cursor.u16("type"), cursor.u32("flags"), cursor.u64("cycle_frequency"))
    else {
        return Sniff::No;
    };
    let is_known = match kind {
        FDR_LOG => (1..=LAST_FDR_VERSION).contains(&version),
        NAIVE_LOG => (1..=LAST_BASIC_VERSION).contains(&version),
        _ => false,
    };
    let first_record = head.get(FileHeader::SIZE as usize..).unwrap_or_default();
    let has_first_record = match kind {
        FDR_LOG => matches!(first_record, [NEW_BUFFER_BYTE | EXTENTS_BYTE, ..]),
        NAIVE_LOG => is_basic_record(first_record, endian) && (is_known || flags >> 16 == 0),
        _ => false,
    };
    // Some runtimes wrote flags without initializing them; a value of the known bits is evidence all the same.
    let has_plain_flags = flags < 4;
    match (is_known, COUNTER_HZ.contains(&hz), has_first_record) {
        (true, true, true) => Sniff::Certain,
        (false, true, true) => Sniff::Likely,
        // A log without records, or one whose first record is damaged.
        (true, true, false) if first_record.is_empty() || kind == FDR_LOG || has_plain_flags => Sniff::Likely,
        // A damaged header: a type or version that no runtime writes.
        (false, true, false) if kind != NAIVE_LOG && has_plain_flags => Sniff::Likely,
        // A runtime that cannot find the frequency writes 0, and logs made by hand state any.
        (true, false, true) if kind == FDR_LOG && hz < *COUNTER_HZ.start() && has_plain_flags => {
            Sniff::Likely
        }
        _ => Sniff::No,
    }
}

/// Whether bytes begin with a record of Basic mode: its type, its kind and a function number that is not 0.
fn is_basic_record(bytes: &[u8], endian: Endian) -> bool {
    let mut cursor = Cursor::new(bytes, 0, endian);
    let (Ok(record_type), Ok(_cpu), Ok(kind), Ok(function)) =
        (cursor.u16("RecordType"), cursor.u8("CPU"), cursor.u8("Type"), cursor.u32("FuncId"))
    else {
        return false;
    };
    record_type <= 1 && kind <= 4 && function != 0
}

/// The byte order in which version and type are small numbers.
fn endian_of_log(head: &[u8]) -> Option<Endian> {
    let [a, b, c, d] = *head.first_chunk::<4>()?;
    let small = |version: u16, kind: u16| (1..=SNIFFED_VERSIONS).contains(&version) && kind <= 7;
    if small(u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])) {
        Some(Endian::Little)
    } else if small(u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])) {
        Some(Endian::Big)
    } else {
        None
    }
}

/// The byte order of the magic of a profile.
fn endian_of_profile(head: &[u8]) -> Option<Endian> {
    let magic = *head.first_chunk::<8>()?;
    if u64::from_le_bytes(magic) == PROFILE_MAGIC {
        Some(Endian::Little)
    } else if u64::from_be_bytes(magic) == PROFILE_MAGIC {
        Some(Endian::Big)
    } else {
        None
    }
}

impl Header {
    /// Reads the header.
    ///
    /// # Errors
    /// When the file is shorter than the header, or its type is neither FDR nor Basic.
    pub fn read(data: &[u8]) -> Result<Self, ParseError> {
        if let Some(endian) = endian_of_profile(data) {
            let profile = ProfileHeader::read(&mut Cursor::new(data, 0, endian))?;
            let file = FileHeader {
                version: 1,
                r#type: u16::MAX,
                flags: 0,
                cycle_frequency: 0,
                buffer_size: 0,
                reserved: 0,
            };
            return Ok(Self { mode: Mode::Profile, endian, file, profile: Some(profile) });
        }
        let found = data.first_chunk::<4>().map_or(0, |bytes| u32::from_be_bytes(*bytes));
        let endian = endian_of_log(data)
            .ok_or_else(|| ParseError::new(ErrorKind::BadMagic { found }, 0, "version"))?;
        let file = FileHeader::read(&mut Cursor::new(data, 0, endian))?;
        let mode = match file.r#type {
            NAIVE_LOG => Mode::Basic,
            FDR_LOG => Mode::Fdr,
            other => {
                let kind = ErrorKind::Invalid { value: other.into(), expected: "0 (Basic) or 1 (FDR)" };
                return Err(ParseError::new(kind, 2, "type"));
            }
        };
        Ok(Self { mode, endian, file, profile: None })
    }

    /// Whether a runtime ever wrote this version.
    #[must_use]
    pub fn is_known_version(&self) -> bool {
        match self.profile {
            Some(profile) => profile.version == PROFILE_VERSION,
            None => (1..=self.mode.latest_version()).contains(&self.file.version),
        }
    }

    /// How records are read. Records of an unknown version are read as the latest.
    #[must_use]
    pub fn dialect(&self) -> XRayDialect {
        let version = match (self.is_known_version(), self.mode) {
            (true, _) => self.file.version,
            (false, mode) => mode.latest_version(),
        };
        XRayDialect { version, endian: self.endian, payloads: true }
    }

    /// The defined bits of `flags`.
    #[must_use]
    pub fn tsc_flag_bits(&self) -> u32 {
        match self.endian {
            Endian::Little => 1 | (1 << 1),
            Endian::Big => (1 << 31) | (1 << 30),
        }
    }

    /// Whether the flags state that the counter ticks at a constant rate, and in idle states.
    #[must_use]
    pub fn tsc_flags(&self) -> (bool, bool) {
        let flags = self.file.flags;
        match self.endian {
            Endian::Little => (flags & 1 != 0, flags & 2 != 0),
            Endian::Big => (flags & (1 << 31) != 0, flags & (1 << 30) != 0),
        }
    }
}
