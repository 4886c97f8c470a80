//! Tests whose expected values come from the text itself, counted line by line without the reader under test.

use std::collections::BTreeMap;
use std::sync::Arc;

use perfuse_recording::{Placement, Position, Recording, Sniff, Source, TableRequest};
use perfuse_tables::access::{numbers, text};
use perfuse_wire::Diagnostics;
use proptest::prelude::*;

use crate::line::{Line, ThreadRoot, sniff};
use crate::{CollapsedStacks, FORMAT};

fn open(text: &str) -> CollapsedStacks {
    let source = Source::from_bytes("test.collapsed", text.as_bytes().to_vec()).unwrap();
    CollapsedStacks::open(Arc::new(source)).unwrap()
}

/// Every stack as `caller;callee` with its counts added up, from the tables.
fn totals(recording: &CollapsedStacks) -> BTreeMap<String, u64> {
    let placement = Placement::alone(recording);
    let table = |name: &str| -> Vec<_> {
        recording.table(name, &placement, &TableRequest::default()).into_iter().flatten().collect()
    };
    let mut names = BTreeMap::new();
    for batch in table("functions") {
        let ids = numbers::<arrow_array::types::UInt32Type>(&batch, "function_id").unwrap();
        let texts = text(&batch, "name").unwrap();
        names.extend(
            ids.values().iter().enumerate().map(|(row, id)| (*id, texts.get(row).unwrap().to_owned())),
        );
    }
    let mut frames = BTreeMap::new();
    for batch in table("frames") {
        let ids = numbers::<arrow_array::types::UInt32Type>(&batch, "frame_id").unwrap();
        let functions = numbers::<arrow_array::types::UInt32Type>(&batch, "function_id").unwrap();
        frames.extend(
            ids.values().iter().enumerate().map(|(row, id)| (*id, names[&functions.value(row)].clone())),
        );
    }
    let mut stacks: BTreeMap<u32, String> = BTreeMap::new();
    for batch in table("stacks") {
        let ids = numbers::<arrow_array::types::UInt32Type>(&batch, "stack_id").unwrap();
        let callers = numbers::<arrow_array::types::UInt32Type>(&batch, "parent_stack_id").unwrap();
        let tops = numbers::<arrow_array::types::UInt32Type>(&batch, "frame_id").unwrap();
        for row in 0..batch.num_rows() {
            let top = &frames[&tops.value(row)];
            let caller = (!arrow_array::Array::is_null(callers, row)).then(|| callers.value(row));
            let path = caller.map_or_else(|| top.clone(), |caller| format!("{};{top}", stacks[&caller]));
            assert!(stacks.insert(ids.value(row), path).is_none(), "each stack has one row");
        }
    }
    assert_eq!(stacks.values().collect::<std::collections::BTreeSet<_>>().len(), stacks.len());
    let mut totals = BTreeMap::new();
    for batch in table("samples") {
        let ids = numbers::<arrow_array::types::UInt32Type>(&batch, "stack_id").unwrap();
        let weights = numbers::<arrow_array::types::UInt64Type>(&batch, "weight").unwrap();
        for row in 0..batch.num_rows() {
            let stack = if arrow_array::Array::is_null(ids, row) { "" } else { &stacks[&ids.value(row)] };
            *totals.entry(stack.to_owned()).or_default() += weights.value(row);
        }
    }
    totals
}

fn codes(recording: &CollapsedStacks) -> Vec<&'static str> {
    let mut sink = Diagnostics::default();
    recording.check(&mut sink);
    sink.rows().iter().map(|row| row.rule.code).collect()
}

#[test]
fn counts_add_up_by_stack() {
    let recording = open("a;b;c 42\na;b 1\na;b;c 8\n\n# comment\na 5\r\nb;c 7\n");
    let expected = [("a", 5), ("a;b", 1), ("a;b;c", 50), ("b;c", 7)];
    assert_eq!(totals(&recording), expected.map(|(stack, count)| (stack.to_owned(), count)).into());
    assert_eq!(codes(&recording), Vec::<&str>::new());
    let counts = recording.summary().counts;
    assert_eq!(counts, [("stack".to_owned(), 5), ("comment".to_owned(), 1)]);
}

#[test]
fn names_may_contain_spaces_and_numbers() {
    let recording = open("operator new(unsigned long);std::map<int, int>::find 3\nf 2;g 4\n");
    let expected = [("operator new(unsigned long);std::map<int, int>::find", 3), ("f 2;g", 4)];
    assert_eq!(totals(&recording), expected.map(|(stack, count)| (stack.to_owned(), count)).into());
}

#[test]
fn suffixes_state_the_kind() {
    let recording = open("main;run_[j];shade_[i];dot_[i];sys_read_[k] 1\n");
    let placement = Placement::alone(&recording);
    let batch = recording.table("frames", &placement, &TableRequest::default()).unwrap().next().unwrap();
    let kinds = text(&batch, "kind").unwrap();
    let depths = numbers::<arrow_array::types::UInt32Type>(&batch, "inline_depth").unwrap();
    let found: Vec<_> = (0..5).map(|row| (kinds.get(row).unwrap(), depths.value(row))).collect();
    assert_eq!(found, [("unknown", 0), ("jit", 0), ("jit", 1), ("jit", 2), ("kernel", 0)]);
    assert_eq!(totals(&recording), [("main;run;shade;dot;sys_read".to_owned(), 1)].into());
}

