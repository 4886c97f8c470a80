//! From one version to another, with every row that does not fit.

use perfuse_wire::Endian;

use super::add::row_of;
use super::contents::{Contents, Described, OwnedRow, WriteError};
use super::encode;
use crate::consts::{
    Abi, SFRAME_F_FDE_FUNC_START_PCREL, SFRAME_F_FDE_SORTED, SFRAME_F_FRAME_POINTER, SFRAME_FDE_TYPE_DEFAULT,
    SFRAME_FDE_TYPE_FLEX, VERSION_1_REPEAT_BYTES,
};
use crate::records::FuncInfo;
use crate::recovery::{Base, Context, Expression, Recover, Recovery};
use crate::row::{RowInfo, Rows};

/// Something another version has no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// First address of the function; `None` for what is about all.
    pub function: Option<u64>,
    /// Zero-based index of the row, where it is about one.
    pub row: Option<u32>,
    /// What does not fit.
    pub what: &'static str,
    /// Whether the function was left out, because with what is left it would be unwound wrongly.
    pub left_out: bool,
}

impl Contents {
    /// The same for a machine of the other byte order.
    ///
    /// # Errors
    /// For a machine of another kind: rows are about the registers of one.
    pub fn in_byte_order_of(&self, abi: Abi) -> Result<Self, WriteError> {
        let is_same = abi == self.abi;
        let is_aarch64 = abi.has_pointer_authentication() && self.abi.has_pointer_authentication();
        match abi.endian().filter(|_| is_same || is_aarch64) {
            Some(endian) => Ok(Self { abi, endian, ..self.clone() }),
            None => Err(WriteError { function: None, what: "rows are about the registers of one machine" }),
        }
    }

    /// The same in another version. Version 2 gets starts that count from their fields where this has them.
    #[must_use]
    pub fn convert(&self, version: u8) -> (Self, Vec<Misfit>) {
        let mut misfits = Vec::new();
        let mut flags = self.flags & SFRAME_F_FDE_SORTED;
        match version {
            1 => flags |= self.flags & SFRAME_F_FRAME_POINTER,
            2 => flags |= self.flags & (SFRAME_F_FRAME_POINTER | SFRAME_F_FDE_FUNC_START_PCREL),
            _ => flags |= SFRAME_F_FDE_FUNC_START_PCREL,
        }
        if self.flags & SFRAME_F_FRAME_POINTER & !flags != 0 {
            let what = "the flag SFRAME_F_FRAME_POINTER is gone";
            misfits.push(Misfit { function: None, row: None, what, left_out: false });
        }
        // Without the flag, unsorted sections are read as the assembler's, whose starts count from their fields.
        let from_field =
            self.is_from_field() && flags & (SFRAME_F_FDE_FUNC_START_PCREL | SFRAME_F_FDE_SORTED) == 0;
        let mut out =
            Self { version, flags, from_field, functions: Vec::new(), blocks: Vec::new(), ..self.clone() };
        // By block of this: blocks keep their order, and those that functions share stay shared where they are rewritten alike.
        let mut order: Vec<usize> = (0..self.functions.len()).collect();
        order.sort_by_key(|index| self.functions.get(*index).map(|function| (function.block, *index)));
        let mut converted: Vec<Option<Described>> = vec![None; self.functions.len()];
        let mut last: Option<(Described, Option<Described>)> = None;
        for index in order {
            let Some(function) = self.functions.get(index) else { continue };
            let kind = |function: &Described| {
                (function.block, function.info, function.fde_type, function.repeat_bytes)
            };
            let described = match last {
                Some((before, known)) if kind(&before) == kind(function) => {
                    if known.is_none() {
                        let what = "rows it shares with a function that is left out";
                        misfits.push(Misfit {
                            function: Some(function.start),
                            row: None,
                            what,
                            left_out: true,
                        });
                    }
                    known.map(|known| Described { start: function.start, size: function.size, ..known })
                }
                _ => {
                    let before = misfits.len();
                    let (described, rows) = self.function_as(function, version, &mut misfits);
                    let fits =
                        !misfits.get(before..).is_some_and(|new| new.iter().any(|misfit| misfit.left_out));
                    let block = out.blocks.len();
                    fits.then(|| {
                        out.blocks.push(rows);
                        Described { block, ..described }
                    })
                }
            };
            last = Some((*function, described));
            let Some(described) = described else { continue };
            if let Some(slot) = converted.get_mut(index) {
                *slot = Some(described);
            }
        }
        out.functions = converted.into_iter().flatten().collect();
        misfits.sort_by_key(|misfit| (misfit.function, misfit.row));
        (out, misfits)
    }

