use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use object::{Object, ObjectSection, ObjectSegment, SegmentFlags, elf};

use super::cfi::{Index, Section, without_omitted_pointers};
use super::machine::Machine;
use super::memory::number;
use super::step::{Origin, Step};
use perfuse_binaries::symbolize::Image;

/// What tells how to unwind, in formats that this crate does not know.
pub trait Formats: Sync {
    /// The unwinding rows of an ELF file, where it has any: SFrame.
    fn rows(&self, machine: Machine, path: &Path, bytes: &[u8]) -> Option<Box<dyn Rows>>;

    /// The unwinding information that came with JIT code.
    fn code(&self, code_object_id: u32) -> Option<CodeFrames>;

    /// The copy of a stack that a source has under a number, and into `registers` their numbers and values in turn, the
    /// program counter last.
    fn user_stack(&self, source_id: u32, number: u64, registers: &mut Vec<u64>) -> Option<UserStack<'_>>;
}

/// A copy of the innermost part of a stack.
#[derive(Clone, Copy, Debug)]
pub struct UserStack<'a> {
    /// Its bytes, from the stack pointer up.
    pub bytes: &'a [u8],
    /// Whether numbers are big-endian.
    pub big_endian: bool,
}

/// Unwinding rows of a file.
pub trait Rows: Send + Sync {
    /// The step that holds at an address, as the file is laid out.
    fn step(&self, address: u64) -> Option<Step>;
}

/// The unwinding information of JIT code.
#[derive(Clone, Debug)]
pub struct CodeFrames {
    /// `.eh_frame`.
    eh_frame: Vec<u8>,
    /// Address of the code when it was made.
    code_address: u64,
    /// Address that `.eh_frame` has, or that its pointers take it to have.
    address: u64,
    /// Whether it is of this code alone; else of all code of an object file.
    is_own: bool,
    big_endian: bool,
}

/// Largest unwinding information of JIT code that is read: it is walked for each address anew, and that of whole object
/// files with a thousand functions has a quarter of it.
const MAX_CODE_FRAMES_BYTES: usize = 256 << 10;

impl CodeFrames {
    /// Of `.eh_frame` as a dump has it. `address` is where that is, or where its pointers take it to be; `code_address` is
    /// where the code was made. `is_own` says that it is of this code alone.
    #[must_use]
    pub fn new(eh_frame: &[u8], code_address: u64, address: u64, is_own: bool, big_endian: bool) -> Self {
        let mut eh_frame = eh_frame.get(..MAX_CODE_FRAMES_BYTES).unwrap_or(eh_frame).to_vec();
        without_omitted_pointers(&mut eh_frame);
        Self { eh_frame, code_address, address, is_own, big_endian }
    }

    /// How to get out of the code at an offset.
    pub(super) fn step(&self, code_offset: u64, machine: Machine) -> Option<Step> {
        let section = Section {
            bytes: &self.eh_frame,
            address: self.address,
            header: None,
            text: self.code_address,
            is_eh: true,
            big_endian: self.big_endian,
            machine,
            origin: Origin::JitDump,
        };
        let own = if self.is_own { section.step_of_only_function(code_offset) } else { None };
        own.or_else(|| section.step(self.code_address.wrapping_add(code_offset), &Index::new()))
    }
}

/// A program or library, as far as unwinding needs it.
pub(super) struct Module {
    image: Arc<Image>,
    machine: Machine,
    big_endian: bool,
    rows: Option<Box<dyn Rows>>,
    eh_frame: Option<Place>,
    header: Option<Place>,
    debug_frame: OnceLock<Vec<u8>>,
    debug_image: Option<Arc<Image>>,
    text: u64,
    /// Parts of the file that are mapped but never written to, and whether they hold code.
    read_only: Vec<(Range<u64>, bool)>,
    indexes: (Index, Index),
}

/// Where a section is: in memory, and in the file.
#[derive(Clone, Debug)]
struct Place {
    address: u64,
    range: Range<usize>,
}

