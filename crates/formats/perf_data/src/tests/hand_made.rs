//! Files built byte by byte, without the code under test.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};

use super::{batches, codes, open_bytes};
use crate::{InjectedMmap, inject};
use perfuse_recording::{Position, Recording};

const IP: u64 = 1 << 0;
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const CALLCHAIN: u64 = 1 << 5;
const CONTEXT_MAX: u64 = u64::MAX - 4094;

/// A file in one byte order: header, one attribute, records, no features.
struct FileBuilder {
    big: bool,
    records: Vec<u8>,
    sample_type: u64,
    data_size: Option<u64>,
}

impl FileBuilder {
    fn new(big: bool, sample_type: u64) -> Self {
        Self { big, records: Vec::new(), sample_type, data_size: None }
    }

    fn n<const N: usize>(&self, mut little: [u8; N]) -> [u8; N] {
        if self.big {
            little.reverse();
        }
        little
    }

    fn words(&self, words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| self.n(word.to_le_bytes())).collect()
    }

    fn ids(&self, a: i32, b: i32) -> Vec<u8> {
        [self.n(a.to_le_bytes()), self.n(b.to_le_bytes())].concat()
    }

    fn record(&mut self, kind: u32, misc: u16, body: &[u8]) {
        let size = 8 + body.len() as u16;
        self.records.extend(self.n(kind.to_le_bytes()));
        self.records.extend(self.n(misc.to_le_bytes()));
        self.records.extend(self.n(size.to_le_bytes()));
        self.records.extend(body);
    }

    fn sample(&mut self, pid: i32, time: u64, chain: &[u64]) {
        let interrupted = chain.iter().find(|&&word| word < CONTEXT_MAX);
        let mut body = self.words(&[interrupted.copied().unwrap_or(0x99)]);
        body.extend(self.ids(pid, pid));
        body.extend(self.words(&[time]));
        if self.sample_type & CALLCHAIN != 0 {
            body.extend(self.words(&[chain.len() as u64]));
            body.extend(self.words(chain));
        }
        self.record(9, 2, &body);
    }

    fn bytes(&self) -> Vec<u8> {
        let magic: &[u8] = if self.big { b"2ELIFREP" } else { b"PERFILE2" };
        let mut out = magic.to_vec();
        let data_size = self.data_size.unwrap_or(self.records.len() as u64);
        // Header size, attribute entry size, attributes, data, event types, features.
        out.extend(self.words(&[104, 80, 104, 80, 184, data_size, 0, 0, 0, 0, 0, 0]));
        // Software event 0 with sample_id_all, as the first published structure had it, and no ids.
        out.extend(self.n(1u32.to_le_bytes()));
        out.extend(self.n(64u32.to_le_bytes()));
        // Compilers for big-endian machines lay the flags from the top.
        let sample_id_all = if self.big { 1 << (63 - 18) } else { 1 << 18 };
        out.extend(self.words(&[0, 1000, self.sample_type, 0, sample_id_all, 0, 0]));
        out.extend(self.words(&[0, 0]));
        out.extend(&self.records);
        out
    }
}

#[test]
fn both_byte_orders() {
    for big in [false, true] {
        let mut made = FileBuilder::new(big, IP | TID | TIME | CALLCHAIN);
        let mut mmap = made.ids(7, 7);
        mmap.extend(made.words(&[0x1000, 0x2000, 0x40]));
        mmap.extend(b"/lib/a\0\0");
        mmap.extend(made.ids(7, 7));
        mmap.extend(made.words(&[5]));
        made.record(1, 2, &mmap);
        made.sample(7, 20, &[u64::MAX - 511, 0x1234, 0x5678]);
        made.sample(7, 10, &[0x1111]);
        let perf = open_bytes(made.bytes());
        let rows = batches(&perf, "callchains");
        assert_eq!(rows[0].column_by_name("ts_ns").unwrap().as_primitive::<Int64Type>().values(), &[10, 20]);
        let chains = rows[0].column_by_name("addresses").unwrap().as_list::<i32>();
        assert_eq!(chains.value(1).as_primitive::<UInt64Type>().values(), &[u64::MAX - 511, 0x1234, 0x5678]);
        // The attribute's fixed period: a sample stands for that many events.
        assert_eq!(rows[0].column_by_name("period").unwrap().as_primitive::<UInt64Type>().value(0), 1000);
        let mappings = batches(&perf, "mappings");
        let end = mappings[0].column_by_name("end_address").unwrap().as_primitive::<UInt64Type>().value(0);
        assert_eq!(end, 0x3000);
        assert_eq!(codes(&perf), ["PD007", "PD008"]);
    }
}

