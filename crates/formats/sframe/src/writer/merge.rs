//! Merges the units that a linker left side by side into one sorted section, and shares equal rows between functions.

use rustc_hash::FxHashMap;

use super::contents::{SectionContents, SectionFunction, WriteError};

/// The result of merging.
#[derive(Clone, Debug)]
pub struct MergedSection {
    /// The merged contents.
    pub contents: SectionContents,
    /// Number of removed functions that were equal to another one.
    pub duplicates: usize,
}

/// Merges contents of one version and ABI. Without the PCREL flag start addresses become relative to the section, as
/// readers expect of a merged section.
///
/// # Errors
/// When there is none, or they differ in version, ABI, or fixed offsets of the header.
pub fn merge(units: Vec<SectionContents>) -> Result<MergedSection, WriteError> {
    let error = |what| WriteError { function: None, what };
    let mut units = units.into_iter();
    let mut all = units.next().ok_or(error("there is nothing to merge"))?;
    for unit in units {
        if (unit.version, unit.abi, unit.endian) != (all.version, all.abi, all.endian) {
            return Err(error("sections of several versions or ABIs; convert them first"));
        }
        if (unit.fixed_fp, unit.fixed_ra) != (all.fixed_fp, all.fixed_ra) {
            return Err(error("sections whose headers have different fixed offsets"));
        }
        let first = all.blocks.len();
        all.blocks.extend(unit.blocks);
        let renumbered = |function: SectionFunction| SectionFunction {
            block: function.block.saturating_add(first),
            ..function
        };
        all.functions.extend(unit.functions.into_iter().map(renumbered));
    }
    all.sort();
    let before = all.functions.len();
    let functions = std::mem::take(&mut all.functions);
    let mut first_equal = FxHashMap::default();
    let equal: Vec<usize> = all
        .blocks
        .iter()
        .enumerate()
        .map(|(index, block)| *first_equal.entry(block).or_insert(index))
        .collect();
    let mut retained: Vec<SectionFunction> = Vec::with_capacity(functions.len());
    for function in functions {
        let is_duplicate = |other: &SectionFunction| {
            SectionFunction { block: function.block, ..*other } == function
                && equal.get(other.block) == equal.get(function.block)
        };
        // A function of size 0 may have the same start as another, so all fields are compared.
        if function.size == 0 || !retained.last().is_some_and(is_duplicate) {
            retained.push(function);
        }
    }
    let duplicates = before.saturating_sub(retained.len());
    all.functions = retained;
    Ok(MergedSection { contents: all, duplicates })
}

impl SectionContents {
    /// Shares blocks between functions with equal rows (in version 3, and equal attributes), and returns how many
    /// blocks that removes.
    pub fn share_rows(&mut self) -> usize {
        let before = self.blocks.len();
        let mut first_equal: FxHashMap<Vec<u8>, usize> = FxHashMap::default();
        let mut retained = Vec::new();
        let mut by_block: Vec<usize> = (0..self.functions.len()).collect();
        by_block.sort_by_key(|index| self.functions.get(*index).map(|function| (function.block, *index)));
        let mut blocks = vec![0; self.functions.len()];
        let mut last: Option<(SectionFunction, usize)> = None;
        for index in by_block {
            let Some(function) = self.functions.get(index) else { continue };
            if let (Some((before, block)), Some(slot)) = (last, blocks.get_mut(index))
                && shares_rows(&before, function)
            {
                *slot = block;
                continue;
            }
            let mut bytes = vec![function.info.fre_type()];
            // A block that cannot be encoded is not shared.
            if self.write_rows(function, &mut bytes).is_err() {
                bytes = index.to_le_bytes().to_vec();
            }
            let next = retained.len();
            let block = *first_equal.entry(bytes).or_insert(next);
            if block == next {
                retained.push(self.rows(function).to_vec());
            }
            last = Some((*function, block));
            if let Some(slot) = blocks.get_mut(index) {
                *slot = block;
            }
        }
        self.blocks = retained;
        for (function, block) in self.functions.iter_mut().zip(blocks) {
            function.block = block;
        }
        before.saturating_sub(self.blocks.len())
    }
}

/// Whether two functions of one block have equal attributes too.
fn shares_rows(before: &SectionFunction, function: &SectionFunction) -> bool {
    SectionFunction { start: function.start, size: function.size, padding: function.padding, ..*before }
        == *function
}
