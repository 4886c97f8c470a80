//! Which frames of native code are of one function, where several functions of a file have one name: static functions of C, and
//! inlined copies of them.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::resolve::{DEFERRED_MODULE, FrameFunction, NO_MODULE, ResolvedFrame};

/// Functions of a file that have one name: the file, the name in it, the shown name, the line.
pub(super) type NativeName<'a> = (u32, &'a str, &'a str, Option<u32>);

/// What distinguishes functions of one name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Mark<'a> {
    /// The address of a symbol.
    Address(u64),
    /// The source file of a position in the function.
    Path(Cow<'a, str>),
}

/// One of the functions of a name.
#[derive(Clone, Debug, Default)]
pub(super) struct OneOfName<'a> {
    /// Its number, from 0.
    pub(super) number: u32,
    /// Its source file, where there are several, with samples or without, and it is known.
    pub(super) path: Option<Cow<'a, str>>,
}

/// The functions of each name that several have: those with an address or a source file in common are one.
#[derive(Debug, Default)]
pub(super) struct SameNames<'a> {
    functions: FxHashMap<(NativeName<'a>, Mark<'a>), OneOfName<'a>>,
}

impl<'a> SameNames<'a> {
    /// Of all frames of a join.
    pub(super) fn of(frames: impl Iterator<Item = &'a ResolvedFrame>) -> Self {
        let mut groups: FxHashMap<NativeName<'a>, Groups<'a>> = FxHashMap::default();
        for frame in frames {
            let Some((name, address, path)) = marks(frame) else { continue };
            let group = groups.entry(name).or_default();
            group.add(address, path);
            group.has_others |= matches!(frame.function, FrameFunction::Native { shares_name: true, .. });
        }
        let mut functions = FxHashMap::default();
        for (name, mut groups) in groups {
            if groups.marks.len() > 1 || groups.has_others {
                functions.extend(groups.functions().into_iter().map(|(mark, one)| ((name, mark), one)));
            }
        }
        Self { functions }
    }

    /// Which of the functions of its name a frame's is.
    pub(super) fn find(&self, frame: &'a ResolvedFrame) -> OneOfName<'a> {
        let Some((name, address, path)) = marks(frame) else { return OneOfName::default() };
        let mark = address.or(path);
        mark.and_then(|mark| self.functions.get(&(name, mark))).cloned().unwrap_or_default()
    }
}

/// The name of a frame's function in a program or library, and what distinguishes it.
#[allow(clippy::type_complexity)]
fn marks(frame: &ResolvedFrame) -> Option<(NativeName<'_>, Option<Mark<'_>>, Option<Mark<'_>>)> {
    let FrameFunction::Native { module, linkage_name, name, symbol_address, line, .. } = &frame.function
    else {
        return None;
    };
    // Names in perf maps are of code that is compiled several times; a function may have a stub in several sections.
    if matches!(*module, NO_MODULE | DEFERRED_MODULE) || linkage_name.ends_with("plt") {
        return None;
    }
    let address = symbol_address.map(Mark::Address);
    let path = frame.position.path.as_deref().map(|path| Mark::Path(plain_path(path)));
    Some(((*module, linkage_name, name, *line), address, path))
}

/// Marks of the functions of one name; those of one function are linked, each with one that was added earlier.
#[derive(Debug, Default)]
struct Groups<'a> {
    marks: Vec<Mark<'a>>,
    links: Vec<usize>,
    index: FxHashMap<Mark<'a>, usize>,
    /// Whether the file has other functions of the name, which may be on no stack.
    has_others: bool,
}

impl<'a> Groups<'a> {
    fn add(&mut self, address: Option<Mark<'a>>, path: Option<Mark<'a>>) {
        let [first, second] = [address, path].map(|mark| mark.map(|mark| self.group(mark)));
        let (Some(first), Some(second)) = (first, second) else { return };
        if let Some(link) = self.links.get_mut(first.max(second)) {
            *link = first.min(second);
        }
    }

    /// The first mark of the group of one.
    fn group(&mut self, mark: Mark<'a>) -> usize {
        let next = self.marks.len();
        let index = *self.index.entry(mark.clone()).or_insert(next);
        if index == next {
            self.marks.push(mark);
            self.links.push(next);
        }
        self.root(index)
    }

