//! Converts sections to another version, and lists every item that it cannot represent.

use perfuse_wire::Endian;

use super::add::row_of;
use super::contents::{OwnedFre, SectionContents, SectionFunction, WriteError};
use super::encode;
use super::unsupported::Unsupported;
use crate::consts::{
    Abi, SFRAME_F_FDE_FUNC_START_PCREL, SFRAME_F_FDE_SORTED, SFRAME_F_FRAME_POINTER, SFRAME_FDE_TYPE_DEFAULT,
    SFRAME_FDE_TYPE_FLEX, VERSION_1_REPEAT_BYTES,
};
use crate::records::FdeInfo;
use crate::recovery::{Base, Expression, Recover, Recovery, RowContext};
use crate::row::{FreInfo, FreIter};

/// An item that the target version cannot represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnrepresentableItem {
    /// Start address of the function; `None` for the section as a whole.
    pub function: Option<u64>,
    /// Zero-based index of the row, where the item is one.
    pub row: Option<u32>,
    /// A description of the item.
    pub what: Unsupported,
    /// Whether the function was omitted, because what remains of it would be unwound wrongly.
    pub omitted: bool,
}

impl SectionContents {
    /// The same contents for a machine of the other byte order.
    ///
    /// # Errors
    /// For another kind of machine: rows refer to the registers of one.
    pub fn in_byte_order_of(&self, abi: Abi) -> Result<Self, WriteError> {
        let is_same = abi == self.abi;
        let is_aarch64 = abi.has_pointer_authentication() && self.abi.has_pointer_authentication();
        match abi.endian().filter(|_| is_same || is_aarch64) {
            Some(endian) => Ok(Self { abi, endian, ..self.clone() }),
            None => {
                Err(WriteError { function: None, what: "rows refer to the registers of one kind of machine" })
            }
        }
    }

    /// The same contents in another version.
    ///
    /// `pcrel` states whether the start addresses of version 2 are relative to their fields, with a flag that only
    /// binutils 2.45 and newer know. `None` keeps them as they are in version 2, and else makes them relative to the section.
    #[must_use]
    pub fn convert(&self, version: u8, pcrel: Option<bool>) -> (Self, Vec<UnrepresentableItem>) {
        let mut unsupported = Vec::new();
        let mut flags = self.flags & SFRAME_F_FDE_SORTED;
        if version < 3 {
            flags |= self.flags & SFRAME_F_FRAME_POINTER;
        }
        let is_pcrel = match version {
            1 => false,
            2 => pcrel.unwrap_or(self.version == 2 && self.flags & SFRAME_F_FDE_FUNC_START_PCREL != 0),
            _ => true,
        };
        if is_pcrel {
            flags |= SFRAME_F_FDE_FUNC_START_PCREL;
        }
        if self.flags & SFRAME_F_FRAME_POINTER & !flags != 0 {
            let what = Unsupported::FramePointerFlag;
            unsupported.push(UnrepresentableItem { function: None, row: None, what, omitted: false });
        }
        // Without the flag, readers take unsorted entries for an assembler's, whose start addresses are relative to
        // their fields.
        let from_field =
            self.is_from_field() && flags & (SFRAME_F_FDE_FUNC_START_PCREL | SFRAME_F_FDE_SORTED) == 0;
        let mut out =
            Self { version, flags, from_field, functions: Vec::new(), blocks: Vec::new(), ..self.clone() };
        // In the order of the blocks: blocks keep their order, and functions keep sharing blocks that are converted
        // in the same way.
        let mut order: Vec<usize> = (0..self.functions.len()).collect();
        order.sort_by_key(|index| self.functions.get(*index).map(|function| (function.block, *index)));
        let mut converted: Vec<Option<SectionFunction>> = vec![None; self.functions.len()];
        let mut last: Option<(SectionFunction, Option<SectionFunction>)> = None;
        for index in order {
            let Some(function) = self.functions.get(index) else { continue };
            let shared_properties = |function: &SectionFunction| {
                (function.block, function.info, function.fde_type, function.repeat_bytes)
            };
            let converted_function = match last {
                Some((before, converted_to)) if shared_properties(&before) == shared_properties(function) => {
                    if converted_to.is_none() {
                        let what = Unsupported::SharedRows;
                        unsupported.push(UnrepresentableItem {
                            function: Some(function.start),
                            row: None,
                            what,
                            omitted: true,
                        });
                    }
                    converted_to.map(|converted_to| SectionFunction {
                        start: function.start,
                        size: function.size,
                        ..converted_to
                    })
                }
                _ => {
                    let before = unsupported.len();
                    let (converted_function, rows) =
                        self.convert_function(function, version, &mut unsupported);
                    let fits =
                        !unsupported.get(before..).is_some_and(|new| new.iter().any(|item| item.omitted));
                    let block = out.blocks.len();
                    fits.then(|| {
                        out.blocks.push(rows);
                        SectionFunction { block, ..converted_function }
                    })
                }
            };
            last = Some((*function, converted_function));
            let Some(converted_function) = converted_function else { continue };
            if let Some(slot) = converted.get_mut(index) {
                *slot = Some(converted_function);
            }
        }
        out.functions = converted.into_iter().flatten().collect();
        unsupported.sort_by_key(|item| (item.function, item.row));
        (out, unsupported)
    }

