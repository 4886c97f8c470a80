//! Heap snapshots as `HeapGraph` packets: objects with types, sizes and references, and roots.

use std::io::Write;

use perfuse_engine::heap::SnapshotRoot;
use rustc_hash::FxHashMap;

use super::clock::{TraceClock, describe_sequence, timestamp};
use super::fields::{
    heap_graph, heap_graph_object, heap_graph_root, heap_graph_type, interned_string, trace, trace_packet,
};
use super::tracks::process;
use crate::heap_dumps::{HeapDump, go_on};
use crate::protobuf::Encoder;
use crate::{Error, Progress, Spool};

/// Sequence of the packets of the first snapshot; those of others are before it.
const FIRST_SEQUENCE: u64 = 1 << 17;

/// Size of a packet, in bytes.
const PACKET: usize = 1 << 15;

/// Objects of a root in a packet.
const ROOTED: usize = 1 << 12;

/// Name of references whose offset is not recorded.
const REFERENCE: &str = "reference";

/// A snapshot in a trace.
#[derive(Clone, Copy, Debug)]
pub struct HeapGraph<'a> {
    /// The snapshot.
    pub dump: HeapDump<'a>,
    /// Its number in the trace.
    pub number: u32,
    /// Process.
    pub pid: i32,
    /// Time of the snapshot.
    pub ts_ns: i64,
    /// Perfetto's number of the clock of the time.
    pub clock: Option<TraceClock>,
}

/// Writes a heap snapshot, to be appended to a trace.
///
/// # Errors
/// [`Error`]
pub fn write_heap_graph(
    graph: &HeapGraph<'_>,
    out: impl Write + Send + 'static,
    progress: &mut Progress<'_>,
) -> Result<(), Error> {
    let sequence = FIRST_SEQUENCE + u64::from(graph.number);
    let mut writer =
        GraphWriter { graph, sequence, spool: Spool::new(out), index: 0, body: Encoder::default() };
    let result = writer.write(progress);
    let failed = writer.spool.failed();
    let written = writer.spool.finish();
    if !failed {
        result?;
    }
    Ok(written?)
}

struct GraphWriter<'a> {
    graph: &'a HeapGraph<'a>,
    sequence: u64,
    spool: Spool,
    /// Number of the next packet.
    index: u64,
    /// Fields of the next packet's graph.
    body: Encoder,
}

