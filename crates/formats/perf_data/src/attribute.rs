//! Recorded events: their attributes, ids and names, and the layout of their records.

use linux_perf_event_reader::constants as abi;
use perfuse_wire::{Cursor, Endian};
use rustc_hash::FxHashMap;

use super::bit_fields;
use super::consts::{RecordType, event_name};
use super::layout::EventAttr;

/// `PERF_FORMAT_LOST`: each counter value is followed by the number of lost samples.
pub const FORMAT_LOST: u64 = 1 << 4;
/// Widths of the flags of an event: all have a bit, and `precise_ip`, the sixteenth, has two.
const FLAG_WIDTHS: [u32; 63] = {
    let mut widths = [1; 63];
    widths[15] = 2;
    widths
};
/// `PERF_SAMPLE_BRANCH_COUNTERS`: branch stacks end with one word of counters for each branch.
const BRANCH_COUNTERS: u64 = 1 << 19;

/// The flags of a `perf_event_attr` as machines of little-endian byte order have them.
pub fn flags_from_bottom(flags: u64, endian: Endian) -> u64 {
    bit_fields::from_bottom(flags, &FLAG_WIDTHS, endian == Endian::Big)
}

/// A recorded event: its `perf_event_attr`, its ids and its name.
#[derive(Clone, Debug)]
pub struct EventAttribute {
    /// The fields; those that the writer's shorter structure does not contain are 0.
    pub fields: EventAttr,
    /// The structure as written.
    pub bytes: Vec<u8>,
    /// Ids in its records, one for each processor or task.
    pub ids: Vec<u64>,
    /// Name in the file; without one, perf's name for its type.
    pub name: String,
    /// Layout of its records.
    pub layout: EventRecordLayout,
}

impl EventAttribute {
    /// Reads a `perf_event_attr` of any size; older kernels have shorter ones.
    #[must_use]
    pub fn new(bytes: &[u8], ids: Vec<u64>, endian: Endian) -> Option<Self> {
        let mut whole = [0; EventAttr::SIZE as usize];
        let len = bytes.len().min(whole.len());
        whole.get_mut(..len)?.copy_from_slice(bytes.get(..len)?);
        let mut fields = EventAttr::read(&mut Cursor::new(&whole, 0, endian)).ok()?;
        fields.flags = flags_from_bottom(fields.flags, endian);
        let name = event_name(&fields);
        Some(Self { fields, bytes: bytes.to_vec(), ids, name, layout: EventRecordLayout::new(&fields) })
    }

    /// The clock of its time stamps; `None` for perf's default clock.
    #[must_use]
    pub fn clockid(&self) -> Option<i32> {
        (self.fields.flags & abi::ATTR_FLAG_BIT_USE_CLOCKID != 0).then_some(self.fields.clockid)
    }

    /// Number of events that a sample without a period represents.
    #[must_use]
    pub fn fixed_period(&self) -> u64 {
        match self.fields.flags & abi::ATTR_FLAG_BIT_FREQ {
            0 => self.fields.sample_period.max(1),
            _ => 1,
        }
    }
}

/// Layout of the records of an event: offsets of fields, so that a pass decodes only the fields that it needs.
#[derive(Clone, Copy, Debug)]
pub struct EventRecordLayout {
    /// `PERF_SAMPLE_*` bits.
    pub sample_type: u64,
    /// `PERF_FORMAT_*` bits.
    pub read_format: u64,
    /// Layout of branch stacks.
    pub branches: BranchLayout,
    /// Number of user registers in a sample, and of registers at the interrupt.
    pub num_regs: (u32, u32),
    /// Size of the sample id at the end of records other than samples.
    pub sample_id_bytes: usize,
    time: FieldOffset,
    id: FieldOffset,
    /// Offset of process and thread from the end of records other than samples.
    trailer_task: Option<usize>,
    /// Offset of the processor from the end of records other than samples.
    trailer_cpu: Option<usize>,
}

/// What a branch stack contains.
#[derive(Clone, Copy, Debug, Default)]
pub struct BranchLayout {
    /// The processor's entry for the most recent branch.
    pub has_hw_index: bool,
    /// Counts, one word for each branch.
    pub has_counters: bool,
    /// Calls that have not returned, instead of the latest branches: `perf record --call-graph lbr`.
    pub is_call_stack: bool,
}

/// Offset of a field from the start of a sample, and from the end of other records.
#[derive(Clone, Copy, Debug, Default)]
struct FieldOffset {
    in_sample: Option<usize>,
    from_end: Option<usize>,
}

