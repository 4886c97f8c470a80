//! JIT code as mappings of the files it was written to, for tools that know addresses by mappings only.

use crate::code_map::CodeMap;
use perfuse_binaries::elf_image::tables::PlacedCode;

/// What a range of addresses holds from a time on, until the next says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeMapping {
    /// Process.
    pub process_id: u32,
    /// Since when.
    pub ts_ns: i64,
    /// First address.
    pub start_address: u64,
    /// Length in bytes.
    pub size: u64,
    /// Place of its code in the process's image; `None` where code is gone and none came.
    pub file_offset: Option<u64>,
}

/// The mappings that make every address name the code it held, at any time, where the latest mapping wins; by time.
///
/// One for each life of a piece of code at an address. Where a life ends and not all of its range is taken by what follows,
/// there is one that says so, for else the old code would go on to name the rest. Code that has no place in an image is left
/// out. `placed` ascends by `code_object_id`.
#[must_use]
pub fn code_mappings(codes: &CodeMap, placed: &[PlacedCode]) -> Vec<CodeMapping> {
    let mut mappings = Vec::with_capacity(placed.len());
    for (process_id, space) in codes.spaces() {
        for life in space.intervals() {
            let Ok(at) = placed.binary_search_by_key(&life.id, |code| code.code_object_id) else { continue };
            let size = (life.end - life.start).min(placed[at].size);
            let start_address = life.start;
            let mapping =
                |ts_ns, file_offset| CodeMapping { process_id, ts_ns, start_address, size, file_offset };
            mappings.push(mapping(life.from_ns, Some(placed[at].file_offset)));
            let taken = space.find(life.start, life.until_ns).is_some_and(|next| next.end >= life.end);
            if life.until_ns != i64::MAX && !taken {
                mappings.push(mapping(life.until_ns, None));
            }
        }
    }
    // What is gone at a time makes room for what comes at that time.
    mappings.sort_by_key(|mapping| (mapping.ts_ns, mapping.file_offset.is_some()));
    mappings
}

#[cfg(test)]
mod tests {
    use super::*;
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
        code_mappings(&CodeMap::new(&[codes.finish()], &[moved.finish()]).unwrap(), &placed)
    }

    fn shown(mappings: &[CodeMapping]) -> Vec<(i64, u64, u64, Option<u64>)> {
        mappings.iter().map(|m| (m.ts_ns, m.start_address, m.size, m.file_offset)).collect()
    }

    #[test]
    fn code_that_is_covered_whole_needs_no_end() {
        let found = mappings(&[(10, Some(20), 0x100, 0x80), (20, None, 0x80, 0x200)], &[]);
        assert_eq!(shown(&found), [(10, 0x100, 0x80, Some(0x1000)), (20, 0x80, 0x200, Some(0x2000))]);
    }

    #[test]
    fn what_is_left_of_old_code_is_taken_away_before_new_code_comes() {
        let found = mappings(&[(10, Some(20), 0x100, 0x80), (20, None, 0x140, 0x200)], &[]);
        let expected =
            [(10, 0x100, 0x80, Some(0x1000)), (20, 0x100, 0x80, None), (20, 0x140, 0x200, Some(0x2000))];
        assert_eq!(shown(&found), expected);
    }

    #[test]
    fn a_move_is_a_second_life_of_the_same_place_in_the_file() {
        let found = mappings(&[(10, None, 0x100, 0x80)], &[(0, 15, 0x100, 0x900)]);
        let expected =
            [(10, 0x100, 0x80, Some(0x1000)), (15, 0x100, 0x80, None), (15, 0x900, 0x80, Some(0x1000))];
        assert_eq!(shown(&found), expected);
    }

    #[test]
    fn code_without_a_place_is_left_out() {
        let mut codes = code_objects::Builder::new();
        codes.push(3, 0, 1, None, "jit", None, 0, None, 0x100, 0x10, None, 0, 0, 0);
        let codes = CodeMap::new(&[codes.finish()], &[]).unwrap();
        assert!(code_mappings(&codes, &[]).is_empty());
    }
}