impl GraphWriter<'_> {
    fn write(&mut self, progress: &mut Progress<'_>) -> Result<(), Error> {
        let HeapGraph { pid, ts_ns, clock, .. } = *self.graph;
        self.packet(|packet| {
            packet.uint(trace_packet::SEQUENCE_FLAGS, trace_packet::SEQ_INCREMENTAL_STATE_CLEARED);
            if clock.is_some() {
                describe_sequence(packet, clock, ts_ns, |_| ());
            }
        });
        self.packet(|packet| process(packet, pid, None));
        for (id, name) in (1..).zip(self.graph.dump.class_names()) {
            self.body.message(heap_graph::TYPES, |of| {
                of.uint(heap_graph_type::ID, id);
                of.data(heap_graph_type::CLASS_NAME, name.as_bytes());
            });
            self.end_part(false);
        }
        self.roots();
        self.objects(progress)?;
        self.end_part(true);
        Ok(())
    }

    fn packet(&mut self, about: impl FnOnce(&mut Encoder)) {
        let mut encoder = Encoder::appending_to(std::mem::take(self.spool.buffer()));
        encoder.message(trace::PACKET, |packet| {
            packet.uint(trace_packet::TRUSTED_PACKET_SEQUENCE_ID, self.sequence);
            about(packet);
        });
        *self.spool.buffer() = encoder.into_bytes();
        self.spool.flush_if_full();
    }

    /// Writes what was collected, if it is enough for a packet or is the last.
    #[inline]
    fn end_part(&mut self, is_last: bool) {
        if !is_last && self.body.bytes().len() < PACKET {
            return;
        }
        let HeapGraph { pid, ts_ns, .. } = *self.graph;
        let (body, index) = (std::mem::take(&mut self.body), self.index);
        self.index += 1;
        self.packet(|packet| {
            packet.uint(trace_packet::TIMESTAMP, timestamp(ts_ns));
            packet.uint(trace_packet::SEQUENCE_FLAGS, trace_packet::SEQ_NEEDS_INCREMENTAL_STATE);
            packet.message(trace_packet::HEAP_GRAPH, |graph| {
                graph.int(heap_graph::PID, pid.into());
                graph.append(body.bytes());
                graph.uint(heap_graph::CONTINUED, u64::from(!is_last));
                graph.uint(heap_graph::INDEX, index);
            });
        });
    }

    /// The roots by their type; where the file has none, the objects that stand for them.
    fn roots(&mut self) {
        let heap = self.graph.dump.heap;
        let address = |object: u32| heap.objects().address(object);
        let mut of_type: Vec<(u64, Vec<u64>)> = Vec::new();
        for (kind, roots) in self.graph.dump.roots_by_kind() {
            let objects = roots.iter().map(|root: &&SnapshotRoot| address(root.object));
            of_type.push((root_type(kind), objects.collect()));
        }
        if !heap.has_roots() {
            let entries = heap.unreachable_entries().iter().map(|&entry| address(entry));
            of_type.push((heap_graph_root::ROOT_UNKNOWN, entries.collect()));
        }
        for (kind, objects) in of_type {
            for part in objects.chunks(ROOTED) {
                self.body.message(heap_graph::ROOTS, |root| {
                    root.packed(heap_graph_root::OBJECT_IDS, part.iter().copied());
                    root.uint(heap_graph_root::ROOT_TYPE, kind);
                });
                self.end_part(false);
            }
        }
    }

    fn objects(&mut self, progress: &mut Progress<'_>) -> Result<(), Error> {
        let heap = self.graph.dump.heap;
        let objects = heap.objects();
        let mut names: FxHashMap<Option<u32>, u64> = FxHashMap::default();
        let mut before = 0;
        for object in 0..objects.len() as u32 {
            let references = heap.references_from(object);
            for (_, offset) in references.clone() {
                let next = names.len() as u64 + 1;
                if *names.entry(offset).or_insert(next) == next {
                    let name = offset.map_or_else(|| REFERENCE.to_owned(), |offset| format!("+{offset}"));
                    self.body.message(heap_graph::FIELD_NAMES, |entry| {
                        entry.uint(interned_string::IID, next);
                        entry.data(interned_string::STR, name.as_bytes());
                    });
                }
            }
            let address = objects.address(object);
            self.body.message(heap_graph::OBJECTS, |of| {
                if before == 0 {
                    of.uint(heap_graph_object::ID, address);
                } else {
                    of.uint(heap_graph_object::ID_DELTA, address - before);
                }
                of.uint(heap_graph_object::TYPE_ID, u64::from(objects.class(object)) + 1);
                of.uint(heap_graph_object::SELF_SIZE, objects.size(object));
                let fields =
                    references.clone().map(|(_, offset)| names.get(&offset).copied().unwrap_or_default());
                of.packed(heap_graph_object::REFERENCE_FIELD_ID, fields);
                let targets = references.map(|(target, _)| objects.address(target));
                of.packed(heap_graph_object::REFERENCE_OBJECT_ID, targets);
            });
            let part = self.index;
            self.end_part(false);
            before = if part == self.index { address } else { 0 };
            go_on(&mut self.spool, object.into(), progress)?;
        }
        Ok(())
    }
}

/// Perfetto's type of a kind of roots.
fn root_type(kind: &str) -> u64 {
    match kind {
        "static" => heap_graph_root::ROOT_STICKY_CLASS,
        "stack" => heap_graph_root::ROOT_JAVA_FRAME,
        "gc_handle" => heap_graph_root::ROOT_JNI_GLOBAL,
        "thread_static" | "context_static" => heap_graph_root::ROOT_THREAD_OBJECT,
        "finalizer_queue" => heap_graph_root::ROOT_FINALIZING,
        "debugger" => heap_graph_root::ROOT_DEBUGGER,
        "external" | "other" | "misc" | "unknown" => heap_graph_root::ROOT_UNKNOWN,
        _ => heap_graph_root::ROOT_VM_INTERNAL,
    }
}
