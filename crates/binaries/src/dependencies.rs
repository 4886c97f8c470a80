//! The libraries that an ELF file needs: `DT_NEEDED`, and where the loader searches for them.

use object::Endianness;
use object::elf::{self, FileHeader32, FileHeader64};
use object::read::FileKind;
use object::read::elf::FileHeader;

use crate::symbolize::Image;

/// What the dynamic section of a file contains about libraries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependencies {
    /// The file's own name as a library.
    pub soname: Option<String>,
    /// Names of the libraries that it needs, in their order.
    pub needed: Vec<String>,
    /// Directories to search, with `$ORIGIN` as it is.
    pub search: Vec<String>,
}

impl Dependencies {
    /// Reads the dynamic section; empty for files without one.
    ///
    /// # Errors
    /// When the file is not a readable ELF file.
    pub fn read(image: &Image) -> object::Result<Self> {
        match FileKind::parse(&**image)? {
            FileKind::Elf32 => of::<FileHeader32<Endianness>>(image),
            // Parsed as ELF regardless of the kind, so that the reader rejects other kinds of object files with its own error.
            _ => of::<FileHeader64<Endianness>>(image),
        }
    }
}

fn of<Elf: FileHeader<Endian = Endianness>>(data: &[u8]) -> object::Result<Dependencies> {
    let header = Elf::parse(data)?;
    let endian = header.endian()?;
    let table = header.sections(endian, data)?.dynamic_table(endian, data)?;
    let mut found = Dependencies::default();
    for entry in &table {
        if ![elf::DT_NEEDED, elf::DT_SONAME, elf::DT_RPATH, elf::DT_RUNPATH].contains(&entry.tag) {
            continue;
        }
        let text = String::from_utf8_lossy(table.string(entry)?).into_owned();
        match entry.tag {
            elf::DT_NEEDED => found.needed.push(text),
            elf::DT_SONAME => found.soname = Some(text),
            _ => found.search.extend(text.split(':').map(str::to_owned)),
        }
    }
    Ok(found)
}
