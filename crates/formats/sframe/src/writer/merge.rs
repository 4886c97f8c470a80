//! One sorted section from the several that a linker put one behind the other.

use rustc_hash::FxHashMap;

use super::{Contents, Described, WriteError};

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
