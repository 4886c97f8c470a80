//! Tiles: what a part of the timeline shows at a resolution.
//!
//! A bucket has 2^k nanoseconds, a tile 512 buckets; both are counted from the first moment of the profile. A slice that
//! is at least as long as a bucket is a box of its own, in every tile that it reaches into. Shorter slices are merged
//! into a box for each bucket in which some of them start. So each slice is in exactly one box of the tile in which it
//! starts, and numbers and sums of any tiles add up.

use std::ops::Range;

use super::row::SliceRow;

/// Buckets of a tile.
pub const TILE_BUCKETS: i64 = 512;

/// The coarsest resolution.
pub const MAX_K: u32 = 48;

/// Slices of up to this many are compared one by one.
const FEW: usize = 32;

/// A box of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileBox {
    /// Tile.
    pub tile: i32,
    /// Number of slices.
    pub count: u32,
    /// Sum of their durations.
    pub busy_ns: u64,
    /// Position of the longest of them in its row.
    pub position: u32,
}

/// Part of a row: its tiles `tiles` at resolution `k`, on a clock whose first moment is `zero_ns`.
#[derive(Clone, Debug)]
pub struct TileRange {
    /// Buckets have 2^k nanoseconds.
    pub k: u32,
    /// First tile, and the one after the last.
    pub tiles: Range<i32>,
    /// First moment of the profile.
    pub zero_ns: i64,
}

impl TileRange {
    fn bucket_ns(&self) -> i64 {
        1i64 << self.k.min(MAX_K)
    }

    fn tile_ns(&self) -> i64 {
        self.bucket_ns().saturating_mul(TILE_BUCKETS)
    }

    /// Start of a tile on the profile's clock.
    fn tile_start(&self, tile: i32) -> i64 {
        self.zero_ns.saturating_add(self.tile_ns().saturating_mul(i64::from(tile)))
    }
}

/// The boxes of a row, by tile and start.
#[must_use]
pub fn tile_boxes(row: &SliceRow, range: &TileRange) -> Vec<TileBox> {
    let mut boxes = Vec::new();
    let (Some((first_ns, last_ns)), bucket_ns) = (row.span_ns(), range.bucket_ns()) else { return boxes };
    let Some(buckets) = u64::try_from(bucket_ns).ok() else { return boxes };
    let mut tiles = range.tiles.clone();
    // Tiles in which nothing is recorded cost nothing, however many are requested.
    let of = |ts_ns: i64| {
        let tile = ts_ns.saturating_sub(range.zero_ns).div_euclid(range.tile_ns());
        i32::try_from(tile).unwrap_or(if tile < 0 { i32::MIN } else { i32::MAX })
    };
    tiles = tiles.start.max(of(first_ns))..tiles.end.min(of(last_ns).saturating_add(1));
    for tile in tiles {
        let (from_ns, to_ns) = (range.tile_start(tile), range.tile_start(tile.saturating_add(1)));
        let mut position = row.starting_before(from_ns);
        // Slices that start before the tile and reach into it.
        for earlier in row.reaching(from_ns)..position {
            if row.duration(earlier) >= buckets
                && row.get(earlier).is_some_and(|slice| slice.end_ns() > from_ns)
            {
                boxes.push(alone(row, tile, earlier));
            }
        }
        while let Some(slice) = row.get(position).filter(|slice| slice.start_ns < to_ns) {
            let bucket = slice.start_ns.saturating_sub(from_ns).div_euclid(bucket_ns);
            let bucket_end = from_ns.saturating_add(bucket.saturating_add(1).saturating_mul(bucket_ns));
            let end = row.starting_before_from(bucket_end.min(to_ns), position);
            let end = end.max(position.saturating_add(1));
            add_bucket(row, tile, position..end, buckets, &mut boxes);
            position = end;
        }
    }
    boxes
}

fn alone(row: &SliceRow, tile: i32, position: usize) -> TileBox {
    TileBox { tile, count: 1, busy_ns: row.duration(position), position: position as u32 }
}

/// The boxes of the slices that start in a bucket.
fn add_bucket(row: &SliceRow, tile: i32, slices: Range<usize>, bucket_ns: u64, boxes: &mut Vec<TileBox>) {
    if slices.len() == 1 {
        boxes.push(alone(row, tile, slices.start));
        return;
    }
    let mut long = Vec::new();
    let mut short: Option<(u64, usize)> = None;
    let mut consider = |position: usize| {
        let duration = row.duration(position);
        if duration >= bucket_ns {
            long.push(position);
        } else if short.is_none_or(|(most, _)| duration > most) {
            short = Some((duration, position));
        }
    };
    if slices.len() <= FEW {
        slices.clone().for_each(&mut consider);
    } else {
        // The longest of a range is long, or none of it is; on both sides of a long one there may be others.
        let mut open = vec![slices.clone()];
        while let Some(part) = open.pop() {
            let Some(longest) = row.longest(part.start, part.end) else { continue };
            if row.duration(longest) >= bucket_ns {
                open.push(longest.saturating_add(1)..part.end);
                open.push(part.start..longest);
            }
            consider(longest);
        }
        long.sort_unstable();
    }
    let long_ns = long.iter().fold(0u64, |sum, &position| sum.saturating_add(row.duration(position)));
    let first = boxes.len();
    if let Some((_, position)) = short {
        let count = slices.len().saturating_sub(long.len()) as u32;
        let busy_ns = row.sum(slices.start, slices.end).saturating_sub(long_ns);
        boxes.push(TileBox { tile, count, busy_ns, position: position as u32 });
    }
    boxes.extend(long.into_iter().map(|position| alone(row, tile, position)));
    if let Some(added) = boxes.get_mut(first..) {
        added.sort_unstable_by_key(|one| one.position);
    }
}
