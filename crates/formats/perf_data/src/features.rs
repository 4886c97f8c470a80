//! Feature sections: what perf tells of the machine, the command and the files, after the records.

use linux_perf_data::{DsoKey, Feature};
use linux_perf_event_reader::CpuMode;
use perfuse_wire::{Cursor, Endian, ParseError};
use rustc_hash::FxHashMap;

use super::consts::misc;
use super::layout::{BuildIdEvent, ClockData, EventHeader, Section};
use perfuse_recording::Source;

/// Bytes of a build id, its length and its padding, in an entry of the table.
const BUILD_ID_FIELD_BYTES: u64 = 24;
/// Longest build id.
const BUILD_ID_BYTES: usize = 20;

/// Which sections there are, and where in the file.
#[derive(Clone, Debug, Default)]
pub struct Features {
    sections: Vec<(Feature, Section)>,
}

impl Features {
    /// Notes a section; a later one of the same feature replaces it.
    pub fn insert(&mut self, feature: Feature, section: Section) {
        self.sections.retain(|(known, _)| *known != feature);
        self.sections.push((feature, section));
    }

    /// All, by number.
    pub fn iter(&self) -> impl Iterator<Item = (Feature, Section)> {
        self.sections.iter().copied()
    }

    /// What the recorded machine is, as the `sources` table spells it.
    #[must_use]
    pub fn arch(&self, source: &Source, endian: Endian) -> Option<(&'static str, u8)> {
        Some(match self.string(Feature::ARCH, source, endian)?.as_str() {
            "x86_64" => ("x86_64", 8),
            "i386" | "i486" | "i586" | "i686" => ("i386", 4),
            "aarch64" | "aarch64_be" | "arm64" => ("aarch64", 8),
            "riscv64" => ("riscv64", 8),
            "riscv32" => ("riscv32", 4),
            "ppc64" | "ppc64le" => ("ppc64", 8),
            "ppc" => ("ppc", 4),
            "s390x" => ("s390x", 8),
            "loongarch64" => ("loongarch64", 8),
            "mips" => ("mips", 4),
            "mips64" => ("mips64", 8),
            arm if arm.starts_with("arm") => ("arm", 4),
            _ => return None,
        })
    }

    /// Whether the file has this one.
    #[must_use]
    pub fn has(&self, feature: Feature) -> bool {
        self.place(feature).is_some()
    }

    fn place(&self, feature: Feature) -> Option<Section> {
        self.sections.iter().find(|(known, _)| *known == feature).map(|(_, section)| *section)
    }

    /// A section's bytes, as far as they are in the file.
    #[must_use]
    pub fn cursor<'a>(&self, feature: Feature, source: &'a Source, endian: Endian) -> Option<Cursor<'a>> {
        let section = self.place(feature)?;
        Some(Cursor::new(bytes_of(source, section), section.offset, endian))
    }

    /// A section that is one string.
    #[must_use]
    pub fn string(&self, feature: Feature, source: &Source, endian: Endian) -> Option<String> {
        header_string(&mut self.cursor(feature, source, endian)?).ok()
    }

    /// The recorded command, argument by argument.
    #[must_use]
    pub fn command_line(&self, source: &Source, endian: Endian) -> Option<Vec<String>> {
        let mut cursor = self.cursor(Feature::CMDLINE, source, endian)?;
        let count = cursor.u32("nr").ok()?;
        // A hostile count ends with the section: every argument takes four bytes or fails.
        (0..count).map(|_| header_string(&mut cursor).ok()).collect()
    }

    /// Reference times of the recording's clock and the wall clock.
    #[must_use]
    pub fn clock_data(&self, source: &Source, endian: Endian) -> Option<ClockData> {
        ClockData::read(&mut self.cursor(Feature::CLOCK_DATA, source, endian)?).ok()
    }
}

/// The bytes of a section that are in the file.
#[must_use]
pub fn bytes_of(source: &Source, section: Section) -> &[u8] {
    let start = usize::try_from(section.offset).unwrap_or(usize::MAX).min(source.len());
    let size = usize::try_from(section.size).unwrap_or(usize::MAX);
    source.get(start..start.saturating_add(size).min(source.len())).unwrap_or_default()
}

/// `perf_header_string`: a length that includes padding, then text with a NUL in it.
///
/// # Errors
/// Where the section ends inside it.
pub fn header_string(cursor: &mut Cursor<'_>) -> Result<String, ParseError> {
    let len = cursor.u32("len")?;
    Ok(text(cursor.bytes(u64::from(len), "string")?).into_owned())
}

/// Text up to a NUL or the end, lossy where it is not UTF-8.
#[must_use]
pub fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    let len = memchr::memchr(0, bytes).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..len).unwrap_or_default())
}

/// An entry of the build-id table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildId {
    /// `misc` of its record: where the file's code runs.
    pub misc: u16,
    /// Path, as mappings or perf name it.
    pub path: Vec<u8>,
    /// The id.
    pub id: Vec<u8>,
}

impl BuildId {
    /// Reads the body of a HEADER_BUILD_ID record.
    ///
    /// # Errors
    /// Where the body ends inside a field.
    pub fn read(cursor: &mut Cursor<'_>, flags: u16) -> Result<Self, ParseError> {
        BuildIdEvent::read(cursor)?;
        let field = cursor.bytes(BUILD_ID_FIELD_BYTES, "build_id")?;
        let stored = field.get(..BUILD_ID_BYTES).unwrap_or_default();
        let len = match field.get(BUILD_ID_BYTES) {
            Some(&size) if flags & misc::BUILD_ID_SIZE != 0 => usize::from(size).min(BUILD_ID_BYTES),
            // Writers before Linux 5.12 and simpleperf have no length: ids end where groups of four zeros begin.
            _ => {
                let used = stored.iter().rposition(|&byte| byte != 0).map_or(0, |at| at.saturating_add(1));
                used.next_multiple_of(4)
            }
        };
        let name = cursor.rest();
        let path = name.get(..memchr::memchr(0, name).unwrap_or(name.len())).unwrap_or_default().to_vec();
        Ok(Self { misc: flags, path, id: stored.get(..len).unwrap_or_default().to_vec() })
    }
}

/// The entries of a HEADER_BUILD_ID section, up to the first that cannot be read.
pub fn build_id_table(mut cursor: Cursor<'_>) -> impl Iterator<Item = BuildId> {
    std::iter::from_fn(move || {
        let header = EventHeader::read(&mut cursor).ok()?;
        let body = u64::from(header.size).checked_sub(EventHeader::SIZE)?;
        BuildId::read(&mut cursor.split(body, "build_id_event").ok()?, header.misc).ok()
    })
}

/// Build ids by file, whatever of its names a mapping uses.
#[derive(Debug, Default)]
pub struct BuildIds(FxHashMap<DsoKey, Vec<u8>>);

impl BuildIds {
    /// Notes one.
    pub fn insert(&mut self, entry: BuildId) {
        if let Some(key) = DsoKey::detect(&entry.path, CpuMode::from_misc(entry.misc)) {
            self.0.insert(key, entry.id);
        }
    }

    /// The id of a mapped file.
    #[must_use]
    pub fn get(&self, path: &[u8], flags: u16) -> Option<&[u8]> {
        self.0.get(&DsoKey::detect(path, CpuMode::from_misc(flags))?).map(Vec::as_slice)
    }
}