    fn root(&mut self, mut index: usize) -> usize {
        while let Some(&link) = self.links.get(index).filter(|&&link| link != index) {
            let next = self.links.get(link).copied().unwrap_or(link);
            if let Some(shortcut) = self.links.get_mut(index) {
                *shortcut = next;
            }
            index = next;
        }
        index
    }

    /// Each mark with its function, numbered in the order of their first marks. Inlined copies in a file of which no symbol is are of the
    /// one symbol that has no positions, as where another object was compiled without debug information.
    fn functions(&mut self) -> Vec<(Mark<'a>, OneOfName<'a>)> {
        let marks = std::mem::take(&mut self.marks);
        let mut roots: Vec<usize> = (0..marks.len()).map(|index| self.root(index)).collect();
        let has = |root: usize, is_address: bool| {
            let mut of_group = marks.iter().zip(&roots).filter(|&(_, &one)| one == root);
            of_group.any(|(mark, _)| matches!(mark, Mark::Address(_)) == is_address)
        };
        let all: Vec<usize> = (0..marks.len()).filter(|&index| roots.get(index) == Some(&index)).collect();
        if let &[first, second] = &*all
            && [(first, second), (second, first)].iter().any(|&(a, b)| !has(a, false) && !has(b, true))
        {
            roots.fill(first);
        }
        let mut functions: FxHashMap<usize, OneOfName<'a>> = FxHashMap::default();
        for (mark, &root) in marks.iter().zip(&roots) {
            let number = functions.len() as u32;
            let one = functions.entry(root).or_insert(OneOfName { number, path: None });
            match mark {
                Mark::Path(path) if one.path.is_none() => one.path = Some(path.clone()),
                _ => {}
            }
        }
        if let [only] = &mut *functions.values_mut().collect::<Vec<_>>()
            && !self.has_others
        {
            only.path = None;
        }
        let of_root = |root| functions.get(&root).cloned().unwrap_or_default();
        marks.into_iter().zip(roots).map(|(mark, root)| (mark, of_root(root))).collect()
    }
}

/// A path without the parts that differ between objects that were compiled in several directories: `/b/a/../h.h` is `/b/h.h`.
fn plain_path(path: &str) -> Cow<'_, str> {
    if !["/../", "/./", "//"].iter().any(|part| path.contains(part)) {
        return Cow::Borrowed(path);
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match (part, parts.last()) {
            (".", _) => {}
            ("", Some(_)) => {}
            ("..", Some(&last)) if !matches!(last, "" | "..") => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    Cow::Owned(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::{Groups, Mark, plain_path};

    /// Number and source file of each mark's function, of symbols by address with the files of their positions.
    fn functions(added: &[(Option<u64>, Option<&'static str>)]) -> Vec<(u32, Option<String>)> {
        let mut groups = Groups::default();
        for &(address, path) in added {
            groups.add(address.map(Mark::Address), path.map(|path| Mark::Path(plain_path(path))));
        }
        let found = groups.functions().into_iter();
        found.map(|(_, one)| (one.number, one.path.map(Into::into))).collect()
    }

    #[test]
    fn functions_of_one_name_are_those_without_an_address_or_file_in_common() {
        let [x, y] = ["/x.c", "/y.c"].map(|path| Some(path.to_owned()));
        let two = [(Some(1), Some("/x.c")), (Some(2), Some("/y.c"))];
        assert_eq!(functions(&two), [(0, x.clone()), (0, x), (1, y.clone()), (1, y)]);
        // Code of one header in two objects, and a function with lines of two files.
        let header =
            [(Some(1), Some("/a/../h.h")), (Some(2), Some("/b/../h.h")), (Some(2), Some("/tables.def"))];
        assert_eq!(functions(&header), vec![(0, None); 4]);
        // Without debug information.
        assert_eq!(functions(&[(Some(1), None), (Some(2), None)]), [(0, None), (1, None)]);
        // Inlined, beside a symbol of an object without debug information.
        assert_eq!(functions(&[(Some(1), None), (None, Some("/h.h"))]), vec![(0, None); 2]);
    }

    #[test]
    fn paths_have_no_parts_that_cancel_each_other() {
        for (path, plain) in [
            ("/a/b/../h.h", "/a/h.h"),
            ("../h.h", "../h.h"),
            ("../../a/../h.h", "../../h.h"),
            ("/../h.h", "/../h.h"),
            ("/a//./h.h", "/a/h.h"),
            ("./a/h.h", "./a/h.h"),
        ] {
            assert_eq!(plain_path(path), plain, "{path}");
        }
    }
}
