//! The sections of DWARF, and the bytes that they are in.

use std::borrow::Cow;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::Builder;

use gimli::{EndianSlice, Reader, RunTimeEndian, Section, SectionId};
use object::{CompressionFormat, Object, ObjectSection};
use perfuse_stopping::part;

use super::image::Image;

pub(super) type DwarfReader = EndianSlice<'static, RunTimeEndian>;

/// The bytes that a context of DWARF borrows.
#[derive(Default)]
pub(super) struct DwarfSources {
    images: Vec<Arc<Image>>,
    unpacked: Vec<Vec<u8>>,
}

impl DwarfSources {
    /// The sections of a program or of its debug file.
    ///
    /// # Errors
    /// The reader's message where the file or a section is damaged, and a section that unpacks to more than is allowed.
    pub(super) fn sections(&mut self, image: &Arc<Image>) -> Result<gimli::Dwarf<DwarfReader>, String> {
        std::thread::scope(|scope| {
            let unpacks = has_packed(image, LARGEST.name());
            let unpack =
                part(|| read(image, &image.elf().map_err(|error| error.to_string())?, LARGEST.name()));
            // Where no thread can be started, it is unpacked with the others.
            let largest = unpacks.then(|| Builder::new().spawn_scoped(scope, unpack).ok()).flatten();
            let is_read_here = |id| is_needed(id) && (id != LARGEST || largest.is_none());
            let mut dwarf =
                gimli::Dwarf::load(self.loader(image, |id| Some(id.name()).filter(|_| is_read_here(id)))?)?;
            if let Some(thread) = largest {
                let bytes = thread.join().unwrap_or_else(|panic| resume_unwind(panic))?;
                dwarf.debug_info =
                    EndianSlice::new(self.keep(bytes), dwarf.debug_abbrev.reader().endian()).into();
            }
            Ok(dwarf)
        })
    }

    /// The sections of a `.dwo` file.
    ///
    /// # Errors
    /// As [`Self::sections`].
    pub(super) fn split_sections(&mut self, image: &Arc<Image>) -> Result<gimli::Dwarf<DwarfReader>, String> {
        gimli::Dwarf::load(self.loader(image, |id| id.dwo_name().filter(|_| is_needed(id)))?)
    }

    /// The `.dwo` files in a package.
    ///
    /// # Errors
    /// As [`Self::sections`].
    pub(super) fn package(
        &mut self,
        image: &Arc<Image>,
    ) -> Result<gimli::DwarfPackage<DwarfReader>, gimli::Error> {
        let damaged = |_| gimli::Error::UnexpectedEof(gimli::ReaderOffsetId(0));
        // Its index states the parts of all sections that belong to a unit.
        let mut load = self.loader(image, SectionId::dwo_name).map_err(damaged)?;
        let empty = EndianSlice::new(&[][..], RunTimeEndian::Little);
        gimli::DwarfPackage::load(|id| load(id).map_err(damaged), empty)
    }

    /// A function that reads the sections of an image.
    fn loader<'a>(
        &'a mut self,
        image: &'a Arc<Image>,
        name: impl Fn(SectionId) -> Option<&'static str> + 'a,
    ) -> Result<impl FnMut(SectionId) -> Result<DwarfReader, String> + 'a, String> {
        let elf = image.elf().map_err(|error| error.to_string())?;
        let endian = if elf.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        self.images.push(Arc::clone(image));
        Ok(move |id| {
            let bytes = match name(id) {
                Some(name) => self.keep(read(image, &elf, name)?),
                None => &[],
            };
            Ok(EndianSlice::new(bytes, endian))
        })
    }

    /// Bytes of an image in `self.images`, or the unpacked ones, which are kept.
    fn keep(&mut self, bytes: Cow<'_, [u8]>) -> &'static [u8] {
        match bytes {
            // SAFETY: these bytes are of an image in `self.images`.
            Cow::Borrowed(bytes) => unsafe { outlive(bytes) },
            Cow::Owned(bytes) => {
                self.unpacked.push(bytes);
                let bytes = self.unpacked.last().map_or(&[][..], Vec::as_slice);
                // SAFETY: the vector is in `self.unpacked`; moving it does not move its bytes.
                unsafe { outlive(bytes) }
            }
        }
    }
}

/// The section that is as large as all others together, and takes as long to unpack.
const LARGEST: SectionId = SectionId::DebugInfo;

/// Least size of a packed section that another thread unpacks, in bytes.
const MIN_PACKED: u64 = 256 << 10;

/// Whether a section is packed and so large that another thread should unpack it.
fn has_packed(image: &Image, name: &str) -> bool {
    let range = |elf: &object::File<'_>| elf.section_by_name(name)?.compressed_file_range().ok();
    let range = image.elf().ok().and_then(|elf| range(&elf));
    range.is_some_and(|range| range.format != CompressionFormat::None && range.compressed_size >= MIN_PACKED)
}

/// A section, unpacked; empty where there is none.
fn read<'a>(image: &Image, elf: &object::File<'a>, name: &str) -> Result<Cow<'a, [u8]>, String> {
    elf.section_by_name(name).map_or(Ok(Cow::Borrowed(&[])), |section| image.section(&section))
}

/// Whether names, lines or inlined calls are in a section.
fn is_needed(id: SectionId) -> bool {
    matches!(
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
    )
}

/// Extends a borrow to the lifetime of the readers' owner, which owns the bytes but cannot express that in its type.
///
/// # Safety
/// The bytes are owned by the [`DwarfSources`] beside which the readers are kept, and are neither moved nor changed.
unsafe fn outlive<'a>(bytes: &[u8]) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) }
}
