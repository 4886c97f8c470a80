//! Files that grow, become shorter, or are none; code of several processes, code that moves, threads.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use perfuse_symbolizer::{Error, GrowingDump, LATEST, SFrameTable};

fn record(id: u32, at: u64, body: &[u8]) -> Vec<u8> {
    [&id.to_le_bytes()[..], &(16 + body.len() as u32).to_le_bytes(), &at.to_le_bytes(), body].concat()
}

fn header(pid: u32) -> Vec<u8> {
    let words = [1u32, 40, 62, 0, pid].map(u32::to_le_bytes).concat();
    [b"DTiJ".as_slice(), &words, &[0; 16]].concat()
}

fn load(at: u64, pid: u32, address: u64, size: usize, index: u64, name: &str) -> Vec<u8> {
    let ids = [pid, pid].map(u32::to_le_bytes).concat();
    let fields = [address, address, size as u64, index].map(u64::to_le_bytes).concat();
    record(0, at, &[&ids[..], &fields, name.as_bytes(), &[0], &vec![0xcc; size]].concat())
}

fn moved(at: u64, pid: u32, from: u64, to: u64, index: u64) -> Vec<u8> {
    let ids = [pid, pid].map(u32::to_le_bytes).concat();
    let fields = [to, from, to, 0x40, index].map(u64::to_le_bytes).concat();
    record(1, at, &[ids, fields].concat())
}

/// A path of this test's own.
fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("perfuse-symbolizer-{}-{name}", std::process::id()))
}

fn name(dump: &GrowingDump, at: u64, address: u64) -> Option<String> {
    Some(dump.find(at, address)?.code.name.to_owned())
}

#[test]
fn a_file_grows_and_is_cut() {
    let path = path("grows");
    let mut file = File::create(&path).unwrap();
    let mut dump = GrowingDump::open(&path).unwrap();
    assert_eq!(dump.facts(), None);
    file.write_all(&header(7)).unwrap();
    assert_eq!(dump.poll().unwrap().num_records, 0);
    assert_eq!(dump.facts().map(|facts| facts.pid), Some(7));
    // Larger than a page, so that mappings have to follow.
    for number in 0..200u64 {
        file.write_all(&load(number, 7, 0x1000 + number * 0x100, 0x100, number, &format!("f{number}")))
            .unwrap();
        let progress = dump.poll().unwrap();
        assert_eq!((progress.num_records, progress.num_code), (1, 1));
        assert_eq!(name(&dump, LATEST, 0x1000 + number * 0x100), Some(format!("f{number}")));
    }
    assert_eq!(name(&dump, LATEST, 0x1000), Some("f0".to_owned()));
    assert!(!dump.is_cut());
    OpenOptions::new().write(true).open(&path).unwrap().set_len(100).unwrap();
    assert!(dump.is_cut());
    assert!(matches!(dump.poll(), Err(Error::Cut)));
    // What was read stays, and nothing faults.
    assert_eq!(name(&dump, LATEST, 0x1000 + 199 * 0x100), Some("f199".to_owned()));
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn code_moves_and_is_overwritten_where_it_was_moved_to() {
    let mut dump = GrowingDump::new();
    dump.push(&header(7)).unwrap();
    dump.push(&load(10, 7, 0x1000, 0x40, 1, "first")).unwrap();
    dump.push(&moved(20, 7, 0x1000, 0x2000, 1)).unwrap();
    dump.push(&load(30, 7, 0x1000, 0x40, 2, "second")).unwrap();
    dump.push(&load(40, 7, 0x2020, 0x40, 3, "third")).unwrap();
    let names =
        [(10, 0x1010), (25, 0x1010), (25, 0x2010), (35, 0x1010), (39, 0x2030), (40, 0x2030), (40, 0x2010)];
    let found = names.map(|(at, address)| name(&dump, at, address));
    assert_eq!(
        found.map(|name| name.unwrap_or_default()),
        ["first", "", "first", "second", "first", "third", ""]
    );
    assert_eq!(dump.find(39, 0x2030).map(|found| found.code_offset), Some(0x30));
}

#[test]
fn a_late_record_is_older_than_what_was_read() {
    let mut dump = GrowingDump::new();
    let records = [
        load(10, 7, 0x1000, 0x40, 1, "a"),
        load(30, 7, 0x1000, 0x40, 3, "c"),
        load(20, 7, 0x1000, 0x40, 2, "b"),
    ];
    dump.push(&header(7)).unwrap();
    for record in &records {
        dump.push(record).unwrap();
    }
    let found = [9, 10, 19, 20, 29, 30, 31].map(|at| name(&dump, at, 0x1000).unwrap_or_default());
    assert_eq!(found, ["", "a", "a", "b", "b", "c", "c"]);
}

#[test]
fn processes_have_code_of_their_own() {
    let mut dump = GrowingDump::new();
    let two =
        [header(7), load(10, 7, 0x1000, 0x40, 1, "of 7"), load(20, 8, 0x1000, 0x40, 1, "of 8")].concat();
    dump.push(&two).unwrap();
    assert_eq!(name(&dump, LATEST, 0x1000), Some("of 7".to_owned()));
    let of = |pid| {
        let found = dump.find_of(pid, LATEST, 0x1000);
        let code = dump.find_code_of(pid, LATEST, 0x1000);
        assert_eq!(found.as_ref().map(|found| (found.code, found.code_offset)), code);
        found.map(|found| found.frames[0].function.to_owned())
    };
    assert_eq!([7, 8, 9].map(of), [Some("of 7".to_owned()), Some("of 8".to_owned()), None]);
    // A header without a process has the one of its first code.
    let mut other = GrowingDump::new();
    other.push(&[header(0), load(10, 8, 0x1000, 0x40, 1, "of 8")].concat()).unwrap();
    assert_eq!(name(&other, LATEST, 0x1000), Some("of 8".to_owned()));
}

#[test]
fn the_largest_numbers_are_numbers() {
    let mut dump = GrowingDump::new();
    let last = u64::MAX - 0x3f;
    dump.push(
        &[header(7), load(u64::MAX, 7, last, 0x40, 1, "late"), load(5, 7, 0x1000, 0, 2, "empty")].concat(),
    )
    .unwrap();
    assert_eq!(name(&dump, LATEST, last), Some("late".to_owned()));
    assert_eq!(name(&dump, 4, last), None);
    assert_eq!(name(&dump, LATEST, 0x1000), None);
}

#[test]
fn threads_share_a_dump() {
    let mut dump = GrowingDump::new();
    dump.push(&header(7)).unwrap();
    for number in 0..100u64 {
        dump.push(&load(number, 7, 0x1000 + number * 0x100, 0x100, number, &format!("f{number}"))).unwrap();
    }
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let dump = &dump;
            scope.spawn(move || {
                for number in (0..100).map(|number| (number * 7 + thread) % 100) {
                    assert_eq!(name(dump, LATEST, 0x1000 + number * 0x100), Some(format!("f{number}")));
                }
            });
        }
    });
}

