//! `.heapsnapshot`: heap snapshots of V8, for the memory panel of Chrome's `DevTools`.
//!
//! The layout is `HeapSnapshotJSONSerializer` of V8's `src/profiler/heap-snapshot-generator.cc`.

use std::fmt::Write as _;
use std::io::Write;

use rustc_hash::FxHashMap;

use super::{HeapDump, go_on};
use crate::json::{number, string};
use crate::{Error, Progress, Spool};

/// Fields and types, as V8 states them.
const META: &str = concat!(
    r#"{"node_fields":["type","name","id","self_size","edge_count","trace_node_id","detachedness"],"#,
    r#""node_types":[["hidden","array","string","object","code","closure","regexp","number","native","synthetic","#,
    r#""concatenated string","sliced string","symbol","bigint","object shape"],"#,
    r#""string","number","number","number","number","number"],"#,
    r#""edge_fields":["type","name_or_index","to_node"],"#,
    r#""edge_types":[["context","element","property","internal","hidden","shortcut","weak"],"#,
    r#""string_or_number","node"],"#,
    r#""trace_function_info_fields":["function_id","name","script_name","script_id","line","column"],"#,
    r#""trace_node_fields":["id","function_info_index","count","size","children"],"#,
    r#""sample_fields":["timestamp_us","last_assigned_id"],"#,
    r#""location_fields":["object_index","script_id","line","column"]}"#,
);
/// Numbers of a node.
const NODE_FIELDS: u64 = 7;

const OBJECT: u64 = 3;
const SYNTHETIC: u64 = 9;

const ELEMENT: u64 = 1;
const PROPERTY: u64 = 2;
const WEAK: u64 = 6;

/// Writes a snapshot.
///
/// Below the root are the roots by kind, each an edge with its text, and the objects that no root keeps alive. Edges from
/// these to objects that are alive are weak, so retained sizes are those of the snapshot.
///
/// # Errors
/// [`Error`]
pub fn write_v8(
    dump: &HeapDump<'_>,
    out: impl Write + Send + 'static,
    progress: &mut Progress<'_>,
) -> Result<(), Error> {
    let mut writer =
        V8Writer { dump, spool: Spool::new(out), strings: Strings::default(), groups: Vec::new() };
    writer.strings.id("");
    writer.group_roots();
    let result = writer.head().and_then(|()| writer.nodes(progress)).and_then(|()| writer.edges(progress));
    if result.is_ok() {
        writer.tail();
    }
    let failed = writer.spool.failed();
    let written = writer.spool.finish();
    if !failed {
        result?;
    }
    Ok(written?)
}

/// An edge: type, name or index, and node.
type Edge = (u64, u64, u64);

/// A node that is not an object, with its edges.
struct Group {
    name: u64,
    edges: Vec<Edge>,
}

struct V8Writer<'a> {
    dump: &'a HeapDump<'a>,
    spool: Spool,
    strings: Strings,
    /// Nodes before those of objects.
    groups: Vec<Group>,
}

