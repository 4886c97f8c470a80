//! Rows, indexes and tiles, compared with plain loops over the slices.

use proptest::prelude::*;

use super::row::{SliceRow, TimelineSlice};
use super::tile::{TILE_BUCKETS, TileRange, tile_boxes};

fn row_of(slices: &[(i64, u64)]) -> SliceRow {
    let mut row = SliceRow::default();
    for (label, &(start_ns, duration_ns)) in (0u32..).zip(slices) {
        assert!(row.push(TimelineSlice { start_ns, duration_ns, label }));
    }
    row.finish();
    row
}

/// Slices of up to 300 starts and durations of any size, overlapping or not.
fn slices() -> impl Strategy<Value = Vec<(i64, u64)>> {
    let duration = prop_oneof![0u64..50, 0u64..5_000, 0u64..(1 << 34)];
    prop::collection::vec((-20_000i64..200_000, duration), 0..300)
}

#[test]
fn a_row_of_nothing_answers() {
    let row = row_of(&[]);
    assert_eq!((row.len(), row.span_ns(), row.sum(0, 5), row.longest(0, 5)), (0, None, 0, None));
    assert!(tile_boxes(&row, &TileRange { k: 3, tiles: -2..9, zero_ns: 0 }).is_empty());
}

#[test]
fn a_duration_of_more_than_32_bits_is_exact() {
    let long = u64::from(u32::MAX) + 17;
    let row = row_of(&[(0, u64::from(u32::MAX)), (1 << 40, long)]);
    assert_eq!(row.get(0).unwrap().duration_ns, u64::from(u32::MAX));
    assert_eq!(row.get(1).unwrap().duration_ns, long);
    assert_eq!(row.longest(0, 2), Some(1));
}

#[test]
fn many_slices_of_a_bucket_are_one_box_with_their_number_and_sum() {
    // Two long calls among a thousand short ones, in the first bucket of 2^20 ns.
    let mut all: Vec<(i64, u64)> = (0..1000).map(|n| (n * 10, 4 + u64::from(n == 500))).collect();
    all.push((10_000, 1 << 20));
    let row = row_of(&all);
    let boxes = tile_boxes(&row, &TileRange { k: 20, tiles: 0..1, zero_ns: 0 });
    let seen: Vec<_> = boxes.iter().map(|one| (one.count, one.busy_ns, one.position)).collect();
    assert_eq!(seen, [(1000, 4001, 500), (1, 1 << 20, 1000)]);
}

proptest! {
    #[test]
    fn the_index_equals_a_loop(slices in slices(), from in 0usize..310, num in 0usize..310) {
        let row = row_of(&slices);
        let to = (from + num).min(row.len());
        let from = from.min(to);
        let durations: Vec<u64> = (from..to).map(|at| row.get(at).unwrap().duration_ns).collect();
        prop_assert_eq!(row.sum(from, to), durations.iter().sum::<u64>());
        let longest = durations.iter().max().map(|most| from + durations.iter().position(|one| one == most).unwrap());
        prop_assert_eq!(row.longest(from, to), longest);
    }

    #[test]
    fn a_slice_that_reaches_is_found(slices in slices(), ts_ns in -30_000i64..300_000) {
        let row = row_of(&slices);
        let first = (0..row.len()).find(|&at| row.get(at).unwrap().end_ns() > ts_ns).unwrap_or(row.len());
        // Where nothing that starts before reaches the time, the first one after it may be named instead.
        let found = row.reaching(ts_ns);
        prop_assert!(found == first || (found <= first && found == row.starting_before(ts_ns)));
    }

    #[test]
    fn tiles_equal_a_loop(slices in slices(), k in 0u32..14, zero_ns in -50_000i64..50_000, first in -3i32..40) {
        let row = row_of(&slices);
        let (bucket, tile_ns) = (1i64 << k, TILE_BUCKETS << k);
        let boxes = tile_boxes(&row, &TileRange { k, tiles: first..first + 3, zero_ns });
        let mut expected = Vec::new();
        for tile in first..first + 3 {
            let start = zero_ns + i64::from(tile) * tile_ns;
            let all = (0..row.len()).map(|at| (at as u32, row.get(at).unwrap()));
            let is_long = |slice: &TimelineSlice| slice.duration_ns >= bucket as u64;
            expected.extend(all.clone().filter(|(_, one)| is_long(one)).filter(|(_, one)| {
                one.start_ns < start + tile_ns && (one.start_ns >= start || one.end_ns() > start)
            }).map(|(at, one)| (tile, 1, one.duration_ns, at, one.duration_ns)));
            for number in 0..TILE_BUCKETS {
                let (from, to) = (start + number * bucket, start + (number + 1) * bucket);
                let short: Vec<_> = all.clone()
                    .filter(|(_, one)| !is_long(one) && (from..to).contains(&one.start_ns)).collect();
                if let Some(most) = short.iter().map(|(_, one)| one.duration_ns).max() {
                    let (at, _) = short.iter().find(|(_, one)| one.duration_ns == most).unwrap();
                    let busy = short.iter().map(|(_, one)| one.duration_ns).sum();
                    expected.push((tile, short.len() as u32, busy, *at, most));
                }
            }
        }
        let mut found: Vec<_> = boxes.iter().map(|one| {
            let longest = row.get(one.position as usize).unwrap().duration_ns;
            (one.tile, one.count, one.busy_ns, one.position, longest)
        }).collect();
        expected.sort_unstable();
        found.sort_unstable();
        prop_assert_eq!(found, expected);
    }
}
