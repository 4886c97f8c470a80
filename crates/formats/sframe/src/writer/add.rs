//! Functions made of what their rows are to say.

use super::{Contents, Described, OwnedRow, row_of};
use crate::consts::{SFRAME_FDE_TYPE_DEFAULT, SFRAME_FDE_TYPE_FLEX};
use crate::records::FuncInfo;
use crate::recovery::{Context, Recovery};

/// A function to be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Added {
    /// First address.
    pub start: u64,
    /// Size in bytes.
    pub size: u32,
    /// Size in bytes of the block of code that repeats; 0 where none does.
    pub repeat_bytes: u8,
    /// Whether the kernel enters it for a signal.
    pub is_signal: bool,
    /// Whether return addresses are signed with key B (aarch64).
    pub is_key_b: bool,
}

/// How far a section has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    functions: usize,
    blocks: usize,
}

impl Contents {
    /// How far it has come, to go back to.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark { functions: self.functions.len(), blocks: self.blocks.len() }
    }

    /// Takes away what was added since.
    pub fn back_to(&mut self, mark: Mark) {
        self.functions.truncate(mark.functions);
        self.blocks.truncate(mark.blocks);
    }

    /// Adds a function; in version 3 with rows that name registers where they have to.
    ///
    /// # Errors
    /// The index of the first row this version cannot write, and why; no index where it is about the function.
    pub fn add(
        &mut self,
        function: Added,
        rows: &[(u32, Recovery)],
    ) -> Result<(), (Option<usize>, &'static str)> {
        if function.is_signal && self.version < 3 {
            return Err((None, "only version 3 can say that a function is entered for a signal"));
        }
        if self.version >= 3 && rows.len() > usize::from(u16::MAX) {
            return Err((None, "more than 65535 rows"));
        }
        let repeats = function.repeat_bytes != 0;
        let last = rows.iter().map(|(start, _)| *start).max().unwrap_or(0);
        let furthest = last.max(if repeats { function.repeat_bytes.into() } else { function.size });
        let fre_type = match furthest {
            0..=0xff => 0,
            0x100..=0xffff => 1,
            _ => 2,
        };
        let described = Described {
            start: function.start,
            size: function.size,
            info: FuncInfo::new(fre_type, repeats, function.is_key_b, function.is_signal),
            fde_type: SFRAME_FDE_TYPE_DEFAULT,
            repeat_bytes: function.repeat_bytes,
            padding: 0,
            block: 0,
        };
        let context = self.context(&described);
        let (fde_type, rows) = match rows_as(rows, &context, SFRAME_FDE_TYPE_DEFAULT) {
            Err(_) if self.version >= 3 => {
                (SFRAME_FDE_TYPE_FLEX, rows_as(rows, &context, SFRAME_FDE_TYPE_FLEX)?)
            }
            by_position => (SFRAME_FDE_TYPE_DEFAULT, by_position?),
        };
        self.push(Described { fde_type, ..described }, rows);
        Ok(())
    }
}

fn rows_as(
    rows: &[(u32, Recovery)],
    context: &Context,
    fde_type: u8,
) -> Result<Vec<OwnedRow>, (Option<usize>, &'static str)> {
    let context = Context { fde_type, ..*context };
    let row = |(index, (start, recovery)): (usize, &(u32, Recovery))| {
        row_of(*start, recovery, &context).map_err(|why| (Some(index), why))
    };
    rows.iter().enumerate().map(row).collect()
}
