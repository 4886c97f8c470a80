//! Frames without a name.

use rustc_hash::FxHashMap;

use super::tree::CallTree;
use crate::NONE;

/// Frames without a name, of one reason and module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnnamedFrames {
    /// The reason.
    pub reason: String,
    /// Their file; empty where they have none.
    pub module: String,
    /// Number of frames, that is of addresses.
    pub frames: u64,
    /// Number of samples of the tree with such a frame innermost.
    pub leaf_samples: u64,
}

impl CallTree {
    /// Frames without a name by reason and module, those with the most samples first.
    #[must_use]
    pub fn unnamed(&self) -> Vec<UnnamedFrames> {
        let symbols = &self.symbols;
        let mut frames = vec![0u64; symbols.symbols.len()];
        // What of `of_frame` follows stands for samples without any frame, and for names that a transformation adds.
        for (&symbol, _) in symbols.of_frame.iter().zip(&symbols.on_stacks).filter(|&(_, &on_stack)| on_stack)
        {
            if let Some(count) = frames.get_mut(symbol as usize) {
                *count = count.saturating_add(1);
            }
        }
        let mut leaves = vec![0u64; symbols.symbols.len()];
        for node in self.nodes() {
            if let Some(count) = leaves.get_mut(node.symbol as usize) {
                *count = count.saturating_add(node.self_samples);
            }
        }
        let mut sums: FxHashMap<(u32, u32), (u64, u64)> = FxHashMap::default();
        for (symbol, (&num_frames, &num_leaves)) in symbols.symbols.iter().zip(frames.iter().zip(&leaves)) {
            if symbol.function_id == NONE && num_frames > 0 {
                let sum = sums.entry((symbol.unnamed_because, symbol.module)).or_default();
                sum.0 = sum.0.saturating_add(num_frames);
                sum.1 = sum.1.saturating_add(num_leaves);
            }
        }
        let text = |id, otherwise: &str| symbols.texts.get(id).unwrap_or(otherwise).to_owned();
        let mut rows: Vec<_> = sums
            .into_iter()
            .map(|((reason, module), (frames, leaf_samples))| UnnamedFrames {
                reason: text(reason, "no reason recorded"),
                module: text(module, ""),
                frames,
                leaf_samples,
            })
            .collect();
        rows.sort_by(|a, b| {
            let heavy = (b.leaf_samples, b.frames).cmp(&(a.leaf_samples, a.frames));
            heavy.then_with(|| (&a.reason, &a.module).cmp(&(&b.reason, &b.module)))
        });
        rows
    }
}
