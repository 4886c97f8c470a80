use std::io::{BufWriter, Seek, SeekFrom, Write};

use object::elf;

use super::build_id::BuildIdHasher;
use super::container::{self, Header, LEN_NOTE, SectionIndex};
use super::debug_info::DebugInfo;
use super::regions::{Region, TEXT_START};
use super::section::Encoding;
use super::symbols::Symbols;
use super::unit::Unit;
use super::{CodeObject, Error, ImageSpec, Placed, Summary};

/// Writes one image. Machine code goes out as it comes; debug information and symbols follow when the image is finished.
#[derive(Debug)]
pub struct Writer<W: Write + Seek> {
    out: BufWriter<W>,
    spec: ImageSpec,
    encoding: Encoding,
    hasher: BuildIdHasher,
    text: Region,
    absent: Region,
    debug: DebugInfo,
    /// Units cover one range each, so code with bytes and code without have their own.
    text_unit: Unit,
    absent_unit: Unit,
    symbols: Symbols,
    summary: Summary,
}

impl<W: Write + Seek> Writer<W> {
    /// Starts an image in an empty file.
    ///
    /// # Errors
    /// [`Error::Io`] where the file cannot be written.
    pub fn new(out: W, spec: ImageSpec) -> Result<Self, Error> {
        let encoding = Encoding { big_endian: spec.big_endian, is_64: spec.is_64 };
        let debug = DebugInfo::new(&spec, encoding)?;
        let mut out = BufWriter::with_capacity(1 << 18, out);
        out.write_all(&[0; TEXT_START as usize])?;
        Ok(Self {
            out,
            spec,
            encoding,
            hasher: BuildIdHasher::new(),
            text: Region::text(encoding),
            absent: Region::absent(encoding),
            text_unit: Unit::new(encoding, &debug),
            absent_unit: Unit::new(encoding, &debug),
            debug,
            symbols: Symbols::new(encoding),
            summary: Summary::default(),
        })
    }

    /// Adds a piece of code and says where it is in the image.
    ///
    /// Its bytes are taken where all of `size` are given, longer ones up to `size`. Otherwise the code has an address, a name
    /// and lines, but no bytes.
    ///
    /// # Errors
    /// [`Error::Io`] where the file cannot be written, [`Error::TooLarge`] where the image is full.
    pub fn add(&mut self, code: &CodeObject<'_>) -> Result<Placed, Error> {
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
        self.summary.num_functions += 1;
        if size > 0 {
            let counts = unit.add(code, start, size, &mut self.debug)?;
            self.summary.num_line_rows += counts.line_rows;
            self.summary.num_inlined_calls += counts.inlined_calls;
        }
        Ok(Placed { file_offset: start, size })
    }

    fn write_code(&mut self, bytes: &[u8]) -> Result<(u64, u64), Error> {
        let end = self.text.end;
        let (start, size) = self.text.place(bytes.len() as u64).ok_or(Error::TooLarge(TEXT))?;
        let bytes = &bytes[..size as usize];
        self.out.write_all(&[0; 16][..(start - end) as usize])?;
        self.out.write_all(bytes)?;
        self.hasher.update(bytes);
        Ok((start, size))
    }

    /// Writes what follows the code, then the headers, and makes sure all of it reached the file.
    ///
    /// # Errors
    /// [`Error::Io`] where the file cannot be written, [`Error::TooLarge`] where the image is full.
    pub fn finish(mut self) -> Result<Summary, Error> {
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
            let padding = offset.next_multiple_of(8) - offset;
            self.out.write_all(&[0; 8][..padding as usize])?;
            self.out.write_all(bytes)?;
            self.hasher.update(bytes);
            let size = bytes.len() as u64;
            headers.push(Header { name, kind: *kind, flags: *flags, offset: offset + padding, size });
            offset += padding + size;
        }
        if !self.absent.is_empty() {
            headers.push(text_header(ABSENT_TEXT, elf::SHT_NOBITS, self.absent));
        }
        drop(sections);
        let padding = offset.next_multiple_of(8) - offset;
        self.out.write_all(&[0; 8][..padding as usize])?;
        let table = container::section_headers(&headers, self.encoding);
        self.out.write_all(&table.bytes)?;
        let end = offset + padding + table.len() as u64;
        if !self.encoding.is_64 && u32::try_from(end).is_err() {
            return Err(Error::TooLarge("a 32-bit file"));
        }

        let build_id = self.hasher.finish();
        let place = (offset + padding, headers.len() as u16 + 1);
        let head = container::head(&self.spec, self.encoding, [self.text, self.absent], &build_id, place);
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&head.bytes)?;
        self.out.flush()?;
        let sections = headers.iter().map(|header| (header.name, header.size)).collect();
        Ok(Summary { build_id, sections, size_bytes: end, ..self.summary })
    }
}

const TEXT: &str = ".text";
// perf takes a symbol for code where its section has "text" in its name.
const ABSENT_TEXT: &str = ".text.absent";

type Contents = (&'static str, elf::SectionType, elf::SectionFlags, Vec<u8>);

/// The sections behind the code, in the order [`SectionIndex`] numbers them.
fn sections(symbols: Symbols, debug: DebugInfo) -> Vec<Contents> {
    let none = elf::SectionFlags(0);
    let mut sections = vec![
        (".symtab", elf::SHT_SYMTAB, none, symbols.table.bytes),
        (".strtab", elf::SHT_STRTAB, none, symbols.strings.bytes),
        (".shstrtab", elf::SHT_STRTAB, none, Vec::new()),
    ];
    let strings = elf::SHF_MERGE | elf::SHF_STRINGS;
    for (name, bytes) in debug.into_sections() {
        let flags = if name.ends_with("str") { strings } else { none };
        sections.push((name, elf::SHT_PROGBITS, flags, bytes));
    }
    let names = sections.iter().map(|section| section.0);
    sections[2].3 =
        container::section_names([".note.gnu.build-id", TEXT].into_iter().chain(names).chain([ABSENT_TEXT]));
    sections
}

fn text_header(name: &'static str, kind: elf::SectionType, region: Region) -> Header {
    let flags = elf::SHF_ALLOC | elf::SHF_EXECINSTR;
    Header { name, kind, flags, offset: region.start, size: region.size() }
}
