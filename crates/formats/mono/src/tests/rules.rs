//! For each rule, the smallest input that violates it.

use crate::tests::assemble::*;

/// A log of one buffer with these events violates a rule, and one without events does not.
fn breaks(code: &str, events: &[Vec<u8>]) {
    assert!(!codes(&log(&[buffer(&[])])).contains(&code), "{code} is reported for an empty buffer");
    let found = codes(&log(&[buffer(events)]));
    assert!(found.contains(&code), "{code} is not in {found:?}");
}

const OBJECT: &[u8] = &[0];
const POINTER: &[u8] = &[0];
const METHOD: &[u8] = &[0];

#[test]
fn headers() {
    let mut bytes = header();
    bytes[28] = 1;
    assert!(codes(&open(bytes)).contains(&"ML001"));
    let mut bytes = header();
    bytes[8..16].fill(0);
    assert!(codes(&open(bytes)).contains(&"ML002"));
    let mut bytes = header();
    let last = bytes.len() - 1;
    bytes[last] = b'x';
    let found = checked(&open(bytes));
    assert!(found.iter().any(|found| found.rule.code == "ML003" && found.field == "os"));
    let mut bytes = old_header(4);
    bytes[6] = 0;
    assert!(codes(&open(bytes)).contains(&"ML004"));
    assert!(codes(&open(header())).contains(&"ML015"));
}

#[test]
fn rejected_headers_report_the_field() {
    for (at, value, field) in [(0, 0, "id"), (6, 18, "format"), (7, 16, "ptrsize")] {
        let mut bytes = header();
        bytes[at] = value;
        let source = perfuse_recording::Source::from_bytes("log", bytes).unwrap();
        let error = crate::MonoLog::open(std::sync::Arc::new(source)).unwrap_err();
        assert_eq!((error.offset, error.field), (at as u64, field));
    }
}

#[test]
fn buffers() {
    breaks("ML014", &[vec![0x0b]]);
    assert!(codes(&log(&[buffer(&[])])).contains(&"ML016"));
    let late = event(0x81, &[]);
    let found = codes(&log(&[buffer(std::slice::from_ref(&late)), buffer_of(THREAD, TIME - 1, &[late])]));
    assert!(found.contains(&"ML017"), "{found:?}");
}

#[test]
fn values() {
    breaks("ML020", &[[vec![0x81], uleb(5u64.wrapping_neg())].concat()]);
    breaks("ML022", &[event(0x11, &[&[0, 2]])]);
    breaks("ML023", &[event(0x11, &[&[1, 0]])]);
    breaks("ML024", &[event(0x31, &[&[1], OBJECT])]);
    breaks("ML025", &[event(0x41, &[&[4, 1], OBJECT])]);
    breaks("ML026", &[event(0x14, &[&[3, 0], METHOD, OBJECT])]);
    breaks("ML027", &[event(0x47, &[&[7, 1, 1, 0]])]);
    breaks("ML030", &[event(0x43, &[METHOD, POINTER, &[0], &text("C:M ()")])]);
    breaks("ML031", &[event(0x42, &[&[2], POINTER, &text("a.dll")])]);
}

#[test]
fn values_of_old_versions() {
    // Flags after the pointer of an image.
    let image = event(0x22, &[&[2], POINTER, &[9], &text("a.dll")]);
    let coverage = [vec![0x29], vec![1, 2, 3, 4, 5]].concat();
    let old = open([old_header(11), buffer(&[image, coverage])].concat());
    let found = codes(&old);
    assert!(found.contains(&"ML021") && found.contains(&"ML032"), "{found:?}");
}

#[test]
fn names() {
    let alloc = event(0x00, &[POINTER, OBJECT, &[16]]);
    let vtable = event(0x22, &[&[7], POINTER, POINTER, POINTER]);
    breaks("ML041", std::slice::from_ref(&alloc));
    breaks("ML042", &[event(0x23, &[METHOD])]);
    breaks("ML040", &[alloc.clone(), vtable.clone()]);
    let found = codes(&log(&[buffer(&[vtable, alloc])]));
    assert!(!found.contains(&"ML040") && !found.contains(&"ML041"), "{found:?}");
}

#[test]
fn calls() {
    breaks("ML050", &[event(0x13, &[METHOD])]);
    breaks("ML051", &[event(0x23, &[METHOD])]);
    let left = codes(&log(&[buffer(&[event(0x23, &[METHOD]), event(0x33, &[METHOD])])]));
    assert!(!left.contains(&"ML050") && !left.contains(&"ML051"), "{left:?}");
    let alloc = event(0x00, &[POINTER, OBJECT, &[16]]);
    breaks("ML052", &[event(0x23, &[METHOD]), alloc.clone()]);
    assert!(!codes(&log(&[buffer(&[alloc])])).contains(&"ML052"));
}

#[test]
fn a_reused_thread_id_is_reported() {
    let start = event(0x22, &[&[5], POINTER]);
    let end = event(0x42, &[&[5], POINTER]);
    let first = buffer_of(0x1000, TIME, &[start.clone(), end.clone()]);
    assert!(!codes(&log(std::slice::from_ref(&first))).contains(&"ML044"));
    assert!(codes(&log(&[first, buffer_of(0x1000, TIME + 10, &[start, end])])).contains(&"ML044"));
}

#[test]
fn heap_snapshots() {
    breaks("ML060", &[event(0x16, &[])]);
    breaks("ML060", &[event(0x26, &[OBJECT, POINTER, &[16, 0, 0]])]);
    breaks("ML061", &[event(0x06, &[])]);
}
