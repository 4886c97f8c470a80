//! Heap snapshots of hand-made objects.

use std::collections::HashMap;

use perfuse_engine::heap::Heap;
use perfuse_tables::{heap_objects, heap_references, heap_roots};

use super::{Error, Mutex, Write, io};
use crate::heap_dumps::{HeapDump, write_hprof, write_v8};
use std::sync::Arc;

/// A node that a static field holds, with a string and an array; two nodes in a cycle that nothing holds, one of which refers
/// to the string.
fn heap() -> Heap {
    let mut objects = heap_objects::Builder::new();
    let made = [(0x1000, 0, 32), (0x1020, 1, 40), (0x1050, 2, 48), (0x2000, 0, 32), (0x2020, 0, 32)];
    for (row, (address, of, size)) in (0u64..).zip(made) {
        objects.push(0, address, Some(of), size, None, 0, row);
    }
    let mut references = heap_references::Builder::new();
    let made = [
        (0x1000, 0x1020, 16),
        (0x1000, 0x1050, 24),
        (0x1050, 0x1020, 32),
        (0x2000, 0x2020, 16),
        (0x2000, 0x1020, 24),
        (0x2020, 0x2000, 16),
    ];
    for (row, (owner, target, offset)) in (0u64..).zip(made) {
        references.push(0, owner, target, Some(offset), 0, row);
    }
    let mut roots = heap_roots::Builder::new();
    roots.push(Some(0), None, 0x1000, "static", None, Some(0x99), Some(7), None, None, None, 0, 0);
    roots.push(Some(0), None, 0x2000, "gc_handle", None, Some(0x88), None, None, None, Some(true), 0, 1);
    let tables = [
        ("heap_objects", objects.finish()),
        ("heap_references", references.finish()),
        ("heap_roots", roots.finish()),
    ];
    let tables: HashMap<_, _> = tables.into();
    Heap::read(|table| std::iter::once(tables[table].clone())).expect("tables of the declaration")
}

/// Bytes that another thread may write.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn written(write: impl FnOnce(&HeapDump<'_>, Sink) -> Result<(), Error>) -> Vec<u8> {
    let heap = heap();
    let names = [(0, "Node"), (1, "System.String"), (2, "Node[]"), (7, "Program")];
    let types = names.map(|(id, name)| (id, name.to_owned())).into();
    let roots = ["static field of Program".to_owned(), "a weak handle".to_owned()];
    let sink = Sink::default();
    write(&HeapDump { heap: &heap, types: &types, roots: &roots }, sink.clone()).unwrap();
    Arc::try_unwrap(sink.0).unwrap().into_inner().unwrap()
}

#[test]
fn a_heap_snapshot_of_v8_has_roots_and_garbage_apart() {
    let text = String::from_utf8(written(|dump, out| write_v8(dump, out, &mut |_| true))).unwrap();
    let list = |name: &str| {
        let (_, rest) = text.split_once(&format!("\"{name}\":[")).unwrap();
        rest.split_once(']').unwrap().0.replace('\n', "")
    };
    let numbers = |name: &str, width: usize| -> Vec<Vec<u64>> {
        let all: Vec<u64> = list(name).split(',').map(|number| number.parse().unwrap()).collect();
        all.chunks(width).map(<[u64]>::to_vec).collect()
    };
    let (_, strings) = text.split_once("\"strings\":[").unwrap();
    let strings: Vec<&str> =
        strings.split(",\n").map(|text| text.trim_end().trim_end_matches("]}")).collect();
    let nodes = numbers("nodes", 7);
    let names: Vec<_> = nodes.iter().map(|node| strings[node[1] as usize].trim_matches('"')).collect();
    assert_eq!(
        names,
        [
            "",
            "(GC roots)",
            "(static)",
            "(weak roots)",
            "(unreachable)",
            "Node",
            "System.String",
            "Node[]",
            "Node",
            "Node"
        ]
    );
    assert!(text.contains("\"node_count\":10,\"edge_count\":13,"));
    let mut edges = numbers("edges", 3).into_iter();
    let mut found = Vec::new();
    for (name, node) in names.iter().zip(&nodes) {
        for edge in edges.by_ref().take(node[4] as usize) {
            let label =
                if edge[0] == 1 { edge[1].to_string() } else { strings[edge[1] as usize].replace('"', "") };
            found.push((*name, edge[0], label, edge[2] / 7));
        }
    }
    let expected = [
        ("", 1, "1", 1),
        ("", 1, "2", 4),
        ("(GC roots)", 1, "1", 2),
        ("(GC roots)", 1, "2", 3),
        ("(static)", 2, "static field of Program", 5),
        ("(weak roots)", 6, "a weak handle", 8),
        ("(unreachable)", 1, "1", 8),
        ("Node", 2, "+16", 6),
        ("Node", 2, "+24", 7),
        ("Node[]", 2, "+32", 6),
        ("Node", 2, "+16", 9),
        ("Node", 6, "+24", 6),
        ("Node", 2, "+16", 8),
    ];
    let expected: Vec<_> =
        expected.into_iter().map(|(name, of, text, to)| (name, of, text.to_owned(), to)).collect();
    assert_eq!(found, expected);
}

