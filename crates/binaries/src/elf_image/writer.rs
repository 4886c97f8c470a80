//! Writes an image, one piece of code after the other.

use std::io::{BufWriter, Seek, SeekFrom, Write};

use object::elf;

use super::build_id::BuildIdHasher;
use super::container::{self, Header, LEN_NOTE, SectionIndex, SymbolSection};
use super::debug_info::DwarfSections;
use super::image::{CodeObject, CodePlacement, Error, ImageSpec, ImageSummary};
use super::regions::{AddressRegion, TEXT_START};
use super::section::Encoding;
use super::unit::CompilationUnit;

/// Writes one image: machine code as it is added, debug information and symbols when the image is finished.
#[derive(Debug)]
pub struct Writer<W: Write + Seek> {
    out: BufWriter<W>,
    spec: ImageSpec,
    encoding: Encoding,
    hasher: BuildIdHasher,
    text: AddressRegion,
    absent: AddressRegion,
    debug: DwarfSections,
    /// Units cover one range each, so code with bytes and code without have their own.
    text_unit: CompilationUnit,
    absent_unit: CompilationUnit,
    symbols: SymbolSection,
    summary: ImageSummary,
}

impl<W: Write + Seek> Writer<W> {
    /// Starts an image in an empty file.
    ///
    /// # Errors
    /// [`Error::Io`] where the file cannot be written.
    pub fn new(out: W, spec: ImageSpec) -> Result<Self, Error> {
        let encoding = Encoding { big_endian: spec.big_endian, is_64: spec.is_64 };
        let debug = DwarfSections::new(&spec, encoding)?;
        let mut out = BufWriter::with_capacity(1 << 18, out);
        out.write_all(&[0; TEXT_START as usize])?;
        Ok(Self {
            out,
            spec,
            encoding,
            hasher: BuildIdHasher::new(),
            text: AddressRegion::text(encoding),
            absent: AddressRegion::absent(encoding),
            text_unit: CompilationUnit::new(encoding, &debug),
            absent_unit: CompilationUnit::new(encoding, &debug),
            debug,
            symbols: SymbolSection::new(encoding),
            summary: ImageSummary::default(),
        })
    }

    /// Adds a piece of code and returns its place in the image.
    ///
    /// Its bytes are written where at least `size` are given. Otherwise the code has an address, a name and lines, but no bytes.
    ///
    /// # Errors
    /// [`Error::Io`] where the file cannot be written, [`Error::TooLarge`] where the image is full.
    pub fn add(&mut self, code: &CodeObject<'_>) -> Result<CodePlacement, Error> {
        let bytes = code.code.and_then(|bytes| bytes.get(..usize::try_from(code.size).ok()?));
        let (start, size) = match bytes {
            Some(bytes) => self.write_code(bytes)?,
            None => self.absent.place(code.size).ok_or(Error::TooLarge(ABSENT_TEXT))?,
        };
        let (section, unit) = match bytes {
            Some(_) => (SectionIndex::Text, &mut self.text_unit),
            None => (SectionIndex::AbsentText, &mut self.absent_unit),
        };
        self.symbols.add(code.linkage_name, start, size, section)?;
        self.summary.num_functions = self.summary.num_functions.saturating_add(1);
        if size > 0 {
            let counts = unit.add(code, start, size, &mut self.debug)?;
            let summary = &mut self.summary;
            summary.num_line_rows = summary.num_line_rows.saturating_add(counts.line_rows);
            summary.num_inlined_calls = summary.num_inlined_calls.saturating_add(counts.inlined_calls);
        }
        Ok(CodePlacement { file_offset: start, size })
    }

    fn write_code(&mut self, bytes: &[u8]) -> Result<(u64, u64), Error> {
        let end = self.text.end;
        let (start, size) = self.text.place(bytes.len() as u64).ok_or(Error::TooLarge(TEXT))?;
        let bytes = bytes.get(..size as usize).unwrap_or(bytes);
        // Pieces start at multiples of 16, and not where the one before ends.
        let padding = [0; 32];
        self.out.write_all(padding.get(..start.saturating_sub(end) as usize).unwrap_or_default())?;
        self.out.write_all(bytes)?;
        self.hasher.update(bytes);
        Ok((start, size))
    }