#[test]
fn a_sample_without_a_call_chain_has_its_own_address() {
    let mut made = FileBuilder::new(false, IP | TID | TIME);
    made.sample(1, 5, &[0x4242]);
    let rows = batches(&open_bytes(made.bytes()), "callchains");
    let chains = rows[0].column_by_name("addresses").unwrap().as_list::<i32>();
    assert_eq!(chains.value(0).as_primitive::<UInt64Type>().values(), &[0x4242]);
}

/// Each round may overlap only the previous one; a file that violates this is sorted as a whole.
#[test]
fn time_order_with_and_without_valid_rounds() {
    for (third, late) in [(25, false), (5, true)] {
        let mut made = FileBuilder::new(false, IP | TID | TIME);
        for round in [&[10u64, 30, 20][..], &[28, 40], &[third, 60, 50]] {
            round.iter().for_each(|&time| made.sample(1, time, &[time]));
            made.record(68, 0, &[]);
        }
        // In the first case the earliest time of the third round is 25.
        let perf = open_bytes(made.bytes());
        let mut times = Vec::new();
        perf.for_each_sample(|_, sample| times.push(sample.head.time.unwrap()));
        assert!(times.is_sorted(), "{times:?}");
        assert_eq!(times.len(), 8);
        assert_eq!(codes(&perf).contains(&"PD014"), late || third < 30, "{third}");
    }
}

#[test]
fn unfinished_and_truncated_files_are_reported() {
    let mut made = FileBuilder::new(false, IP | TID | TIME);
    (1..4).for_each(|time| made.sample(1, time, &[9]));
    let whole = made.bytes();
    made.data_size = Some(0);
    let perf = open_bytes(made.bytes());
    assert_eq!(perf.summary().counts, [("PERF_RECORD_SAMPLE".to_owned(), 3)]);
    assert!(codes(&perf).contains(&"PD002"));

    let perf = open_bytes(whole[..whole.len() - 3].to_vec());
    assert_eq!(perf.summary().counts, [("PERF_RECORD_SAMPLE".to_owned(), 2)]);
    assert!(codes(&perf).contains(&"PD001"));

    made.data_size = None;
    made.record(7_777, 0, &[1, 2, 3, 0, 0, 0, 0, 0]);
    made.sample(1, 4, &[9]);
    made.records.extend([9, 0, 0, 0, 0, 0, 7, 0]);
    made.sample(1, 9, &[9]);
    let perf = open_bytes(made.bytes());
    assert_eq!(
        perf.summary().counts.iter().map(|(_, num)| num).sum::<u64>(),
        6,
        "those after the damage, too"
    );
    let names: Vec<_> = perf.summary().counts.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["PERF_RECORD_SAMPLE", "Unknown RecordTag 7777"]);
    let codes = codes(&perf);
    assert!(codes.contains(&"PD003") && codes.contains(&"PD006"), "{codes:?}");
}

