//! Reads profiles (Profiling mode): call paths with sums that the runtime computed.

use std::ops::Range;

use rustc_hash::FxHashMap;

use perfuse_wire::{Cursor, Endian, ParseError};

use super::consts::HEADER_BYTES;
use super::ids::FunctionIds;
use super::layout::ProfileBlock;
use perfuse_recording::Source;

/// The block of a thread in a profile.
#[derive(Clone, Debug)]
pub struct ThreadBlock {
    /// Offset of its header.
    pub offset: u64,
    /// The block header.
    pub header: ProfileBlock,
    /// Range of its records, clipped to the file.
    pub records: Range<usize>,
    /// Number of call paths that can be read.
    pub num_paths: u64,
    /// Number of call paths whose time is less than that of the paths they call.
    pub num_short: u64,
    /// Why the rest cannot be read.
    pub broken: Option<ParseError>,
}

/// A call path with its sums.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfiledPath {
    /// Offset of the record.
    pub offset: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Function ids, innermost first.
    pub functions: Vec<i32>,
    /// Number of calls.
    pub calls: u64,
    /// Ticks in these calls, with those of their callees; see [`PathTimes`].
    pub ticks: i64,
}

/// The times of the call paths of one thread.
///
/// The runtime's "cumulative local time" contains callees: at each exit it adds the time since the entry of the call. Only where
/// an exit closes several calls, because `longjmp` or an exception left the inner ones, is the time of all inner calls subtracted
/// from that of each outer one, which may give less than nothing. A call that is open when the profile is written has no time.
/// So the time of a path is at least that of the paths one call longer.
#[derive(Debug, Default)]
pub struct PathTimes {
    nodes: Vec<PathNode>,
    children: FxHashMap<(u32, i32), u32>,
}

/// A call path of a [`PathTimes`]; the parent of a node has a lower number.
#[derive(Debug, Default)]
struct PathNode {
    parent: Option<u32>,
    ticks: i64,
    calls: u64,
    /// Ticks of the paths one call longer.
    callees: u64,
    total_ns: i64,
    /// Time of the paths one call longer.
    callees_ns: i64,
}

/// The times of a call path, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathTime {
    /// In its calls, with their callees.
    pub total_ns: i64,
    /// In its calls, without their callees.
    pub self_ns: i64,
}

impl PathTimes {
    /// Adds a path, and returns its number. Paths with the same functions have the same number.
    pub fn add(&mut self, path: &ProfiledPath) -> u32 {
        let mut parent = None;
        for &function in path.functions.iter().rev() {
            // Numbers from 1 on; 0 stands for the thread.
            let number = self.nodes.len() as u32;
            let key = (parent.map_or(0, |parent: u32| parent.saturating_add(1)), function);
            let node = *self.children.entry(key).or_insert(number);
            if node == number {
                self.nodes.push(PathNode { parent, ..PathNode::default() });
            }
            parent = Some(node);
        }
        let Some(node) = parent else { return u32::MAX };
        if let Some(node) = self.nodes.get_mut(node as usize) {
            node.ticks = node.ticks.saturating_add(path.ticks);
            node.calls = node.calls.saturating_add(path.calls);
        }
        node
    }

    /// Adds up callees, once all paths were added; `ns` converts a number of ticks. Returns the number of paths with less time
    /// than their callees.
    pub fn finish(&mut self, ns: impl Fn(u64) -> i64) -> u64 {
        let mut num_short = 0u64;
        for number in (0..self.nodes.len()).rev() {
            let Some(node) = self.nodes.get_mut(number) else { continue };
            let recorded = u64::try_from(node.ticks).unwrap_or(0);
            let is_short = node.ticks < 0 || recorded < node.callees;
            num_short = num_short.saturating_add(u64::from(is_short && node.calls > 0));
            let ticks = recorded.max(node.callees);
            // Each path is converted by itself, and self time is what remains, so that times add up exactly.
            node.total_ns = ns(ticks).max(node.callees_ns);
            let (total_ns, parent) = (node.total_ns, node.parent);
            if let Some(parent) = parent.and_then(|parent| self.nodes.get_mut(parent as usize)) {
                parent.callees = parent.callees.saturating_add(ticks);
                parent.callees_ns = parent.callees_ns.saturating_add(total_ns);
            }
        }
        num_short
    }

    /// The times of a path. After that they are 0: of several records with the same functions, the first has all of it.
    pub fn take(&mut self, path: u32) -> PathTime {
        let node = self.nodes.get_mut(path as usize).map(std::mem::take).unwrap_or_default();
        PathTime { total_ns: node.total_ns, self_ns: node.total_ns.saturating_sub(node.callees_ns) }
    }
}

/// The result of one pass over a profile.
#[derive(Debug, Default)]
pub struct ProfileSurvey {
    /// All blocks.
    pub blocks: Vec<ThreadBlock>,
    /// Why reading ended before the end of the file.
    pub broken: Option<ParseError>,
    /// All function ids, ascending, as unsigned numbers.
    pub function_ids: Vec<u32>,
    /// Number of call paths.
    pub num_paths: u64,
}