impl Module {
    /// Finds the sections of a file.
    pub(super) fn open(
        image: Arc<Image>,
        debug_image: Option<Arc<Image>>,
        formats: &dyn Formats,
    ) -> Option<Self> {
        let file = image.elf().ok()?;
        let machine = match file.architecture() {
            object::Architecture::X86_64 => Machine::Amd64,
            object::Architecture::Aarch64 => Machine::Aarch64,
            object::Architecture::S390x => Machine::S390x,
            _ => return None,
        };
        let place = |name: &str| {
            let section = file.section_by_name(name)?;
            let (start, size) = section.file_range()?;
            let start = usize::try_from(start).ok()?;
            let range = start..start.checked_add(usize::try_from(size).ok()?)?;
            image.get(range.clone())?;
            Some(Place { address: section.address(), range })
        };
        let read_only = file.segments().filter_map(|segment| {
            let SegmentFlags::Elf { p_flags, .. } = segment.flags() else { return None };
            let (start, size) = segment.file_range();
            let is_code = p_flags.0 & elf::PF_X.0 != 0;
            (p_flags.0 & elf::PF_W.0 == 0).then(|| (start..start.saturating_add(size), is_code))
        });
        Some(Self {
            machine,
            big_endian: !file.is_little_endian(),
            rows: formats.rows(machine, &image.path, &image),
            eh_frame: place(".eh_frame"),
            header: place(".eh_frame_hdr"),
            debug_frame: OnceLock::new(),
            text: file.section_by_name(".text").map_or(0, |section| section.address()),
            read_only: read_only.collect(),
            indexes: Default::default(),
            image: Arc::clone(&image),
            debug_image,
        })
    }

    /// How to get out of the function at an address, as the file is laid out; and for which addresses that holds, where
    /// nothing that is asked before could tell otherwise of some of them.
    pub(super) fn step(&self, address: u64, all_registers: bool) -> Option<(Option<Range<u64>>, Step)> {
        let rows = self.rows.as_ref().filter(|_| !all_registers);
        if let Some(step) = rows.and_then(|rows| rows.step(address)) {
            return Some((None, step));
        }
        let eh_frame = self.eh_frame_section();
        if let Some((range, step)) = eh_frame.and_then(|it| it.row(address, &self.indexes.0)) {
            return Some((rows.is_none().then_some(range), step));
        }
        self.debug_frame_section()?.step(address, &self.indexes.1).map(|step| (None, step))
    }

    /// A number in a part of the file that is never written to, by offset.
    pub(super) fn number(&self, file_offset: u64, size: u8) -> Option<u64> {
        let end = file_offset.checked_add(size.into())?;
        self.read_only.iter().find(|(range, _)| range.start <= file_offset && end <= range.end)?;
        let bytes = self.image.get(usize::try_from(file_offset).ok()?..usize::try_from(end).ok()?)?;
        number(bytes, self.big_endian)
    }

    /// Whether the file has code at an offset.
    pub(super) fn is_code(&self, file_offset: u64) -> bool {
        self.read_only.iter().any(|(range, is_code)| *is_code && range.contains(&file_offset))
    }

    fn eh_frame_section(&self) -> Option<Section<'_>> {
        let place = self.eh_frame.as_ref()?;
        let bytes = |place: &Place| self.image.get(place.range.clone());
        let header = self.header.as_ref().and_then(|place| Some((bytes(place)?, place.address)));
        Some(Section { header, ..self.section(bytes(place)?, place.address, Origin::EhFrame) })
    }

    fn debug_frame_section(&self) -> Option<Section<'_>> {
        let bytes = self.debug_frame.get_or_init(|| {
            let images = [Some(&self.image), self.debug_image.as_ref()];
            let mut found = images.into_iter().flatten().filter_map(|image| {
                let file = image.elf().ok()?;
                let data = file.section_by_name(".debug_frame")?.uncompressed_data().ok()?;
                (!data.is_empty()).then(|| data.into_owned())
            });
            found.next().unwrap_or_default()
        });
        (!bytes.is_empty()).then(|| self.section(bytes, 0, Origin::DebugFrame))
    }

    fn section<'a>(&self, bytes: &'a [u8], address: u64, origin: Origin) -> Section<'a> {
        Section {
            bytes,
            address,
            header: None,
            text: self.text,
            is_eh: origin == Origin::EhFrame,
            big_endian: self.big_endian,
            machine: self.machine,
            origin,
        }
    }
}
