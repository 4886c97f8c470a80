//! Merges the units that a linker left side by side into one sorted section, and lets functions with equal rows share them.

use rustc_hash::FxHashMap;

use super::contents::{Contents, Described, WriteError};

/// A merged section, and what was not taken.
#[derive(Clone, Debug)]
pub struct Merged {
    /// The section.
    pub contents: Contents,
    /// Functions that were there twice, byte for byte.
    pub duplicates: usize,
}

/// Merges sections of one version and ABI. Without the PCREL flag starts count from the section, as readers expect of a
/// section that was merged.
///
/// # Errors
/// When there is none, or they differ in version, ABI, or what the header says for all functions.
pub fn merge(pieces: Vec<Contents>) -> Result<Merged, WriteError> {
    let refused = |what| WriteError { function: None, what };
    let mut pieces = pieces.into_iter();
    let mut all = pieces.next().ok_or(refused("there is nothing to merge"))?;
    for piece in pieces {
        if (piece.version, piece.abi, piece.endian) != (all.version, all.abi, all.endian) {
            return Err(refused("sections of several versions or ABIs; convert them first"));
        }
        if (piece.fixed_fp, piece.fixed_ra) != (all.fixed_fp, all.fixed_ra) {
            return Err(refused("sections whose headers give other fixed offsets"));
        }
        let first = all.blocks.len();
        all.blocks.extend(piece.blocks);
        let moved =
            |function: Described| Described { block: function.block.saturating_add(first), ..function };
        all.functions.extend(piece.functions.into_iter().map(moved));
    }
    all.from_field = false;
    all.sort();
    let before = all.functions.len();
    let functions = std::mem::take(&mut all.functions);
    let mut known = FxHashMap::default();
    let equal: Vec<usize> =
        all.blocks.iter().enumerate().map(|(index, block)| *known.entry(block).or_insert(index)).collect();
    let mut kept: Vec<Described> = Vec::with_capacity(functions.len());
    for function in functions {
        let same = |other: &Described| {
            Described { block: function.block, ..*other } == function
                && equal.get(other.block) == equal.get(function.block)
        };
        // A function of no size may stand beside another with the same start: all is compared.
        if function.size == 0 || !kept.last().is_some_and(same) {
            kept.push(function);
        }
    }
    let duplicates = before.saturating_sub(kept.len());
    all.functions = kept;
    Ok(Merged { contents: all, duplicates })
}

impl Contents {
    /// Has functions with equal rows share them (in version 3, where attributes are equal too). How many blocks are gone.
    pub fn share_rows(&mut self) -> usize {
        let before = self.blocks.len();
        let mut known: FxHashMap<Vec<u8>, usize> = FxHashMap::default();
        let mut kept = Vec::new();
        let mut by_block: Vec<usize> = (0..self.functions.len()).collect();
        by_block.sort_by_key(|index| self.functions.get(*index).map(|function| (function.block, *index)));
        let mut blocks = vec![0; self.functions.len()];
        let mut last: Option<(Described, usize)> = None;
        for index in by_block {
            let Some(function) = self.functions.get(index) else { continue };
            if let (Some((before, block)), Some(slot)) = (last, blocks.get_mut(index))
                && shared_already(&before, function)
            {
                *slot = block;
                continue;
            }
            let mut bytes = vec![function.info.fre_type()];
            // What cannot be written is shared with nothing.
            if self.block(function, &mut bytes).is_err() {
                bytes = index.to_le_bytes().to_vec();
            }
            let next = kept.len();
            let block = *known.entry(bytes).or_insert(next);
            if block == next {
                kept.push(self.rows(function).to_vec());
            }
            last = Some((*function, block));
            if let Some(slot) = blocks.get_mut(index) {
                *slot = block;
            }
        }
        self.blocks = kept;
        for (function, block) in self.functions.iter_mut().zip(blocks) {
            function.block = block;
        }
        before.saturating_sub(self.blocks.len())
    }
}

fn shared_already(before: &Described, function: &Described) -> bool {
    Described { start: function.start, size: function.size, padding: function.padding, ..*before }
        == *function
}