    /// Writes the sections after the code, then the headers, and flushes the file.
    ///
    /// # Errors
    /// [`Error::Io`] where the file cannot be written, [`Error::TooLarge`] where the image is full.
    pub fn finish(mut self) -> Result<ImageSummary, Error> {
        self.text_unit.flush(&mut self.debug)?;
        self.absent_unit.flush(&mut self.debug)?;
        let sections = sections(self.symbols, self.debug);

        let note = container::note_offset(self.encoding);
        let mut headers = vec![
            Header {
                name: ".note.gnu.build-id",
                kind: elf::SHT_NOTE,
                flags: elf::SHF_ALLOC,
                offset: note,
                size: LEN_NOTE,
            },
            text_header(TEXT, elf::SHT_PROGBITS, self.text),
        ];
        let mut offset = self.text.end;
        for (name, kind, flags, bytes) in &sections {
            offset = align(&mut self.out, offset)?;
            self.out.write_all(bytes)?;
            self.hasher.update(bytes);
            let size = bytes.len() as u64;
            headers.push(Header { name, kind: *kind, flags: *flags, offset, size });
            offset = offset.saturating_add(size);
        }
        if !self.absent.is_empty() {
            headers.push(text_header(ABSENT_TEXT, elf::SHT_NOBITS, self.absent));
        }
        drop(sections);
        let table_offset = align(&mut self.out, offset)?;
        let table = container::section_headers(&headers, self.encoding);
        self.out.write_all(&table.bytes)?;
        let end = table_offset.saturating_add(table.len() as u64);
        if !self.encoding.is_64 && u32::try_from(end).is_err() {
            return Err(Error::TooLarge("a 32-bit file"));
        }

        let build_id = self.hasher.finish();
        // At most 12 sections, and the empty first header.
        let table = (table_offset, (headers.len() as u16).saturating_add(1));
        let head = container::head(&self.spec, self.encoding, [self.text, self.absent], &build_id, table);
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&head.bytes)?;
        self.out.flush()?;
        let sections = headers.iter().map(|header| (header.name, header.size)).collect();
        Ok(ImageSummary { build_id, sections, size_bytes: end, ..self.summary })
    }
}

/// Writes zeros up to a multiple of 8; returns the offset after them.
fn align(out: &mut impl Write, offset: u64) -> Result<u64, Error> {
    let aligned = offset.checked_next_multiple_of(8).ok_or(Error::TooLarge("a 64-bit file"))?;
    let padding = [0; 8];
    out.write_all(padding.get(..aligned.saturating_sub(offset) as usize).unwrap_or_default())?;
    Ok(aligned)
}

const TEXT: &str = ".text";
const SECTION_NAMES: &str = ".shstrtab";
// perf considers a symbol to be code where its section has "text" in its name.
const ABSENT_TEXT: &str = ".text.absent";

type NamedSection = (&'static str, elf::SectionType, elf::SectionFlags, Vec<u8>);

/// The sections after the code, in the order [`SectionIndex`] numbers them.
fn sections(symbols: SymbolSection, debug: DwarfSections) -> Vec<NamedSection> {
    let none = elf::SectionFlags(0);
    let mut sections = vec![
        (".symtab", elf::SHT_SYMTAB, none, symbols.table.bytes),
        (".strtab", elf::SHT_STRTAB, none, symbols.strings.bytes),
        (SECTION_NAMES, elf::SHT_STRTAB, none, Vec::new()),
    ];
    let strings = elf::SHF_MERGE | elf::SHF_STRINGS;
    for (name, bytes) in debug.into_sections() {
        let flags = if name.ends_with("str") { strings } else { none };
        sections.push((name, elf::SHT_PROGBITS, flags, bytes));
    }
    let names = sections.iter().map(|section| section.0);
    let names =
        container::section_names([".note.gnu.build-id", TEXT].into_iter().chain(names).chain([ABSENT_TEXT]));
    if let Some(section) = sections.iter_mut().find(|section| section.0 == SECTION_NAMES) {
        section.3 = names;
    }
    sections
}

fn text_header(name: &'static str, kind: elf::SectionType, region: AddressRegion) -> Header {
    let flags = elf::SHF_ALLOC | elf::SHF_EXECINSTR;
    Header { name, kind, flags, offset: region.start, size: region.size() }
}
