//! The DWARF sections of an image, which all units share.

use super::abbreviations;
use super::image::{Error, ImageSpec};
use super::section::{Encoding, SectionBuffer};
use super::strings::StringSection;

/// The DWARF sections that units are appended to, and the strings all units share.
#[derive(Debug)]
pub(super) struct DwarfSections {
    pub info: SectionBuffer,
    pub line: SectionBuffer,
    pub aranges: SectionBuffer,
    pub strings: StringSection,
    pub paths: StringSection,
    /// Attributes that all units have: offsets of strings in `.debug_str` and `.debug_line_str`.
    pub title: u32,
    pub title_path: u32,
    pub producer: u32,
    pub directory: u32,
}

impl DwarfSections {
    pub fn new(spec: &ImageSpec, encoding: Encoding) -> Result<Self, Error> {
        // The title is a file name to readers, and those cannot be empty.
        let title = if spec.title.is_empty() { "[jit]" } else { &spec.title };
        let mut strings = StringSection::new(".debug_str");
        let mut paths = StringSection::new(".debug_line_str");
        Ok(Self {
            title: strings.intern(title)?,
            producer: strings.intern(concat!("perfuse ", env!("CARGO_PKG_VERSION")))?,
            title_path: paths.intern(title)?,
            directory: paths.intern(&spec.comp_dir)?,
            info: SectionBuffer::new(encoding),
            line: SectionBuffer::new(encoding),
            aranges: SectionBuffer::new(encoding),
            strings,
            paths,
        })
    }

    /// The sections, as named in the file.
    pub fn into_sections(self) -> [(&'static str, Vec<u8>); 6] {
        [
            (".debug_abbrev", abbreviations::section(self.info.encoding).bytes),
            (".debug_info", self.info.bytes),
            (".debug_line", self.line.bytes),
            (".debug_aranges", self.aranges.bytes),
            (".debug_str", self.strings.bytes),
            (".debug_line_str", self.paths.bytes),
        ]
    }
}
