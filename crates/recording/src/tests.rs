//! Conversion of time stamps, compared with exact integers of 128 bits; files that cannot be mapped.

use proptest::prelude::*;

use crate::{ClockMap, Source};

const EARLIEST: i128 = -(1 << 61);
const LATEST: i128 = 1 << 62;

/// The time by its definition, rounded down and cut to what a profile's clock shows.
fn exact(map: &ClockMap, ticks: u64) -> i128 {
    let scaled = i128::from(ticks) * i128::from(map.numerator) / i128::from(map.denominator);
    (scaled.min(i128::from(i64::MAX)) + i128::from(map.offset_ns)).clamp(EARLIEST, LATEST)
}

#[test]
fn damaged_time_stamps_become_the_first_or_last_time() {
    let clock = |offset_ns| ClockMap { numerator: 1_000_000_000, denominator: 2_400_000_000, offset_ns };
    let nanoseconds = ClockMap::default();
    assert_eq!(nanoseconds.ns(1 << 62), 1 << 62);
    assert_eq!(nanoseconds.ns((1 << 62) + 1), 1 << 62);
    assert_eq!(nanoseconds.ns(u64::MAX), 1 << 62);
    assert_eq!(clock(i64::MAX).ns(u64::MAX), 1 << 62);
    assert_eq!(clock(i64::MIN).ns(0), -(1 << 61));
    assert_eq!(clock(i64::MIN).around(12).ns(0), -(1 << 61));
    assert_eq!(clock(i64::MAX).around(7).ns(u64::MAX >> 1), 1 << 62);
    let (first, last) = (clock(i64::MIN).ns(0), nanoseconds.ns(u64::MAX));
    assert!(last.checked_sub(first).is_some(), "the difference of two times fits into 64 bits");
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_cannot_be_mapped_is_copied() {
    assert!(Source::open("/proc/self/status").unwrap().starts_with(b"Name:"));
    assert!(Source::open("/proc/self/absent").is_err());
}

proptest! {
    #[test]
    fn nanoseconds_are_moved_exactly(ticks: u64, small in 0..1u64 << 40, offset_ns: i64, near in -(1i64 << 40)..1 << 40) {
        for offset_ns in [offset_ns, near, -(1 << 61) + near, (1 << 61) + near] {
            let map = ClockMap { numerator: 1, denominator: 1, offset_ns };
            for ticks in [ticks, small, (1 << 61) - small, (1 << 61) + small] {
                prop_assert_eq!(i128::from(map.ns(ticks)), exact(&map, ticks));
            }
        }
    }

    #[test]
    fn time_stamps_are_converted_exactly(
        ticks: u64,
        numerator in 1..1u64 << 40,
        denominator in 1..1u64 << 40,
        offset_ns: i64,
    ) {
        let map = ClockMap { numerator, denominator, offset_ns };
        prop_assert_eq!(i128::from(map.ns(ticks)), exact(&map, ticks));
    }

    #[test]
    fn near_a_base_the_time_is_exact_to_a_nanosecond(
        base in 1u64 << 45..1 << 50,
        away in -(1i64 << 40)..1 << 40,
        hz in 1_000_000..5_000_000_000u64,
        offset_ns in -(1i64 << 60)..1 << 60,
    ) {
        let map = ClockMap { numerator: 1_000_000_000, denominator: hz, offset_ns };
        let ticks = base.wrapping_add_signed(away);
        let apart = i128::from(map.around(base).ns(ticks)) - exact(&map, ticks);
        prop_assert!((-1..=1).contains(&apart), "{} ns apart", apart);
    }
}