#[test]
fn first_frames_name_process_and_thread() {
    let root = |pid, process_name: Option<&str>, tid, thread_name: Option<&str>| ThreadRoot {
        pid,
        process_name: process_name.map(str::to_owned),
        tid,
        thread_name: thread_name.map(str::to_owned),
    };
    let cases = [
        ("node-12/15;main", root(Some(12), None, Some(15), Some("node")), 11),
        ("a-b-?/15;main", root(None, None, Some(15), Some("a-b")), 9),
        ("[GC Thread#0 tid=77];main", root(None, None, Some(77), Some("GC Thread#0")), 21),
        ("thread (0x7F00);main", root(None, None, Some(0x7f00), None), 16),
        (
            "process 9:\"python a.py\";thread (11): Main;f",
            root(Some(9), Some("python a.py"), Some(11), Some("Main")),
            42,
        ),
        ("P9;T0:11;f", root(Some(9), None, Some(11), None), 9),
        ("Process 9;Thread 11;f", root(Some(9), None, Some(11), None), 20),
        ("P9;f", root(None, None, None, None), 0),
        ("T9;f", root(None, None, None, None), 0),
        ("main-loop;f", root(None, None, None, None), 0),
        ("[kernel];f", root(None, None, None, None), 0),
    ];
    for (frames, expected, start) in cases {
        assert_eq!(ThreadRoot::of(frames.as_bytes()), (expected, start), "{frames}");
    }
}

#[test]
fn threads_do_not_double_stacks() {
    let recording = open("a-1/1;f;g 1\na-1/2;f;g 2\na-1/1;f 4\na-1/2 8\n");
    let expected = [("", 8), ("f", 4), ("f;g", 3)];
    assert_eq!(totals(&recording), expected.map(|(stack, count)| (stack.to_owned(), count)).into());
    let placement = Placement::alone(&recording);
    let samples = recording.table("samples", &placement, &TableRequest::default()).unwrap().next().unwrap();
    let threads = numbers::<arrow_array::types::UInt32Type>(&samples, "thread_id").unwrap();
    assert_eq!(threads.values(), &[0, 1, 0, 1]);
}

#[test]
fn threads_do_not_depend_on_the_line_before() {
    let recording = open("P9;f 1\nP9;T11;f 2\nprocess 9:\"c\";f 4\nprocess 9:\"c\";thread (11): M;f 8\n");
    let expected = [("P9;f", 1), ("f", 14)];
    assert_eq!(totals(&recording), expected.map(|(stack, count)| (stack.to_owned(), count)).into());
}

#[test]
fn unusable_lines_are_reported_where_they_are() {
    let recording = open("a;b 1\nno count here\na;b 99999999999999999999999\na 1.5\na;;b 1\nlast 3");
    let mut sink = Diagnostics::default();
    recording.check(&mut sink);
    let found: Vec<_> = sink.rows().iter().map(|row| (row.rule.code, row.offset)).collect();
    assert_eq!(found, [("CS001", 6), ("CS002", 20), ("CS003", 48), ("CS005", 54), ("CS007", 61)]);
    assert_eq!(codes(&open("a;b 1 2\nc 3 4\n")), ["CS006"]);
    assert_eq!(codes(&open("a;b 1 2\nc 3\n")), Vec::<&str>::new());
}

#[test]
fn other_texts_are_not_collapsed_stacks() {
    for text in [
        "",
        "\n",
        "hello world\n",
        "page 10\nline 5\n",
        "a;b;3\n",
        "{\"a\": 1}\n",
        "a;b 1\nno count\n",
        "\0a;b 1\n",
    ] {
        assert_eq!(sniff(text.as_bytes()), Sniff::No, "{text:?}");
    }
    for text in ["a;b 1\n", "a;b 1", "main 1\nmain;f 2\n", "\u{feff}a;b 1\r\n", "# events: cycles\na;b 1\n"] {
        assert_eq!(sniff(text.as_bytes()), Sniff::Likely, "{text:?}");
    }
    assert_eq!(sniff(b"# austin: 3.6.0\n"), Sniff::Certain);
    assert_eq!((FORMAT.sniff)(b"a;b 1\n"), Sniff::Likely);
}

proptest! {
    #[test]
    fn chunks_and_shared_prefixes_do_not_matter(lines in prop::collection::vec(("[a-c]{1,2}(;[a-c]{1,2}){0,4}", 0u64..50), 0..40)) {
        let text: String = lines.iter().map(|(stack, count)| format!("{stack} {count}\n")).collect();
        let mut expected = BTreeMap::new();
        for (stack, count) in &lines {
            *expected.entry(stack.clone()).or_insert(0) += count;
        }
        prop_assert_eq!(totals(&open(&text)), expected);
    }

    #[test]
    fn any_bytes_are_read_to_the_end(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let len = bytes.len() as u64;
        let source = Source::from_bytes("any", bytes).unwrap();
        let recording = CollapsedStacks::open(Arc::new(source)).unwrap();
        let mut at = Position::default();
        while let Some(record) = recording.next_record(&mut at) {
            prop_assert!(record.offset + record.size <= len);
        }
        let mut sink = Diagnostics::default();
        recording.check(&mut sink);
        prop_assert!(sink.rows().iter().all(|row| row.offset <= len));
        for table in FORMAT.tables {
            let _ = recording.table(table, &Placement::alone(&recording), &TableRequest::default()).map(Iterator::count);
        }
    }

    #[test]
    fn a_count_is_the_last_word(count: u64) {
        let text = format!("f g;h {count}");
        let is_whole = matches!(Line::parse(text.as_bytes()), Line::Stack(stack) if stack.count == count && stack.frames == b"f g;h");
        prop_assert!(is_whole);
    }
}
