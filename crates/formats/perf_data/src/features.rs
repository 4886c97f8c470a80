//! Feature sections after the records: facts about the machine, the command and the files.

use linux_perf_data::{DsoKey, Feature};
use linux_perf_event_reader::CpuMode;
use perfuse_wire::{Cursor, Endian, ParseError};
use rustc_hash::FxHashMap;

use super::consts::{machine_name, misc};
use super::layout::{BuildIdEvent, ClockData, EventHeader, Section};
use perfuse_recording::Source;

/// Number of bytes of a build id with its length and padding, in an entry of the table.
const BUILD_ID_FIELD_BYTES: u64 = 24;
/// Largest size of a build id in bytes.
const BUILD_ID_BYTES: usize = 20;

/// Name of the first entry, the kernel, where entries have no process, as perf of Linux 2.6.33 wrote them: as perf finds it.
const KERNEL_WITHOUT_PID: &[u8] = b"nel.kallsyms]";

/// The ELF machine of the recorded programs, in files of perf 7.
const E_MACHINE: Feature = Feature(33);

/// The feature sections of a file.
#[derive(Clone, Debug, Default)]
pub struct Features {
    sections: Vec<(Feature, Section)>,
}

impl Features {
    /// Adds a section; it replaces an earlier one of the same feature.
    pub fn insert(&mut self, feature: Feature, section: Section) {
        self.sections.retain(|(other, _)| *other != feature);
        self.sections.push((feature, section));
    }

    /// All sections.
    pub fn iter(&self) -> impl Iterator<Item = (Feature, Section)> {
        self.sections.iter().copied()
    }

    /// Architecture of the recorded machine, as in the `sources` table, and its pointer size in bytes.
    #[must_use]
    pub fn arch(&self, source: &Source, endian: Endian) -> Option<(&'static str, u8)> {
        let Some(name) = self.string(Feature::ARCH, source, endian) else {
            let machine = self.cursor(E_MACHINE, source, endian)?.u32("e_machine").ok()?;
            return machine_name(machine);
        };
        Some(match name.as_str() {
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

    /// Whether the file has a section of a feature.
    #[must_use]
    pub fn has(&self, feature: Feature) -> bool {
        self.find(feature).is_some()
    }

    fn find(&self, feature: Feature) -> Option<Section> {
        self.sections.iter().find(|(other, _)| *other == feature).map(|(_, section)| *section)
    }

    /// A cursor over the bytes of a section that are in the file.
    #[must_use]
    pub fn cursor<'a>(&self, feature: Feature, source: &'a Source, endian: Endian) -> Option<Cursor<'a>> {
        let section = self.find(feature)?;
        Some(Cursor::new(section_bytes(source, section), section.offset, endian))
    }

    /// The content of a section that is one string.
    #[must_use]
    pub fn string(&self, feature: Feature, source: &Source, endian: Endian) -> Option<String> {
        header_string(&mut self.cursor(feature, source, endian)?).ok()
    }

    /// Arguments of perf's command line.
    #[must_use]
    pub fn command_line(&self, source: &Source, endian: Endian) -> Option<Vec<String>> {
        let mut cursor = self.cursor(Feature::CMDLINE, source, endian)?;
        let count = cursor.u32("nr").ok()?;
        // A count larger than the section fails at its end: every argument has at least four bytes.
        (0..count).map(|_| header_string(&mut cursor).ok()).collect()
    }

    /// Simultaneous times of the recording's clock and of the wall clock.
    #[must_use]
    pub fn clock_data(&self, source: &Source, endian: Endian) -> Option<ClockData> {
        ClockData::read(&mut self.cursor(Feature::CLOCK_DATA, source, endian)?).ok()
    }
}

/// The bytes of a section that are in the file.
#[must_use]
pub fn section_bytes(source: &Source, section: Section) -> &[u8] {
    let start = usize::try_from(section.offset).unwrap_or(usize::MAX).min(source.len());
    let size = usize::try_from(section.size).unwrap_or(usize::MAX);
    source.get(start..start.saturating_add(size).min(source.len())).unwrap_or_default()
}

/// Reads a `perf_header_string`: a length that includes padding, then text up to a NUL.
///
/// # Errors
/// When the section ends inside it.
pub fn header_string(cursor: &mut Cursor<'_>) -> Result<String, ParseError> {
    let len = cursor.u32("len")?;
    Ok(text(cursor.bytes(u64::from(len), "string")?).into_owned())
}

/// Text up to a NUL or the end; bytes that are not UTF-8 are replaced.
#[must_use]
pub fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    let len = memchr::memchr(0, bytes).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..len).unwrap_or_default())
}

