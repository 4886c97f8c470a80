//! JIT code as mappings of the files it was written to, for tools that resolve addresses by mappings only.

use crate::code_map::CodeMap;
use perfuse_binaries::elf_image::tables::PlacedCode;

/// Contents of an address range from a time on, until a later mapping replaces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeMapping {
    /// Key of the process.
    pub process_id: u32,
    /// Time of its start.
    pub ts_ns: i64,
    /// First address.
    pub start_address: u64,
    /// Length in bytes.
    pub size: u64,
    /// Offset of its code in the process's image; `None` where code ended and none replaced it.
    pub file_offset: Option<u64>,
}

/// Mappings, in time order, from which a reader that lets the latest mapping win finds the right code at every address and
/// time.
///
/// There is one for each interval in which code is at an address. Where code ends and its successor does not cover its whole
/// range, an empty mapping ends the rest. Code that is not in an image is left out. `placed` ascends by `code_object_id`.
#[must_use]
pub fn code_mappings(codes: &CodeMap, placed: &[PlacedCode]) -> Vec<CodeMapping> {
    let mut mappings = Vec::with_capacity(placed.len());
    for (process_id, space) in codes.spaces() {
        for interval in space.intervals() {
            let found = placed.binary_search_by_key(&interval.id, |code| code.code_object_id);
            let Some(code) = found.ok().and_then(|at| placed.get(at)) else { continue };
            let size = interval.end.saturating_sub(interval.start).min(code.size);
            let start_address = interval.start;
            let mapping =
                |ts_ns, file_offset| CodeMapping { process_id, ts_ns, start_address, size, file_offset };
            mappings.push(mapping(interval.from_ns, Some(code.file_offset)));
            let next = space.find(interval.start, interval.until_ns);
            let is_covered = next.is_some_and(|next| next.end >= interval.end);
            if interval.until_ns != i64::MAX && !is_covered {
                mappings.push(mapping(interval.until_ns, None));
            }
        }
    }
    // At one time, ends precede starts.
    mappings.sort_by_key(|mapping| (mapping.ts_ns, mapping.file_offset.is_some()));
    mappings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code_map;
    use perfuse_tables::{code_moves, code_objects};

    fn mappings(code: &[(i64, Option<i64>, u64, u64)], moves: &[(u32, i64, u64, u64)]) -> Vec<CodeMapping> {
        let mut codes = code_objects::Builder::new();
        let mut placed = Vec::new();
        for (id, &(create, retire, start, size)) in (0..).zip(code) {
            codes.push(id, 0, 1, None, "jit", None, create, retire, start, size, None, 0, 0, 0);
            let file_offset = 0x1000 + 0x1000 * u64::from(id);
            placed.push(PlacedCode { code_object_id: id, process_id: 1, file_offset, size });
        }
        let mut moved = code_moves::Builder::new();
        moves.iter().for_each(|&(id, at, old, new)| moved.push(id, at, old, new, 0, 0));
        code_mappings(&code_map::of_tables(&[codes.finish()], &[moved.finish()]).unwrap(), &placed)
    }

    fn shown(mappings: &[CodeMapping]) -> Vec<(i64, u64, u64, Option<u64>)> {
        mappings.iter().map(|m| (m.ts_ns, m.start_address, m.size, m.file_offset)).collect()
    }

    #[test]
    fn code_whose_successor_covers_it_needs_no_end() {
        let found = mappings(&[(10, Some(20), 0x100, 0x80), (20, None, 0x80, 0x200)], &[]);
        assert_eq!(shown(&found), [(10, 0x100, 0x80, Some(0x1000)), (20, 0x80, 0x200, Some(0x2000))]);
    }

    #[test]
    fn the_rest_of_old_code_ends_before_new_code_starts() {
        let found = mappings(&[(10, Some(20), 0x100, 0x80), (20, None, 0x140, 0x200)], &[]);
        let expected =
            [(10, 0x100, 0x80, Some(0x1000)), (20, 0x100, 0x80, None), (20, 0x140, 0x200, Some(0x2000))];
        assert_eq!(shown(&found), expected);
    }

    #[test]
    fn moved_code_is_mapped_twice_from_one_file_offset() {
        let found = mappings(&[(10, None, 0x100, 0x80)], &[(0, 15, 0x100, 0x900)]);
        let expected =
            [(10, 0x100, 0x80, Some(0x1000)), (15, 0x100, 0x80, None), (15, 0x900, 0x80, Some(0x1000))];
        assert_eq!(shown(&found), expected);
    }

    #[test]
    fn code_outside_images_is_left_out() {
        let mut codes = code_objects::Builder::new();
        codes.push(3, 0, 1, None, "jit", None, 0, None, 0x100, 0x10, None, 0, 0, 0);
        let codes = code_map::of_tables(&[codes.finish()], &[]).unwrap();
        assert!(code_mappings(&codes, &[]).is_empty());
    }
}
