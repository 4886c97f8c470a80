//! Mapped files that become shorter.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use crate::MappedFile;

const SIZE: usize = 1 << 20;

/// A file of ones, deleted at the end.
struct Ones(PathBuf);

impl Ones {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("perfuse-mapped-{}-{name}", std::process::id()));
        File::create(&path).and_then(|mut file| file.write_all(&[1; SIZE])).expect("writes");
        Self(path)
    }

    fn map(&self) -> MappedFile {
        File::open(&self.0).and_then(MappedFile::new).expect("maps")
    }

    fn cut(&self, len: usize) {
        File::options().write(true).open(&self.0).and_then(|file| file.set_len(len as u64)).expect("cuts");
    }
}

impl Drop for Ones {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn sum(bytes: &[u8]) -> usize {
    bytes.iter().map(|&byte| usize::from(byte)).sum()
}

#[test]
fn what_a_file_loses_reads_as_zeros() {
    let file = Ones::new("shorter");
    let map = file.map();
    assert_eq!(sum(&map), SIZE);
    assert!(!map.is_cut());
    file.cut(5000);
    assert_eq!(sum(&map), 5000);
    assert!(map.is_cut());
}

#[test]
fn a_file_that_is_empty_now() {
    let file = Ones::new("empty");
    let map = file.map();
    file.cut(0);
    assert_eq!(sum(&map), 0);
    assert!(map.is_cut());
}

/// No page is gone, so no signal says it.
#[test]
fn a_cut_within_the_last_page() {
    let file = Ones::new("page");
    let map = file.map();
    file.cut(SIZE - 10);
    assert!(map.is_cut());
    assert_eq!(sum(&map), SIZE - 10);
}

#[test]
fn a_cut_that_is_undone_is_remembered() {
    let file = Ones::new("again");
    let map = file.map();
    file.cut(0);
    assert_eq!(sum(map.get(8192..9000).expect("is long enough")), 0);
    file.cut(SIZE);
    assert!(map.is_cut());
}

#[test]
fn a_file_that_grows_is_not_cut() {
    let file = Ones::new("grows");
    let map = file.map();
    file.cut(2 * SIZE);
    assert_eq!(sum(&map), SIZE);
    assert!(!map.is_cut());
}

#[test]
fn a_file_that_is_not_kept_open() {
    let file = Ones::new("closing");
    let map = MappedFile::closing(&File::open(&file.0).expect("opens")).expect("maps");
    file.cut(0);
    assert_eq!(sum(&map), 0);
    assert!(map.is_cut());
}

/// More than a process may have open by default: few of them stay open, and all notice that pages are gone.
#[test]
fn more_files_than_may_be_open() {
    let file = Ones::new("open");
    let maps: Vec<_> = (0..1500).map(|_| file.map()).collect();
    let num_open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    assert!(num_open < 1000, "{num_open} files are open");
    file.cut(0);
    for map in &maps {
        assert_eq!(map.get(9000), Some(&0));
        assert!(map.is_cut());
    }
}

#[test]
fn many_files_from_many_threads() {
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                let files: Vec<_> = (0..20).map(|n| Ones::new(&format!("many-{thread}-{n}"))).collect();
                let maps: Vec<_> = files.iter().map(Ones::map).collect();
                for (number, (file, map)) in files.iter().zip(&maps).enumerate() {
                    if number % 2 == 0 {
                        file.cut(number * 4096);
                    }
                    assert_eq!(sum(map), if number % 2 == 0 { number * 4096 } else { SIZE });
                    assert_eq!(map.is_cut(), number % 2 == 0);
                }
            });
        }
    });
}

#[test]
fn parts_that_a_sparse_file_does_not_store_are_skipped() {
    let file = Ones::new("sparse");
    file.cut(4 * SIZE);
    let map = file.map();
    assert_eq!(map.next_data(0), 0);
    assert_eq!(map.next_data(SIZE - 1), SIZE - 1);
    // A file system without sparse files may answer that all is data.
    let next = map.next_data(SIZE);
    assert!(next == SIZE || next == 4 * SIZE, "{next}");
    assert_eq!(map.next_data(4 * SIZE), 4 * SIZE);
    assert_eq!(map.next_data(9 * SIZE), 9 * SIZE);
}