impl EventRecordLayout {
    fn new(attr: &EventAttr) -> Self {
        use abi::{
            PERF_SAMPLE_ADDR as ADDR, PERF_SAMPLE_CPU as CPU, PERF_SAMPLE_ID as ID,
            PERF_SAMPLE_IDENTIFIER as IDENTIFIER, PERF_SAMPLE_IP as IP, PERF_SAMPLE_STREAM_ID as STREAM_ID,
            PERF_SAMPLE_TID as TID, PERF_SAMPLE_TIME as TIME,
        };
        let has = |bit: u64| attr.sample_type & bit != 0;
        // Each of these fields has eight bytes.
        let bytes_of = |bits: u64| (attr.sample_type & bits).count_ones().saturating_mul(8) as usize;
        let sample_id_all = attr.flags & abi::ATTR_FLAG_BIT_SAMPLE_ID_ALL != 0;
        let after_time = TIME | ID | STREAM_ID | CPU | IDENTIFIER;
        let id = if has(IDENTIFIER) {
            FieldOffset { in_sample: Some(0), from_end: Some(8) }
        } else if has(ID) {
            FieldOffset {
                in_sample: Some(bytes_of(IP | TID | TIME | ADDR)),
                from_end: Some(bytes_of(ID | STREAM_ID | CPU)),
            }
        } else {
            FieldOffset::default()
        };
        let time = if has(TIME) {
            FieldOffset {
                in_sample: Some(bytes_of(IDENTIFIER | IP | TID)),
                from_end: Some(bytes_of(after_time)),
            }
        } else {
            FieldOffset::default()
        };
        let with_trailer =
            |field: FieldOffset| FieldOffset { from_end: field.from_end.filter(|_| sample_id_all), ..field };
        Self {
            sample_type: attr.sample_type,
            read_format: attr.read_format,
            branches: BranchLayout {
                has_hw_index: attr.branch_sample_type & abi::PERF_SAMPLE_BRANCH_HW_INDEX != 0,
                has_counters: attr.branch_sample_type & BRANCH_COUNTERS != 0,
                is_call_stack: attr.branch_sample_type & abi::PERF_SAMPLE_BRANCH_CALL_STACK != 0,
            },
            num_regs: (attr.sample_regs_user.count_ones(), attr.sample_regs_intr.count_ones()),
            sample_id_bytes: if sample_id_all { bytes_of(TID | after_time) } else { 0 },
            time: with_trailer(time),
            id: with_trailer(id),
            trailer_task: (has(TID) && sample_id_all).then(|| bytes_of(TID | after_time)),
            trailer_cpu: (has(CPU) && sample_id_all).then(|| bytes_of(CPU | IDENTIFIER)),
        }
    }

    /// Whether samples contain a field.
    #[must_use]
    #[inline]
    pub fn has(&self, bit: u64) -> bool {
        self.sample_type & bit != 0
    }

    /// Whether samples contain a time.
    #[must_use]
    pub fn has_time(&self) -> bool {
        self.time.in_sample.is_some()
    }

    /// Layout of counter values in a sample.
    #[must_use]
    pub fn counters(&self) -> CounterLayout {
        let has = |bit: u64| usize::from(self.read_format & bit != 0);
        CounterLayout {
            group: has(abi::PERF_FORMAT_GROUP) != 0,
            num_times: has(abi::PERF_FORMAT_TOTAL_TIME_ENABLED)
                .saturating_add(has(abi::PERF_FORMAT_TOTAL_TIME_RUNNING)),
            num_extra_words: has(abi::PERF_FORMAT_ID).saturating_add(has(FORMAT_LOST)),
        }
    }

    /// Time of a record of the kernel.
    #[must_use]
    #[inline]
    pub fn time(&self, record_type: RecordType, body: &[u8], endian: Endian) -> Option<u64> {
        self.time.word(record_type, body, endian)
    }

    /// Event id of a record of the kernel.
    #[must_use]
    #[inline]
    pub fn id(&self, record_type: RecordType, body: &[u8], endian: Endian) -> Option<u64> {
        self.id.word(record_type, body, endian)
    }

    /// Process and thread of a record of the kernel that is not a sample.
    #[must_use]
    pub fn trailer_task(&self, body: &[u8], endian: Endian) -> Option<(i32, i32)> {
        let mut cursor = Cursor::new(from_end(body, self.trailer_task?)?, 0, endian);
        Some((cursor.i32("pid").ok()?, cursor.i32("tid").ok()?))
    }