/// Records: tag and body.
fn records(bytes: &[u8]) -> Vec<(u8, &[u8])> {
    let mut rest = &bytes[31..];
    let mut found = Vec::new();
    while let [tag, _, _, _, _, a, b, c, d, body @ ..] = rest {
        let (body, next) = body.split_at(u32::from_be_bytes([*a, *b, *c, *d]) as usize);
        found.push((*tag, body));
        rest = next;
    }
    assert!(rest.is_empty());
    found
}

#[test]
fn a_heap_dump_of_java_has_fields_where_references_are() {
    let bytes = written(|dump, out| write_hprof(dump, 8, 1_700_000_000_000, out, &mut |_| true));
    assert!(bytes.starts_with(b"JAVA PROFILE 1.0.2\0\0\0\0\x08"));
    assert_eq!(bytes[23..31], 1_700_000_000_000u64.to_be_bytes());
    let records = records(&bytes);
    // Heap dumps follow each other, and all else precedes them.
    let tags: Vec<_> = records.iter().map(|(tag, _)| *tag).filter(|tag| *tag >= 0x1c).collect();
    assert_eq!(tags, [0x1c, 0x2c]);
    assert_eq!(records[records.len() - 2].0, 0x1c);
    let texts: Vec<_> = records
        .iter()
        .filter(|(tag, _)| *tag == 1)
        .map(|(_, body)| String::from_utf8_lossy(&body[8..]))
        .collect();
    for name in ["Node", "System.String", "[LNode;", "Program", "+16", "+24", "static at 0x99", "referent"] {
        assert!(texts.iter().any(|text| text == name), "{name}: {texts:?}");
    }
    let dump = records[records.len() - 2].1;
    let id = |address: u64| address.to_be_bytes();
    let has = |parts: &[&[u8]]| {
        let part = parts.concat();
        dump.windows(part.len()).any(|window| window == part)
    };
    // The fields of the first node: its string and its array.
    assert!(has(&[&16u32.to_be_bytes(), &id(0x1020), &id(0x1050), &[0x22]]));
    // The array of 48 bytes has three words after the 24 of its header; its first element is at 32.
    assert!(has(&[
        &3u32.to_be_bytes(),
        &class_of(&records, "[LNode;"),
        &id(0),
        &id(0x1020),
        &id(0),
        &[0x21]
    ]));
    // The string of 40 bytes is an array of two words.
    assert!(has(&[&2u32.to_be_bytes(), &class_of(&records, "System.String"), &[0; 16], &[0x22]]));
    // The static field is of its class; a weak root has no form.
    assert!(has(&[&[2], &id(0x1000)]));
    assert!(!has(&[&[0xff], &id(0x2000)]));
    assert!(!has(&[&[0x01], &id(0x2000)]));
}

/// Id of a class, from its record.
fn class_of(records: &[(u8, &[u8])], name: &str) -> [u8; 8] {
    let (_, text) = records.iter().find(|(tag, body)| *tag == 1 && &body[8..] == name.as_bytes()).unwrap();
    let (_, class) = records.iter().find(|(tag, body)| *tag == 2 && body[16..24] == text[..8]).unwrap();
    class[4..12].try_into().unwrap()
}
