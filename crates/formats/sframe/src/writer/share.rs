//! Smaller without loss: functions whose rows are byte for byte the same share them.

use rustc_hash::FxHashMap;

use super::{Contents, Described};

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
