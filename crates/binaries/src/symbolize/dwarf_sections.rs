//! The sections of DWARF, and the bytes that they are in.

use std::borrow::Cow;
use std::sync::Arc;

use gimli::{EndianSlice, RunTimeEndian, SectionId};
use object::Object;

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
        gimli::Dwarf::load(self.loader(image, |id| Some(id.name()).filter(|_| is_needed(id)))?)
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
                Some(name) => self.section(image, &elf, name)?,
                None => &[],
            };
            Ok(EndianSlice::new(bytes, endian))
        })
    }

    fn section(
        &mut self,
        image: &Image,
        elf: &object::File<'_>,
        name: &str,
    ) -> Result<&'static [u8], String> {
        let Some(section) = elf.section_by_name(name) else { return Ok(&[]) };
        Ok(match image.section(&section)? {
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