#[test]
fn namespaces_markers_and_losses() {
    let mut made = FileBuilder::new(false, IP | TID | TIME);
    let trailer = [made.ids(3, 3), made.words(&[77])].concat();
    let mut namespaces = made.ids(3, 4);
    namespaces.extend(made.words(&[4, 1, 100, 1, 101, 1, 102, 1, 103]));
    namespaces.extend(&trailer);
    made.record(16, 0, &namespaces);
    let mut mmap2 = made.ids(3, 4);
    mmap2.extend(made.words(&[0x7000, 0x1000, 0, 0, 0, 0]));
    mmap2.extend(made.ids(5, 2));
    mmap2.extend(b"/tmp/jit-1.dump\0");
    mmap2.extend(&trailer);
    made.record(10, 2, &mmap2);
    let lost = [made.words(&[0, 12]), trailer.clone()].concat();
    made.record(2, 0, &lost);
    let perf = open_bytes(made.bytes());
    let [marker] = perf.jit_markers() else { panic!("{:?}", perf.jit_markers()) };
    assert_eq!((marker.pid, marker.tid, marker.ts, marker.start_address), (3, 4, 77, 0x7000));
    assert_eq!(marker.path, "/tmp/jit-1.dump");
    assert_eq!(perf.namespaces()[0].inode, 103);
    assert_eq!(perf.lost_records(), 12);
    assert!(codes(&perf).contains(&"PD004"));
    let mut at = Position::default();
    let shown = std::iter::from_fn(|| perf.next_record(&mut at)).map(|view| format!("{:?}", view.fields));
    let shown: Vec<_> = shown.collect();
    assert!(shown[1].contains(r#"("filename", Text("/tmp/jit-1.dump"))"#), "{}", shown[1]);
    assert!(shown[2].contains(r#"("lost", Unsigned(12))"#), "{}", shown[2]);
}

/// Each rule, with a file that has only this departure.
#[test]
fn rules_by_departure() {
    let trailer = |made: &FileBuilder| [made.ids(3, 3), made.words(&[77])].concat();
    type Depart = fn(&mut FileBuilder, &[u8]);
    let cases: [(&str, Depart); 5] = [
        ("PD005", |made, id| made.record(13, 0, &[&made.words(&[9]), id].concat())),
        ("PD017", |made, id| made.record(5, 0, &[&made.words(&[1, 2, 3]), id].concat())),
        ("PD019", |made, id| made.record(3, 0, &[&made.ids(3, 3)[..], b"abcdefgh", id].concat())),
        ("PD010", |made, id| made.record(7, 0, &[&made.ids(3, 3), id].concat())),
        ("PD020", |made, _| made.record(71, 0, &made.words(&[0, 0, 0, 0, 0]))),
    ];
    for (code, depart) in cases {
        let mut made = FileBuilder::new(false, IP | TID | TIME);
        let id = trailer(&made);
        depart(&mut made, &id);
        assert_eq!(codes(&open_bytes(made.bytes())), codes_with(code), "{code}");
    }
    let mut made = FileBuilder::new(false, IP | TID);
    let body = [made.words(&[0x10]), made.ids(1, 1)].concat();
    made.record(9, 2, &body);
    assert_eq!(codes(&open_bytes(made.bytes())), ["PD007", "PD008", "PD018"]);
}

/// The codes of every file in this module, and another one, in order of detection.
fn codes_with(code: &'static str) -> Vec<&'static str> {
    vec!["PD007", "PD008", code]
}

/// Mappings of anonymous memory over added code and the marker of the dump are left out, in both byte orders; others remain.
#[test]
fn mappings_that_would_hide_added_code() {
    for big in [false, true] {
        let mut made = FileBuilder::new(big, IP | TID | TIME);
        for (time, address, path) in [
            (10, 0x1000, "/tmp/jit-3.dump"),
            (20, 0x8000, "//anon"),
            (40, 0x8000, "//anon"),
            (41, 0x9000, "//anon"),
            (42, 0x8000, "/lib/a"),
        ] {
            let mut mmap = made.ids(3, 3);
            mmap.extend(made.words(&[address, 0x1000, 0]));
            mmap.extend(format!("{path:\0<16}").bytes());
            mmap.extend(made.ids(3, 3));
            mmap.extend(made.words(&[time]));
            made.record(1, 2, &mmap);
        }
        made.sample(3, 35, &[0x8010]);
        let added = [InjectedMmap {
            pid: 3,
            tid: 3,
            ts_ns: 30,
            start_address: 0x8000,
            size: 0x100,
            file_offset: 0x80,
            path: "/jit/code.so".to_owned(),
            build_id: None,
        }];
        let mut out = std::io::Cursor::new(Vec::new());
        let result = inject(&open_bytes(made.bytes()), &added, &[], &mut out).unwrap();
        assert_eq!((result.num_copied, result.num_added, result.num_dropped), (4, 1, 2));
        let again = open_bytes(out.into_inner());
        let mappings = batches(&again, "mappings");
        let starts = mappings[0].column_by_name("start_ns").unwrap().as_primitive::<Int64Type>();
        assert_eq!(starts.values(), &[20, 30, 41, 42]);
        let offsets = mappings[0].column_by_name("file_offset").unwrap().as_primitive::<UInt64Type>();
        assert_eq!(offsets.value(1), 0x80);
        assert_eq!(again.jit_markers(), []);
    }
}
