//! The table of source files of a unit.

use rustc_hash::FxHashMap;

use super::image::Error;
use super::strings::StringSection;

/// The source files of one unit, numbered in the order of their first use.
#[derive(Debug, Default)]
pub(super) struct UnitFiles {
    paths: Vec<u32>,
    by_path: FxHashMap<u32, u32>,
    /// The file that was looked up last: rows of a function often have the same one.
    last: Option<(String, u32)>,
}

impl UnitFiles {
    /// Files of a new unit. File 0 stands for the unit itself.
    pub fn reset(&mut self, unit: u32) {
        self.paths.clear();
        self.by_path.clear();
        self.last = None;
        self.paths.push(unit);
    }

    /// Number of a file, from 1; 0 for no file, as rows of line 0 have: gdb 13 crashes on an empty path.
    #[inline]
    pub fn index(&mut self, path: &str, strings: &mut StringSection) -> Result<u32, Error> {
        match &self.last {
            Some((last, index)) if last == path => Ok(*index),
            _ if path.is_empty() => Ok(0),
            _ => self.find_or_add(path, strings),
        }
    }

    fn find_or_add(&mut self, path: &str, strings: &mut StringSection) -> Result<u32, Error> {
        let offset = strings.intern(local_path(path))?;
        let next = self.paths.len() as u32;
        let index = *self.by_path.entry(offset).or_insert(next);
        if index == next {
            self.paths.push(offset);
        }
        let mut last = self.last.take().map_or_else(String::new, |(text, _)| text);
        path.clone_into(&mut last);
        self.last = Some((last, index));
        Ok(index)
    }

    /// Offsets of the paths in `.debug_line_str`.
    pub fn paths(&self) -> &[u32] {
        &self.paths
    }
}

/// JavaScript modules are named by URL; debuggers look for files.
fn local_path(path: &str) -> &str {
    path.strip_prefix("file://").filter(|rest| rest.starts_with('/')).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_number_in_a_unit() {
        let mut strings = StringSection::new(".debug_line_str");
        let mut files = UnitFiles::default();
        files.reset(0);
        let numbers = ["/a.js", "/a.js", "/b.js", "file:///a.js", "node:fs", "file://host/a.js"]
            .map(|path| files.index(path, &mut strings).unwrap());
        assert_eq!(numbers, [1, 1, 2, 1, 3, 4]);
        assert_eq!(files.index("", &mut strings).unwrap(), 0);
        assert_eq!(files.paths().len(), 5);
        files.reset(0);
        assert_eq!(files.index("node:fs", &mut strings).unwrap(), 1);
    }
}
