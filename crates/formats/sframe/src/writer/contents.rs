//! The contents of a section as values: functions, and the blocks of rows that they refer to.

use std::fmt;

use perfuse_wire::Endian;
use rustc_hash::FxHashMap;

use crate::consts::{Abi, SFRAME_F_FDE_FUNC_START_PCREL, SFRAME_F_FDE_SORTED};
use crate::layout::Header;
use crate::reader::UnitView;
use crate::records::FdeInfo;
use crate::recovery::RowContext;
use crate::row::FreInfo;
use crate::unit::StartBase;

/// The contents of a section, which can be changed and written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionContents {
    /// Version to write.
    pub version: u8,
    /// ABI.
    pub abi: Abi,
    /// Byte order: the ABI's.
    pub endian: Endian,
    /// Flags of the header.
    pub flags: u8,
    /// Fixed offset of the frame pointer from the CFA; 0 where rows contain it.
    pub fixed_fp: i8,
    /// Fixed offset of the return address from the CFA; 0 where rows contain it.
    pub fixed_ra: i8,
    /// The auxiliary header.
    pub auxiliary: Vec<u8>,
    /// Whether start addresses are relative to their own fields although the PCREL flag is not set.
    pub from_field: bool,
    /// The functions, in the order of the table.
    pub functions: Vec<SectionFunction>,
    /// The rows, in the order of the file. Functions may share a block.
    pub blocks: Vec<Vec<OwnedFre>>,
}

/// A function of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionFunction {
    /// Start address.
    pub start: u64,
    /// Size in bytes.
    pub size: u32,
    /// The info byte.
    pub info: FdeInfo,
    /// Version 3: DEFAULT or FLEX.
    pub fde_type: u8,
    /// PCMASK: size in bytes of the block of code that repeats.
    pub repeat_bytes: u8,
    /// Version 2: padding.
    pub padding: u16,
    /// Index of its block of rows.
    pub block: usize,
}

/// A row with its words.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OwnedFre {
    /// Offset from which it applies.
    pub start: u32,
    /// The info byte.
    pub info: FreInfo,
    /// As many words as the info byte states, each within its size.
    pub words: Vec<i32>,
}

/// Why a section cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteError {
    /// Index of the function, where the error concerns one.
    pub function: Option<usize>,
    /// What cannot be written.
    pub what: &'static str,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.function {
            Some(index) => write!(f, "function {index}: {}", self.what),
            None => f.write_str(self.what),
        }
    }
}

impl std::error::Error for WriteError {}

impl SectionContents {
    /// Contents without functions, marked as sorted. In version 3 start addresses are relative to their fields, as is
    /// usual there.
    #[must_use]
    pub fn new(version: u8, abi: Abi) -> Self {
        let pcrel = if version >= 3 { SFRAME_F_FDE_FUNC_START_PCREL } else { 0 };
        Self {
            version,
            abi,
            endian: abi.endian().unwrap_or(Endian::Little),
            flags: SFRAME_F_FDE_SORTED | pcrel,
            fixed_fp: 0,
            fixed_ra: if abi == Abi::AMD64_ENDIAN_LITTLE { -8 } else { 0 },
            auxiliary: Vec::new(),
            from_field: false,
            functions: Vec::new(),
            blocks: Vec::new(),
        }
    }

    /// The contents of a unit. The rows of a function end at the first that cannot be read.
    #[must_use]
    pub fn of(view: UnitView<'_>) -> Self {
        let unit = view.unit;
        let auxiliary_at = unit.at.saturating_add(Header::SIZE as usize);
        let auxiliary_end = auxiliary_at.saturating_add(unit.header.sfh_auxhdr_len.into());
        let mut contents = Self {
            endian: unit.endian,
            flags: unit.header.sfp_flags,
            fixed_fp: unit.header.sfh_cfa_fixed_fp_offset,
            fixed_ra: unit.header.sfh_cfa_fixed_ra_offset,
            auxiliary: view.data.get(auxiliary_at..auxiliary_end).unwrap_or_default().to_vec(),
            from_field: !unit.is_pcrel() && matches!(unit.starts, StartBase::FromField(_)),
            ..Self::new(unit.version(), unit.abi())
        };
        let mut by_offset: Vec<_> =
            view.functions().map(|function| (function.start_fre_off, function)).collect();
        // Blocks keep their order in the file, which may differ from that of the functions. The offset of one without rows is
        // that of the next one.
        by_offset.sort_by_key(|(at, function)| (*at, function.num_rows != 0, function.index));
        let mut block_indexes = FxHashMap::default();
        let mut blocks = vec![0; by_offset.len()];
        for (at, function) in &by_offset {
            let attributes = (*at, function.num_rows, function.info.fre_type());
            let next = contents.blocks.len();
            let block = *block_indexes.entry(attributes).or_insert(next);
            if block == next {
                let rows = view.rows(function).map_while(Result::ok);
                let rows = rows.map(|row| OwnedFre {
                    start: row.start,
                    info: row.info,
                    words: row.words().collect(),
                });
                contents.blocks.push(rows.collect());
            }
            if let Some(slot) = blocks.get_mut(function.index as usize) {
                *slot = block;
            }
        }
        contents.functions = view
            .functions()
            .zip(blocks)
            .map(|(function, block)| SectionFunction {
                start: function.start,
                size: function.size,
                info: function.info,
                fde_type: function.fde_type,
                repeat_bytes: function.repeat_bytes,
                padding: function.padding,
                block,
            })
            .collect();
        contents
    }

    /// The rows of a function.
    #[must_use]
    pub fn rows(&self, function: &SectionFunction) -> &[OwnedFre] {
        self.blocks.get(function.block).map_or(&[], Vec::as_slice)
    }

    /// The properties that the interpretation of a function's rows depends on.
    #[must_use]
    pub fn context(&self, function: &SectionFunction) -> RowContext {
        RowContext {
            version: self.version,
            abi: self.abi,
            fixed_fp: self.fixed_fp,
            fixed_ra: self.fixed_ra,
            fde_type: function.fde_type,
        }
    }

    /// Adds a function with a block of rows of its own.
    pub fn push(&mut self, function: SectionFunction, rows: Vec<OwnedFre>) {
        let block = self.blocks.len();
        self.blocks.push(rows);
        self.functions.push(SectionFunction { block, ..function });
    }

    /// Sorts the functions by address, and sets the SORTED flag. Without the PCREL flag start addresses become relative
    /// to the section, as readers expect of a sorted one.
    pub fn sort(&mut self) {
        self.functions.sort_by_key(|function| function.start);
        self.flags |= SFRAME_F_FDE_SORTED;
        self.from_field = false;
    }

    /// Whether start addresses are relative to their own fields.
    #[must_use]
    pub fn is_from_field(&self) -> bool {
        self.from_field || self.version >= 2 && self.flags & SFRAME_F_FDE_FUNC_START_PCREL != 0
    }
}