impl V8Writer<'_> {
    /// Makes the nodes above the objects.
    fn group_roots(&mut self) {
        let Self { dump, strings, groups, .. } = self;
        let (roots, texts) = (dump.heap.roots(), dump.root_texts());
        let (kinds, weak) = (dump.roots_by_kind(), roots.weak());
        let rest = dump.heap.unreachable_entries();
        let has_groups = kinds.len() as u64 + u64::from(!weak.is_empty());
        let first_object = 2 + has_groups + u64::from(!rest.is_empty());
        let mut top = vec![(ELEMENT, 1, 1)];
        if !rest.is_empty() {
            top.push((ELEMENT, 2, first_object - 1));
        }
        groups.push(Group { name: strings.id(""), edges: top });
        let below = (1..=has_groups).map(|number| (ELEMENT, number, number + 1)).collect();
        groups.push(Group { name: strings.id("(GC roots)"), edges: below });
        for (kind, of_kind) in kinds {
            let edges = of_kind.iter().map(|root| {
                let text = texts.get(&roots.identity(root)).copied().unwrap_or(kind);
                (PROPERTY, strings.id(text), first_object + u64::from(root.object))
            });
            let edges = edges.collect();
            groups.push(Group { name: strings.id(&format!("({})", kind.replace('_', " "))), edges });
        }
        if !weak.is_empty() {
            let edges = weak.iter().map(|root| {
                let text = texts.get(&roots.identity(root)).copied().unwrap_or("weak");
                (WEAK, strings.id(text), first_object + u64::from(root.object))
            });
            let edges = edges.collect();
            groups.push(Group { name: strings.id("(weak roots)"), edges });
        }
        if !rest.is_empty() {
            let edges = (1..).zip(rest).map(|(at, &object)| (ELEMENT, at, first_object + u64::from(object)));
            let edges = edges.collect();
            let name = if dump.heap.has_roots() { "(unreachable)" } else { "(no roots recorded)" };
            groups.push(Group { name: strings.id(name), edges });
        }
    }

    fn head(&mut self) -> Result<(), Error> {
        let heap = self.dump.heap;
        let num_nodes = self.groups.len() + heap.objects().len();
        let num_edges =
            self.groups.iter().map(|group| group.edges.len()).sum::<usize>() + heap.num_references();
        let mut head = String::new();
        let _ = write!(
            head,
            "{{\"snapshot\":{{\"meta\":{META},\"node_count\":{num_nodes},\"edge_count\":{num_edges},\
             \"trace_function_count\":0,\"root_index\":0}},\n\"nodes\":["
        );
        self.spool.buffer().extend_from_slice(head.as_bytes());
        Ok(())
    }

    fn nodes(&mut self, progress: &mut Progress<'_>) -> Result<(), Error> {
        let Self { dump, spool, strings, groups } = self;
        for (at, group) in (0..).zip(&*groups) {
            node(spool.buffer(), at, [SYNTHETIC, group.name, 0, group.edges.len() as u64]);
        }
        let names: Vec<_> = dump.class_names().map(|name| strings.id(name)).collect();
        let first = groups.len() as u64;
        let objects = dump.heap.objects();
        for object in 0..objects.len() as u32 {
            let name = names.get(objects.class(object) as usize).copied().unwrap_or_default();
            let num_edges = dump.heap.references_from(object).len() as u64;
            node(spool.buffer(), first + u64::from(object), [OBJECT, name, objects.size(object), num_edges]);
            go_on(spool, object.into(), progress)?;
        }
        Ok(())
    }

    fn edges(&mut self, progress: &mut Progress<'_>) -> Result<(), Error> {
        let Self { dump, spool, strings, groups } = self;
        spool.buffer().extend_from_slice(b"],\n\"edges\":[");
        let mut is_first = true;
        for &one in groups.iter().flat_map(|group| &group.edges) {
            edge(spool.buffer(), &mut is_first, one);
            spool.flush_if_full();
        }
        let first = groups.len() as u64;
        let num_objects = dump.heap.objects().len() as u32;
        let mut fields = FxHashMap::default();
        for object in 0..num_objects {
            for (at, (target, offset)) in (0u64..).zip(dump.heap.references_from(object)) {
                let is_weak = dump.is_from_garbage(object, target);
                let (kind, name) = match offset {
                    Some(offset) => {
                        let name = fields.entry(offset).or_insert_with(|| strings.id(&format!("+{offset}")));
                        (if is_weak { WEAK } else { PROPERTY }, *name)
                    }
                    None if is_weak => (WEAK, strings.id(&at.to_string())),
                    None => (ELEMENT, at),
                };
                edge(spool.buffer(), &mut is_first, (kind, name, first + u64::from(target)));
            }
            go_on(spool, u64::from(num_objects) + u64::from(object), progress)?;
        }
        Ok(())
    }

    fn tail(&mut self) {
        let Self { spool, strings, .. } = self;
        let out = spool.buffer();
        out.extend_from_slice(b"],\n\"trace_function_infos\":[],\n\"trace_tree\":[],\n\"samples\":[],\n");
        out.extend_from_slice(b"\"locations\":[],\n\"strings\":[");
        for (at, text) in strings.texts.iter().enumerate() {
            if at > 0 {
                spool.buffer().extend_from_slice(b",\n");
            }
            string(spool.buffer(), text);
            spool.flush_if_full();
        }
        spool.buffer().extend_from_slice(b"]}\n");
    }
}

#[inline]
fn node(out: &mut Vec<u8>, at: u64, [kind, name, size, num_edges]: [u64; 4]) {
    if at > 0 {
        out.push(b',');
    }
    // V8's numbers of objects on its heap are odd.
    for value in [kind, name, at * 2 + 1, size, num_edges] {
        number(out, value);
        out.push(b',');
    }
    out.extend_from_slice(b"0,0\n");
}

#[inline]
fn edge(out: &mut Vec<u8>, is_first: &mut bool, (kind, name, to): Edge) {
    if !std::mem::take(is_first) {
        out.push(b',');
    }
    number(out, kind);
    out.push(b',');
    number(out, name);
    out.push(b',');
    number(out, to * NODE_FIELDS);
    out.push(b'\n');
}

/// Texts by number.
#[derive(Default)]
struct Strings {
    texts: Vec<Box<str>>,
    numbers: FxHashMap<Box<str>, u64>,
}

impl Strings {
    fn id(&mut self, text: &str) -> u64 {
        if let Some(&id) = self.numbers.get(text) {
            return id;
        }
        let id = self.texts.len() as u64;
        self.texts.push(text.into());
        self.numbers.insert(text.into(), id);
        id
    }
}
