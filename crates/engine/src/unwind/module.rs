//! Unwinding information of one file, and of one piece of JIT code.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use object::{Object, ObjectSection, ObjectSegment, SegmentFlags, elf};

use perfuse_binaries::symbolize::Image;
use perfuse_tables::{CodeUnwinding, FrameRecovery, UserStack};

use super::cfi::{CfiIndex, CfiSection, without_omitted_pointers};
use super::memory::number;
use super::registers::Machine;
use super::step::{FrameOrigin, UnwindStep};

/// Unwinding information that other crates read: SFrame sections, records of JIT code, recorded copies of stacks.
pub trait UnwindSources: Sync {
    /// Unwinding rows of an ELF file, where it has any.
    fn file_rows(&self, path: &Path, bytes: &[u8]) -> Option<Box<dyn UnwindRows>>;

    /// Unwinding information recorded with JIT code.
    fn code(&self, code_object_id: u32) -> Option<CodeUnwinding<'_>>;

    /// Copy of a stack, by its source and number. `registers` receives DWARF register numbers and values in turn, the
    /// program counter last.
    fn user_stack(&self, source_id: u32, number: u64, registers: &mut Vec<u64>) -> Option<UserStack<'_>>;
}

/// Unwinding rows of a file.
pub trait UnwindRows: Send + Sync {
    /// Rule for leaving the function at an address of the file's own layout.
    fn recovery(&self, address: u64) -> Option<FrameRecovery>;
}

/// Largest unwinding information of JIT code that is read. It is searched linearly for each new address; that of an object
/// file with a thousand functions is a quarter of this size.
const MAX_CODE_EH_FRAME_BYTES: usize = 256 << 10;

/// The step that leaves JIT code, at an offset of the code.
pub(super) fn code_step(code: &CodeUnwinding<'_>, code_offset: u64, machine: Machine) -> Option<UnwindStep> {
    let mut eh_frame = code.eh_frame.get(..MAX_CODE_EH_FRAME_BYTES).unwrap_or(code.eh_frame).to_vec();
    without_omitted_pointers(&mut eh_frame);
    let section = CfiSection {
        bytes: &eh_frame,
        address: code.address,
        header: None,
        text: code.code_address,
        is_eh: true,
        big_endian: code.big_endian,
        machine,
        origin: FrameOrigin::JitDump,
    };
    let own = if code.is_own { section.step_of_only_function(code_offset) } else { None };
    own.or_else(|| section.step(code.code_address.wrapping_add(code_offset), &CfiIndex::new()))
}

/// Unwinding information of a program or library.
pub(super) struct UnwindModule {
    image: Arc<Image>,
    machine: Machine,
    big_endian: bool,
    rows: Option<Box<dyn UnwindRows>>,
    eh_frame: Option<SectionLocation>,
    header: Option<SectionLocation>,
    debug_frame: OnceLock<Vec<u8>>,
    debug_image: Option<Arc<Image>>,
    text: u64,
    /// File ranges that are mapped read-only, and whether they contain code.
    read_only: Vec<(Range<u64>, bool)>,
    indexes: (CfiIndex, CfiIndex),
}

/// Location of a section, in memory and in the file.
#[derive(Clone, Debug)]
struct SectionLocation {
    address: u64,
    range: Range<usize>,
}

impl UnwindModule {
    /// Finds the sections of a file.
    pub(super) fn open(
        image: Arc<Image>,
        debug_image: Option<Arc<Image>>,
        sources: &dyn UnwindSources,
    ) -> Option<Self> {
        let file = image.elf().ok()?;
        let machine = match file.architecture() {
            object::Architecture::X86_64 => Machine::Amd64,
            object::Architecture::Aarch64 => Machine::Aarch64,
            object::Architecture::S390x => Machine::S390x,
            _ => return None,
        };
        let location = |name: &str| {
            let section = file.section_by_name(name)?;
            let (start, size) = section.file_range()?;
            let start = usize::try_from(start).ok()?;
            let range = start..start.checked_add(usize::try_from(size).ok()?)?;
            image.get(range.clone())?;
            Some(SectionLocation { address: section.address(), range })
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
            rows: sources.file_rows(&image.path, &image),
            eh_frame: location(".eh_frame"),
            header: location(".eh_frame_hdr"),
            debug_frame: OnceLock::new(),
            text: file.section_by_name(".text").map_or(0, |section| section.address()),
            read_only: read_only.collect(),
            indexes: Default::default(),
            image: Arc::clone(&image),
            debug_image,
        })
    }

    /// The step at an address of the file's own layout, and the addresses it is valid for, unless rows that take precedence
    /// may differ at some of them.
    pub(super) fn step(&self, address: u64, all_registers: bool) -> Option<(Option<Range<u64>>, UnwindStep)> {
        let rows = self.rows.as_ref().filter(|_| !all_registers);
        if let Some(step) = rows
            .and_then(|rows| rows.recovery(address))
            .and_then(|found| UnwindStep::from_recovery(found, self.machine, FrameOrigin::SFrame))
        {
            return Some((None, step));
        }
        let eh_frame = self.eh_frame_section();
        if let Some((range, step)) = eh_frame.and_then(|it| it.row(address, &self.indexes.0)) {
            return Some((rows.is_none().then_some(range), step));
        }
        self.debug_frame_section()?.step(address, &self.indexes.1).map(|step| (None, step))
    }

    /// Number in a read-only part of the file, by file offset.
    pub(super) fn number(&self, file_offset: u64, size: u8) -> Option<u64> {
        let end = file_offset.checked_add(size.into())?;
        self.read_only.iter().find(|(range, _)| range.start <= file_offset && end <= range.end)?;
        let bytes = self.image.get(usize::try_from(file_offset).ok()?..usize::try_from(end).ok()?)?;
        number(bytes, self.big_endian)
    }

    /// Whether the file has code at a file offset.
    pub(super) fn is_code(&self, file_offset: u64) -> bool {
        self.read_only.iter().any(|(range, is_code)| *is_code && range.contains(&file_offset))
    }

    fn eh_frame_section(&self) -> Option<CfiSection<'_>> {
        let section = self.eh_frame.as_ref()?;
        let bytes = |location: &SectionLocation| self.image.get(location.range.clone());
        let header = self.header.as_ref().and_then(|header| Some((bytes(header)?, header.address)));
        Some(CfiSection { header, ..self.section(bytes(section)?, section.address, FrameOrigin::EhFrame) })
    }

    fn debug_frame_section(&self) -> Option<CfiSection<'_>> {
        let bytes = self.debug_frame.get_or_init(|| {
            let images = [Some(&self.image), self.debug_image.as_ref()];
            let mut found = images.into_iter().flatten().filter_map(|image| {
                let file = image.elf().ok()?;
                let data = image.section(&file.section_by_name(".debug_frame")?).ok()?;
                (!data.is_empty()).then(|| data.into_owned())
            });
            found.next().unwrap_or_default()
        });
        (!bytes.is_empty()).then(|| self.section(bytes, 0, FrameOrigin::DebugFrame))
    }

    fn section<'a>(&self, bytes: &'a [u8], address: u64, origin: FrameOrigin) -> CfiSection<'a> {
        CfiSection {
            bytes,
            address,
            header: None,
            text: self.text,
            is_eh: origin == FrameOrigin::EhFrame,
            big_endian: self.big_endian,
            machine: self.machine,
            origin,
        }
    }
}