/// An entry of the build-id table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildIdEntry {
    /// `misc` of its record, with the processor mode of the file's code.
    pub misc: u16,
    /// Path in mappings, or perf's name for it.
    pub path: Vec<u8>,
    /// The build id.
    pub id: Vec<u8>,
}

impl BuildIdEntry {
    /// Reads the body of a HEADER_BUILD_ID record.
    ///
    /// # Errors
    /// When the body ends inside a field.
    pub fn read(cursor: &mut Cursor<'_>, flags: u16) -> Result<Self, ParseError> {
        BuildIdEvent::read(cursor)?;
        Self::read_without_pid(cursor, flags)
    }

    fn read_without_pid(cursor: &mut Cursor<'_>, flags: u16) -> Result<Self, ParseError> {
        let field = cursor.bytes(BUILD_ID_FIELD_BYTES, "build_id")?;
        let stored = field.get(..BUILD_ID_BYTES).unwrap_or_default();
        let len = match field.get(BUILD_ID_BYTES) {
            Some(&size) if flags & misc::BUILD_ID_SIZE != 0 => usize::from(size).min(BUILD_ID_BYTES),
            // perf before Linux 5.12 and simpleperf do not write the length: ids end before groups of four zeros.
            _ => {
                let used =
                    stored.iter().rposition(|&byte| byte != 0).map_or(0, |last| last.saturating_add(1));
                used.next_multiple_of(4)
            }
        };
        let name = cursor.rest();
        let path = name.get(..memchr::memchr(0, name).unwrap_or(name.len())).unwrap_or_default().to_vec();
        Ok(Self { misc: flags, path, id: stored.get(..len).unwrap_or_default().to_vec() })
    }
}

/// The entries of a HEADER_BUILD_ID section, up to the first that cannot be read.
pub fn build_id_table(cursor: Cursor<'_>) -> impl Iterator<Item = BuildIdEntry> {
    let is_before_pids =
        entries(cursor, BuildIdEntry::read).next().is_some_and(|first| first.path == KERNEL_WITHOUT_PID);
    entries(cursor, if is_before_pids { BuildIdEntry::read_without_pid } else { BuildIdEntry::read })
}

fn entries<'a>(
    mut cursor: Cursor<'a>,
    read: impl Fn(&mut Cursor<'_>, u16) -> Result<BuildIdEntry, ParseError> + 'a,
) -> impl Iterator<Item = BuildIdEntry> + 'a {
    std::iter::from_fn(move || {
        let header = EventHeader::read(&mut cursor).ok()?;
        let body = u64::from(header.size).checked_sub(EventHeader::SIZE)?;
        read(&mut cursor.split(body, "build_id_event").ok()?, header.misc).ok()
    })
}

/// Build ids by file. A file is found by any of the names that mappings use for it.
#[derive(Debug, Default)]
pub struct BuildIds(FxHashMap<DsoKey, Vec<u8>>);

impl BuildIds {
    /// Adds an entry.
    pub fn insert(&mut self, entry: BuildIdEntry) {
        if let Some(key) = DsoKey::detect(&entry.path, CpuMode::from_misc(entry.misc)) {
            self.0.insert(key, entry.id);
        }
    }

    /// The build id of a mapped file.
    #[must_use]
    pub fn get(&self, path: &[u8], flags: u16) -> Option<&[u8]> {
        self.0.get(&DsoKey::detect(path, CpuMode::from_misc(flags))?).map(Vec::as_slice)
    }
}