    /// Converts a function with its rows; reports items that the version cannot represent.
    fn convert_function(
        &self,
        function: &SectionFunction,
        version: u8,
        unsupported: &mut Vec<UnrepresentableItem>,
    ) -> (SectionFunction, Vec<OwnedFre>) {
        let rows = self.rows(function);
        let mut report = |row: Option<usize>, what, omitted| {
            let row = row.and_then(|row| u32::try_from(row).ok());
            unsupported.push(UnrepresentableItem { function: Some(function.start), row, what, omitted });
        };
        let info = function.info;
        let mut converted_function =
            SectionFunction { padding: 0, fde_type: SFRAME_FDE_TYPE_DEFAULT, ..*function };
        converted_function.info = FdeInfo::new(
            info.fre_type(),
            info.repeats(),
            info.pauth_key_b(),
            info.is_signal() && version >= 3,
        );
        if info.is_signal() && version < 3 {
            report(None, Unsupported::SignalFrame, false);
        }
        if self.abi == Abi::S390X_ENDIAN_BIG && version < 2 {
            report(None, Unsupported::Machine, true);
        }
        if info.repeats() {
            let has_later_rows = rows.iter().any(|row| row.start != 0);
            match version {
                1 if function.repeat_bytes != VERSION_1_REPEAT_BYTES && has_later_rows => {
                    report(None, Unsupported::RepeatSize, true)
                }
                1 if function.repeat_bytes != VERSION_1_REPEAT_BYTES => {
                    report(None, Unsupported::RepeatField, false)
                }
                _ => {}
            }
        } else if version < 2 {
            converted_function.repeat_bytes = 0;
        }
        if version >= 3 && rows.len() > usize::from(u16::MAX) {
            report(None, Unsupported::TooManyRows, true);
        }
        if rows.is_empty() && version >= 3 && self.version < 3 {
            report(None, Unsupported::NoRows, true);
        }
        let outermost = rows.is_empty() && self.version >= 3 && version < 3 && !info.is_signal();
        if outermost && version == 2 {
            let row = OwnedFre { start: 0, info: FreInfo::new(false, 0, 0, false), words: Vec::new() };
            return (converted_function, vec![row]);
        }
        if outermost {
            report(None, Unsupported::Outermost, true);
        }
        let from = self.context(function);
        let can_keep_words = function.fde_type == SFRAME_FDE_TYPE_DEFAULT && !self.has_registers(function);
        let can_keep_flex = function.fde_type == SFRAME_FDE_TYPE_FLEX && version >= 3;
        if can_keep_words || can_keep_flex || version == self.version {
            converted_function.fde_type = function.fde_type;
            for (index, row) in rows.iter().enumerate() {
                if version < 2 && row.words.is_empty() {
                    report(Some(index), Unsupported::Outermost, true);
                }
            }
            return (converted_function, rows.to_vec());
        }
        converted_function.fde_type =
            if version >= 3 { SFRAME_FDE_TYPE_FLEX } else { SFRAME_FDE_TYPE_DEFAULT };
        let to = RowContext { version, fde_type: converted_function.fde_type, ..from };
        let mut out = Vec::with_capacity(rows.len());
        for (index, row) in rows.iter().enumerate() {
            match self.interpret(row, &from).and_then(|recovery| row_of(row.start, &recovery, &to)) {
                Ok(row) => out.push(row),
                Err(what) => report(Some(index), what, true),
            }
        }
        (converted_function, out)
    }

    /// Whether DEFAULT rows of a function restore registers from registers, which only version 2 can represent, for
    /// s390x.
    fn has_registers(&self, function: &SectionFunction) -> bool {
        let context = self.context(function);
        self.version == 2
            && self.abi == Abi::S390X_ENDIAN_BIG
            && self.rows(function).iter().any(|row| {
                let in_register = |rule: &Recover| matches!(rule, Recover::At(Expression { base, .. }) if *base != Base::Cfa);
                matches!(self.interpret(row, &context), Ok(Recovery::Caller { fp, ra, .. }) if in_register(&fp) || in_register(&ra))
            })
    }

    /// Interprets a row.
    ///
    /// # Errors
    /// Why the row cannot be interpreted.
    pub fn interpret(&self, row: &OwnedFre, context: &RowContext) -> Result<Recovery, Unsupported> {
        let mut bytes = Vec::new();
        encode::write_row(row, 4, Endian::Little, &mut bytes).map_err(|_| Unsupported::UnreadableRow)?;
        let mut rows = FreIter::new(&bytes, 0, Some(4), 1, Endian::Little, 0);
        let row = rows.next().and_then(Result::ok).ok_or(Unsupported::UnreadableRow)?;
        context.interpret(&row).map_err(|_| Unsupported::InvalidRow)
    }
}
