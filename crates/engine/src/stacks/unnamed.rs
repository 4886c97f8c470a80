//! What has no name, and why.

use rustc_hash::FxHashMap;

use super::NONE;
use super::tree::CallTree;

/// Frames without a name, of one reason and module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unnamed {
    /// Why.
    pub reason: String,
    /// File they are in; empty where they are in none.
    pub module: String,
    /// Number of frames: of addresses, that is.
    pub frames: u64,
    /// Samples of the tree that have one innermost.
    pub leaf_samples: u64,
}

impl CallTree {
    /// Frames without a name by reason and module, those that hide most samples first.
    #[must_use]
    pub fn unnamed(&self) -> Vec<Unnamed> {
        let symbols = &self.symbols;
        let mut frames = vec![0u64; symbols.symbols.len()];
        // The last stands for samples without any frame.
        for &symbol in symbols.of_frame.split_last().map_or(&[][..], |(_, of_frame)| of_frame) {
            frames[symbol as usize] += 1;
        }
        let mut leaves = vec![0u64; symbols.symbols.len()];
        for node in self.nodes() {
            leaves[node.symbol as usize] += node.self_samples;
        }
        let mut sums: FxHashMap<(u32, u32), (u64, u64)> = FxHashMap::default();
        for (number, symbol) in symbols.symbols.iter().enumerate() {
            if symbol.function_id == NONE && frames[number] > 0 {
                let sum = sums.entry((symbol.unnamed_because, symbol.module)).or_default();
                sum.0 += frames[number];
                sum.1 += leaves[number];
            }
        }
        let said = |id, otherwise: &str| symbols.texts.get(id).unwrap_or(otherwise).to_owned();
        let mut rows: Vec<_> = sums
            .into_iter()
            .map(|((reason, module), (frames, leaf_samples))| Unnamed {
                reason: said(reason, "no reason recorded"),
                module: said(module, ""),
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