    fn function_as(
        &self,
        function: &Described,
        version: u8,
        misfits: &mut Vec<Misfit>,
    ) -> (Described, Vec<OwnedRow>) {
        let rows = self.rows(function);
        let mut tell = |row: Option<usize>, what, left_out| {
            let row = row.and_then(|row| u32::try_from(row).ok());
            misfits.push(Misfit { function: Some(function.start), row, what, left_out });
        };
        let info = function.info;
        let mut described = Described { padding: 0, fde_type: SFRAME_FDE_TYPE_DEFAULT, ..*function };
        described.info = FuncInfo::new(
            info.fre_type(),
            info.repeats(),
            info.pauth_key_b(),
            info.is_signal() && version >= 3,
        );
        if info.is_signal() && version < 3 {
            tell(None, "that the kernel enters it for a signal", false);
        }
        if self.abi == Abi::S390X_ENDIAN_BIG && version < 2 {
            tell(None, "s390x, which version 1 has not", true);
        }
        if info.repeats() {
            let far = rows.iter().any(|row| row.start != 0);
            match version {
                1 if function.repeat_bytes != VERSION_1_REPEAT_BYTES && far => {
                    tell(None, "a block that repeats and is not 16 bytes", true)
                }
                1 if function.repeat_bytes != VERSION_1_REPEAT_BYTES => {
                    tell(None, "the size of a block that repeats; it reads as 16 bytes", false)
                }
                _ => {}
            }
        } else if version < 2 {
            described.repeat_bytes = 0;
        }
        if version >= 3 && rows.len() > usize::from(u16::MAX) {
            tell(None, "more than 65535 rows", true);
        }
        if rows.is_empty() && version >= 3 && self.version < 3 {
            tell(None, "a function without rows, which is the outermost in version 3", true);
        }
        let outermost = rows.is_empty() && self.version >= 3 && version < 3 && !info.is_signal();
        if outermost && version == 2 {
            let row = OwnedRow { start: 0, info: RowInfo::new(false, 0, 0, false), words: Vec::new() };
            return (described, vec![row]);
        }
        if outermost {
            tell(None, "the outermost frame", true);
        }
        let from = self.context(function);
        let keeps_words = function.fde_type == SFRAME_FDE_TYPE_DEFAULT && !self.has_registers(function);
        let keeps_flex = function.fde_type == SFRAME_FDE_TYPE_FLEX && version >= 3;
        if keeps_words || keeps_flex || version == self.version {
            described.fde_type = function.fde_type;
            for (index, row) in rows.iter().enumerate() {
                if version < 2 && row.words.is_empty() {
                    tell(Some(index), "the outermost frame", true);
                }
            }
            return (described, rows.to_vec());
        }
        described.fde_type = if version >= 3 { SFRAME_FDE_TYPE_FLEX } else { SFRAME_FDE_TYPE_DEFAULT };
        let to = Context { version, fde_type: described.fde_type, ..from };
        let mut out = Vec::with_capacity(rows.len());
        for (index, row) in rows.iter().enumerate() {
            match self.meaning(row, &from).and_then(|recovery| row_of(row.start, &recovery, &to)) {
                Ok(row) => out.push(row),
                Err(what) => tell(Some(index), what, true),
            }
        }
        (described, out)
    }

    /// Whether rows of a function keep registers in registers by position, which only version 2 can say, for s390x.
    fn has_registers(&self, function: &Described) -> bool {
        let context = self.context(function);
        self.version == 2
            && self.abi == Abi::S390X_ENDIAN_BIG
            && self.rows(function).iter().any(|row| {
                let in_register = |rule: &Recover| matches!(rule, Recover::At(Expression { base, .. }) if *base != Base::Cfa);
                matches!(self.meaning(row, &context), Ok(Recovery::Caller { fp, ra, .. }) if in_register(&fp) || in_register(&ra))
            })
    }

    /// What a row says.
    ///
    /// # Errors
    /// Why it says nothing.
    pub fn meaning(&self, row: &OwnedRow, context: &Context) -> Result<Recovery, &'static str> {
        let mut bytes = Vec::new();
        encode::row(row, 4, Endian::Little, &mut bytes)?;
        let mut rows = Rows::new(&bytes, 0, Some(4), 1, Endian::Little, 0);
        let row = rows.next().and_then(Result::ok).ok_or("a row that cannot be read")?;
        context.meaning(&row).map_err(|_| "a row that says nothing")
    }
}