#[test]
fn what_is_no_file_is_refused() {
    assert!(matches!(GrowingDump::open("/no such file"), Err(Error::Io(_))));
    assert!(matches!(GrowingDump::open("/dev/zero"), Err(Error::Io(_))));
    assert!(matches!(GrowingDump::open(std::env::temp_dir()), Err(Error::Io(_))));
    assert!(matches!(GrowingDump::new().push(b"\x7fELF"), Err(Error::Format(_))));
    assert!(matches!(SFrameTable::from_bytes(vec![0; 64], None), Err(Error::Format(_))));
    assert!(SFrameTable::from_bytes(Vec::new(), None).is_err());
    let mut unfinished = GrowingDump::new();
    unfinished.push(&header(7)[..20]).unwrap();
    assert!(matches!(unfinished.finish(), Err(Error::Format(_))));
}

/// A process that is started again in its container has the same id, and truncates the dump of the one before.
#[test]
fn a_file_is_written_anew() {
    let path = path("anew");
    let of_run = |first: u64, number: u64| {
        let load = |number| load(first + number, 7, 0x1000 * (first + number), 0x100, number, "f");
        [header(7), (0..number).flat_map(load).collect()].concat()
    };
    std::fs::write(&path, of_run(1, 3)).unwrap();
    let mut dump = GrowingDump::open(&path).unwrap();
    assert_eq!(name(&dump, LATEST, 0x1000), Some("f".to_owned()));
    for more in [3, 200] {
        std::fs::write(&path, of_run(50, more)).unwrap();
        assert!(dump.is_cut());
        assert!(matches!(dump.poll(), Err(Error::Cut)));
        assert!(matches!(dump.finish(), Err(Error::Cut)));
    }
    let mut again = GrowingDump::open(&path).unwrap();
    assert_eq!(
        (name(&again, LATEST, 0x1000), name(&again, LATEST, 50 * 0x1000)),
        (None, Some("f".to_owned()))
    );
    assert_eq!(again.poll().unwrap().num_records, 0);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn bytes_are_not_pushed_to_a_file() {
    let path = path("pushed");
    std::fs::write(&path, header(7)).unwrap();
    let mut dump = GrowingDump::open(&path).unwrap();
    assert!(matches!(dump.push(&load(1, 7, 0x1000, 0x100, 1, "f")), Err(Error::IsFile)));
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn dumps_tables_and_errors_are_for_any_thread() {
    fn assert_shared<T: Send + Sync + 'static>() {}
    assert_shared::<GrowingDump>();
    assert_shared::<SFrameTable>();
    assert_shared::<Error>();
}
