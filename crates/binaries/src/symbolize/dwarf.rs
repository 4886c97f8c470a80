use std::borrow::Cow;
use std::sync::Arc;

use addr2line::Context;
use gimli::{EndianSlice, RunTimeEndian, SectionId};
use object::{Object, ObjectSection};

use super::image::Image;

pub(super) type Reader = EndianSlice<'static, RunTimeEndian>;

/// A packed section may unpack to this many times its size; real ones stay below 40.
const MAX_UNPACK_RATIO: u64 = 256;
const MAX_UNPACKED_BYTES: u64 = 4 << 30;

/// Lines and inlined calls, read from DWARF as they are asked for.
pub(crate) struct Dwarf {
    /// Borrows from `held`, and so comes before it: fields are dropped in order.
    pub(super) context: Context<Reader>,
    _held: Held,
}

/// What the context reads from.
#[derive(Default)]
struct Held {
    images: Vec<Arc<Image>>,
    unpacked: Vec<Vec<u8>>,
}

/// A function at an address: name as in the DWARF, and the position in it.
#[derive(Debug, Default)]
pub(crate) struct DwarfFrame<'a> {
    pub(crate) name: Option<&'a [u8]>,
    pub(crate) path: Option<&'a str>,
    pub(crate) line: Option<u32>,
    pub(crate) column: Option<u32>,
}

/// Whether a file has line tables and functions in DWARF.
pub(crate) fn has_dwarf(elf: &object::File<'_>) -> bool {
    // An object file's sections refer to each other by relocations, which nothing here applies.
    elf.kind() != object::ObjectKind::Relocatable
        && elf
            .section_by_name(".debug_info")
            .is_some_and(|section| section.size() > 0 && section.file_range().is_some())
}

impl Dwarf {
    /// Reads the list of units. `supplement` is the file that several debug files share, as dwz makes it.
    ///
    /// # Errors
    /// The reader's words for DWARF that cannot be read at all.
    pub(crate) fn open(image: &Arc<Image>, supplement: Option<&Arc<Image>>) -> Result<Self, String> {
        let mut held = Held::default();
        let mut dwarf = held.sections(image)?;
        if let Some(supplement) = supplement {
            dwarf.set_sup(held.sections(supplement)?);
        }
        let context = Context::from_dwarf(dwarf).map_err(|error| error.to_string())?;
        Ok(Self { context, _held: held })
    }

    /// The functions at an address, the innermost first. Damaged DWARF gives those found up to the damage.
    pub(crate) fn visit(&self, address: u64, mut frame: impl FnMut(DwarfFrame<'_>)) {
        let Ok(mut frames) = self.context.find_frames(address).skip_all_loads() else { return };
        while let Ok(Some(found)) = frames.next() {
            let location = found.location;
            frame(DwarfFrame {
                name: found.function.as_ref().map(|function| function.name.slice()),
                path: location.as_ref().and_then(|location| location.file),
                line: location.as_ref().and_then(|location| location.line).filter(|&line| line != 0),
                column: location.as_ref().and_then(|location| location.column).filter(|&column| column != 0),
            });
        }
    }
}

impl Held {
    fn sections(&mut self, image: &Arc<Image>) -> Result<gimli::Dwarf<Reader>, String> {
        let elf = image.elf().map_err(|error| error.to_string())?;
        let endian = if elf.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        self.images.push(Arc::clone(image));
        gimli::Dwarf::load(|id| Ok(EndianSlice::new(self.section(&elf, id)?, endian)))
    }

    fn section(&mut self, elf: &object::File<'_>, id: SectionId) -> Result<&'static [u8], String> {
        let needed = matches!(
            id,
            SectionId::DebugAbbrev
                | SectionId::DebugAddr
                | SectionId::DebugAranges
                | SectionId::DebugInfo
                | SectionId::DebugLine
                | SectionId::DebugLineStr
                | SectionId::DebugRanges
                | SectionId::DebugRngLists
                | SectionId::DebugStr
                | SectionId::DebugStrOffsets
        );
        let Some(section) = needed.then(|| elf.section_by_name(id.name())).flatten() else { return Ok(&[]) };
        let packed = section.compressed_data().map_err(|error| error.to_string())?;
        let most = MAX_UNPACKED_BYTES.min((packed.data.len() as u64).saturating_mul(MAX_UNPACK_RATIO));
        if packed.format != object::CompressionFormat::None && packed.uncompressed_size > most {
            return Err(format!("{} claims to unpack to {} bytes", id.name(), packed.uncompressed_size));
        }
        Ok(match packed.decompress().map_err(|error| error.to_string())? {
            // SAFETY: these bytes are of an image in `self.images`.
            Cow::Borrowed(bytes) => unsafe { outlive(bytes) },
            Cow::Owned(bytes) => {
                self.unpacked.push(bytes);
                let bytes = self.unpacked.last().map_or(&[][..], Vec::as_slice);
                // SAFETY: the vector is in `self.unpacked`; moving it does not move its bytes.
                unsafe { outlive(bytes) }
            }
        })
    }
}

/// Lets a borrow live as long as [`Dwarf`], which owns what is borrowed but cannot say so in its type.
///
/// # Safety
/// The bytes are owned by the [`Held`] that goes into the same [`Dwarf`], and are neither moved nor changed.
unsafe fn outlive<'a>(bytes: &[u8]) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) }
}
