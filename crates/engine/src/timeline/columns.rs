//! Boxes of tiles as columns of little-endian numbers.

use super::tile::{TileBox, TileRange};
use super::{SlicePlace, Timeline};

/// Most boxes of an answer.
pub const MAX_BOXES: usize = 200_000;

/// The columns of an answer, each as bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TileColumns {
    /// Number of boxes.
    pub num_boxes: usize,
    /// Tile, signed 32 bits.
    pub tile: Vec<u8>,
    /// Track, 16 bits.
    pub track: Vec<u8>,
    /// Depth, 16 bits.
    pub depth: Vec<u8>,
    /// Start of the longest slice after the first moment of the profile, as a 64-bit float.
    pub start: Vec<u8>,
    /// Its duration, as a 64-bit float.
    pub duration: Vec<u8>,
    /// Its symbol, 32 bits.
    pub symbol: Vec<u8>,
    /// Number of slices, 32 bits.
    pub count: Vec<u8>,
    /// Sum of their durations, as a 64-bit float.
    pub busy: Vec<u8>,
    /// Position of the longest in its row, 32 bits.
    pub index: Vec<u8>,
}

impl Timeline {
    /// The boxes of some rows in some tiles, by tile, row and start; `None` where there are more than [`MAX_BOXES`].
    #[must_use]
    pub fn tile_columns(&self, rows: &[(u32, u32)], range: &TileRange) -> Option<TileColumns> {
        let boxes = self.tiles(rows, range);
        let num_boxes = boxes.iter().map(Vec::len).sum::<usize>();
        if num_boxes > MAX_BOXES {
            return None;
        }
        let mut columns = TileColumns { num_boxes, ..TileColumns::default() };
        let rows = rows.iter().zip(&boxes);
        let mut parts: Vec<_> = rows
            .flat_map(|(row, boxes)| boxes.chunk_by(|a, b| a.tile == b.tile).map(move |part| (row, part)))
            .collect();
        // Stable: rows stay in their order.
        parts.sort_by_key(|(_, part)| part.first().map(|one| one.tile));
        for (&(track, depth), part) in parts {
            for &one in part {
                self.push_box(track, depth, one, &mut columns);
            }
        }
        Some(columns)
    }

    fn push_box(&self, track: u32, depth: u32, one: TileBox, columns: &mut TileColumns) {
        let TileBox { tile, count, busy_ns, position } = one;
        let Some(slice) = self.slice(SlicePlace { track, depth, position }) else { return };
        let Some(kind) = self.tracks().get(track as usize).map(|track| track.kind) else { return };
        let start = slice.start_ns.saturating_sub(self.zero_ns()) as f64;
        columns.tile.extend_from_slice(&tile.to_le_bytes());
        columns.track.extend_from_slice(&(track as u16).to_le_bytes());
        columns.depth.extend_from_slice(&(depth as u16).to_le_bytes());
        columns.start.extend_from_slice(&start.to_le_bytes());
        columns.duration.extend_from_slice(&(slice.duration_ns as f64).to_le_bytes());
        columns.symbol.extend_from_slice(&self.symbol(kind, slice.label).to_le_bytes());
        columns.count.extend_from_slice(&count.to_le_bytes());
        columns.busy.extend_from_slice(&(busy_ns as f64).to_le_bytes());
        columns.index.extend_from_slice(&position.to_le_bytes());
    }
}