/// Reads the call path at the cursor.
///
/// # Errors
/// When the bytes end inside it.
pub fn read_path(cursor: &mut Cursor<'_>) -> Result<ProfiledPath, ParseError> {
    let offset = cursor.offset();
    let mut functions = Vec::new();
    loop {
        match cursor.i32("function_id")? {
            0 => break,
            id => functions.push(id),
        }
    }
    let calls = cursor.u64("call_count")?;
    let ticks = cursor.i64("cumulative_local_time")?;
    Ok(ProfiledPath { offset, size: cursor.offset().saturating_sub(offset), functions, calls, ticks })
}

impl ThreadBlock {
    /// A cursor over its records.
    #[must_use]
    pub fn cursor<'a>(&self, data: &'a [u8], endian: Endian) -> Cursor<'a> {
        let bytes = data.get(self.records.clone()).unwrap_or_default();
        Cursor::new(bytes, self.records.start as u64, endian)
    }
}

impl ProfileSurvey {
    /// Reads all blocks and call paths.
    #[must_use]
    pub fn new(source: &Source, endian: Endian) -> Self {
        let mut survey = Self::default();
        let mut ids = FunctionIds::default();
        let mut at = HEADER_BYTES;
        while let Some(bytes) = source.get(at..).filter(|bytes| !bytes.is_empty()) {
            let mut cursor = Cursor::new(bytes, at as u64, endian);
            let header = match ProfileBlock::read(&mut cursor) {
                Ok(header) => header,
                Err(error) => {
                    survey.broken = Some(error);
                    break;
                }
            };
            let begin = at.saturating_add(ProfileBlock::SIZE as usize);
            let end = at.saturating_add(header.size as usize).max(begin);
            let records = begin..end.min(source.len());
            let mut block =
                ThreadBlock { offset: at as u64, header, records, num_paths: 0, num_short: 0, broken: None };
            let mut cursor = block.cursor(source, endian);
            let mut times = PathTimes::default();
            while cursor.remaining() > 0 {
                match read_path(&mut cursor) {
                    Ok(path) => {
                        block.num_paths = block.num_paths.saturating_add(1);
                        times.add(&path);
                        path.functions.iter().for_each(|id| ids.insert(id.cast_unsigned()));
                    }
                    Err(error) => {
                        block.broken = Some(error);
                        break;
                    }
                }
            }
            block.num_short = times.finish(|_| 0);
            survey.num_paths = survey.num_paths.saturating_add(block.num_paths);
            survey.blocks.push(block);
            at = end;
        }
        survey.function_ids = ids.sorted();
        survey
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Totals, self times and the number of short paths, of paths given from the outermost function on.
    fn times(paths: &[(&[i32], u64, i64)]) -> (Vec<(i64, i64)>, u64) {
        let mut times = PathTimes::default();
        let path = |&(functions, calls, ticks): &(&[i32], u64, i64)| ProfiledPath {
            offset: 0,
            size: 0,
            functions: functions.iter().rev().copied().collect(),
            calls,
            ticks,
        };
        let numbers: Vec<u32> = paths.iter().map(|row| times.add(&path(row))).collect();
        let num_short = times.finish(|ticks| ticks.try_into().unwrap_or(i64::MAX));
        let time = |number| times.take(number);
        (numbers.into_iter().map(time).map(|time| (time.total_ns, time.self_ns)).collect(), num_short)
    }

    #[test]
    fn recorded_times_contain_callees() {
        let rows: [(&[i32], u64, i64); 3] = [(&[4], 1, 270), (&[4, 3], 10, 268), (&[4, 3, 2], 10, 210)];
        assert_eq!(times(&rows), (vec![(270, 2), (268, 58), (210, 210)], 0));
        // In any order, and where the path between two others is not in the file.
        assert_eq!(times(&[rows[2], rows[0]]), (vec![(210, 210), (270, 60)], 0));
        assert_eq!(times(&[rows[0], rows[0]]), (vec![(540, 540), (0, 0)], 0));
    }

    #[test]
    fn calls_left_together_have_the_time_of_their_callees() {
        // The runtime closes 3, 2 and 1 after 80, 90 and 100 ticks: 80, 90 - 80, 100 - 80 - 90.
        let rows: [(&[i32], u64, i64); 3] = [(&[1], 1, -70), (&[1, 2], 1, 10), (&[1, 2, 3], 1, 80)];
        assert_eq!(times(&rows), (vec![(80, 0), (80, 0), (80, 80)], 2));
    }

    #[test]
    fn an_open_call_has_the_time_of_its_callees() {
        assert_eq!(times(&[(&[1], 0, 0), (&[1, 2], 1, 9)]), (vec![(9, 0), (9, 9)], 0));
        assert_eq!(times(&[(&[], 1, 9)]), (vec![(0, 0)], 0));
        assert_eq!(times(&[(&[1], 1, i64::MIN), (&[1, 2], 1, i64::MAX)]).1, 1);
    }
}