    /// Thread of a record of the kernel that is not a sample.
    #[must_use]
    pub fn trailer_tid(&self, body: &[u8], endian: Endian) -> Option<i32> {
        self.trailer_task(body, endian).map(|(_, tid)| tid)
    }

    /// Processor of a record of the kernel that is not a sample.
    #[must_use]
    pub fn trailer_cpu(&self, body: &[u8], endian: Endian) -> Option<u32> {
        Cursor::new(from_end(body, self.trailer_cpu?)?, 0, endian).u32("cpu").ok()
    }
}

/// The last bytes of a body.
fn from_end(body: &[u8], num_bytes: usize) -> Option<&[u8]> {
    body.get(body.len().checked_sub(num_bytes)?..)
}

/// Layout of counter values in a sample.
#[derive(Clone, Copy, Debug)]
pub struct CounterLayout {
    /// Whether the number of values precedes them.
    pub group: bool,
    /// Number of words of times.
    pub num_times: usize,
    /// Number of words after each value.
    pub num_extra_words: usize,
}

impl FieldOffset {
    /// Reads the field.
    #[inline]
    fn word(self, record_type: RecordType, body: &[u8], endian: Endian) -> Option<u64> {
        let start = match record_type {
            RecordType::SAMPLE => self.in_sample?,
            _ => body.len().checked_sub(self.from_end?)?,
        };
        Cursor::new(body.get(start..)?, 0, endian).u64("word").ok()
    }
}

/// The events of a recording, by index.
#[derive(Clone, Debug, Default)]
pub struct Attributes {
    list: Vec<EventAttribute>,
    by_id: FxHashMap<u64, usize>,
}

impl Attributes {
    /// Adds an event.
    pub fn push(&mut self, attribute: EventAttribute) {
        for &id in &attribute.ids {
            self.by_id.insert(id, self.list.len());
        }
        self.list.push(attribute);
    }

    /// All events, in file order.
    #[must_use]
    pub fn list(&self) -> &[EventAttribute] {
        &self.list
    }

    /// Index of the event with an id.
    #[must_use]
    pub fn index_of(&self, id: u64) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    /// Sets the name of the event with an id.
    pub fn rename(&mut self, id: u64, name: &str) {
        if let Some(attribute) = self.by_id.get(&id).and_then(|&index| self.list.get_mut(index)) {
            name.clone_into(&mut attribute.name);
        }
    }

    /// Names the events of a tracepoint with an id.
    pub fn name_tracepoint(&mut self, id: u64, name: &str) {
        self.name_kind(abi::PERF_TYPE_TRACEPOINT, id, name);
    }

    /// Names the events of a type and configuration.
    pub fn name_kind(&mut self, type_: u32, config: u64, name: &str) {
        for attribute in &mut self.list {
            if attribute.fields.type_ == type_ && attribute.fields.config == config {
                name.clone_into(&mut attribute.name);
            }
        }
    }

    /// Sets the name of the event at an index.
    pub fn rename_at(&mut self, index: usize, name: &str) {
        if let Some(attribute) = self.list.get_mut(index) {
            name.clone_into(&mut attribute.name);
        }
    }

    /// Index of the event of a record of the kernel, and whether its id is known.
    ///
    /// All events of a recording have the id at the same offset, so that the first one determines it. Records that perf
    /// synthesizes have id 0 and belong to the first event.
    #[must_use]
    #[inline]
    pub fn find(&self, record_type: RecordType, body: &[u8], endian: Endian) -> Option<(usize, bool)> {
        let first = self.list.first()?;
        if self.list.len() == 1 {
            return Some((0, true));
        }
        match first.layout.id(record_type, body, endian) {
            Some(id) => match self.by_id.get(&id) {
                Some(&index) => Some((index, true)),
                None => Some((0, id == 0)),
            },
            None => Some((0, record_type != RecordType::SAMPLE)),
        }
    }

    /// Whether a record of the kernel has an id that no event has.
    #[must_use]
    pub fn is_id_unknown(&self, record_type: RecordType, body: &[u8], endian: Endian) -> bool {
        let first = self.list.first().filter(|_| self.list.len() > 1);
        let id = first.and_then(|first| first.layout.id(record_type, body, endian));
        id.is_some_and(|id| id != 0 && !self.by_id.contains_key(&id))
    }
}
