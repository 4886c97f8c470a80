//! What each recorded event is and how its records lie: everything a body is decoded by.

use linux_perf_event_reader::constants as abi;
use perfuse_wire::{Cursor, Endian};
use rustc_hash::FxHashMap;

use super::consts::{RecordType, event_name};
use super::layout::EventAttr;

/// `PERF_FORMAT_LOST`: counter values end with the number of lost samples.
const FORMAT_LOST: u64 = 1 << 4;
/// `PERF_SAMPLE_BRANCH_COUNTERS`: branch stacks end with a word of counters a branch.
const BRANCH_COUNTERS: u64 = 1 << 19;

/// One event of the recording: its `perf_event_attr`, its ids, its name.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// Its fields, 0 where the writer's structure was shorter.
    pub fields: EventAttr,
    /// The structure as written, for a copy.
    pub bytes: Vec<u8>,
    /// Ids its records carry, one for each processor or task.
    pub ids: Vec<u64>,
    /// Name the file gives it, else perf's name for its type.
    pub name: String,
    /// Where things lie in its records.
    pub shape: Shape,
}

impl Attribute {
    /// Reads a `perf_event_attr` of any size; shorter ones are those of older kernels.
    #[must_use]
    pub fn new(bytes: &[u8], ids: Vec<u64>, endian: Endian) -> Option<Self> {
        let mut whole = [0; EventAttr::SIZE as usize];
        let known = bytes.len().min(whole.len());
        whole.get_mut(..known)?.copy_from_slice(bytes.get(..known)?);
        let fields = EventAttr::read(&mut Cursor::new(&whole, 0, endian)).ok()?;
        let name = event_name(fields.type_, fields.config);
        Some(Self { fields, bytes: bytes.to_vec(), ids, name, shape: Shape::new(&fields) })
    }

    /// The clock of its time stamps, where it was chosen.
    #[must_use]
    pub fn clockid(&self) -> Option<i32> {
        (self.fields.flags & abi::ATTR_FLAG_BIT_USE_CLOCKID != 0).then_some(self.fields.clockid)
    }

    /// Events a sample stands for, where the sample does not say.
    #[must_use]
    pub fn fixed_period(&self) -> u64 {
        match self.fields.flags & abi::ATTR_FLAG_BIT_FREQ {
            0 => self.fields.sample_period.max(1),
            _ => 1,
        }
    }
}

/// Offsets that follow from an attribute, so that a pass over records decodes no more than it needs.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// `PERF_SAMPLE_*` bits.
    pub sample_type: u64,
    /// `PERF_FORMAT_*` bits.
    pub read_format: u64,
    /// Whether branch stacks have the hardware index, and a word of counters a branch.
    pub branch: (bool, bool),
    /// Registers in a set of user registers, and in one taken at the interrupt.
    pub num_regs: (u32, u32),
    /// Size of the sample id at the end of records other than samples.
    pub sample_id_bytes: usize,
    time: Place,
    id: Place,
    pid: Option<usize>,
}

/// Where a field is: from the start of a sample, and from the end of any other record.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    in_sample: Option<usize>,
    from_end: Option<usize>,
}

impl Shape {
    fn new(attr: &EventAttr) -> Self {
        use abi::{
            PERF_SAMPLE_ADDR as ADDR, PERF_SAMPLE_CPU as CPU, PERF_SAMPLE_ID as ID,
            PERF_SAMPLE_IDENTIFIER as IDENTIFIER, PERF_SAMPLE_IP as IP, PERF_SAMPLE_STREAM_ID as STREAM_ID,
            PERF_SAMPLE_TID as TID, PERF_SAMPLE_TIME as TIME,
        };
        let has = |bit: u64| attr.sample_type & bit != 0;
        // Every one of these fields is eight bytes.
        let bytes_of = |bits: u64| (attr.sample_type & bits).count_ones().saturating_mul(8) as usize;
        let sample_id_all = attr.flags & abi::ATTR_FLAG_BIT_SAMPLE_ID_ALL != 0;
        let after_time = TIME | ID | STREAM_ID | CPU | IDENTIFIER;
        let id = if has(IDENTIFIER) {
            Place { in_sample: Some(0), from_end: Some(8) }
        } else if has(ID) {
            Place {
                in_sample: Some(bytes_of(IP | TID | TIME | ADDR)),
                from_end: Some(bytes_of(ID | STREAM_ID | CPU)),
            }
        } else {
            Place::default()
        };
        let time = if has(TIME) {
            Place { in_sample: Some(bytes_of(IDENTIFIER | IP | TID)), from_end: Some(bytes_of(after_time)) }
        } else {
            Place::default()
        };
        let with_trailer =
            |place: Place| Place { from_end: place.from_end.filter(|_| sample_id_all), ..place };
        Self {
            sample_type: attr.sample_type,
            read_format: attr.read_format,
            branch: (
                attr.branch_sample_type & abi::PERF_SAMPLE_BRANCH_HW_INDEX != 0,
                attr.branch_sample_type & BRANCH_COUNTERS != 0,
            ),
            num_regs: (attr.sample_regs_user.count_ones(), attr.sample_regs_intr.count_ones()),
            sample_id_bytes: if sample_id_all { bytes_of(TID | after_time) } else { 0 },
            time: with_trailer(time),
            id: with_trailer(id),
            pid: has(TID).then(|| bytes_of(IDENTIFIER | IP)),
        }
    }

    /// Whether samples hold this.
    #[must_use]
    #[inline]
    pub fn has(&self, bit: u64) -> bool {
        self.sample_type & bit != 0
    }

    /// Whether samples have a time.
    #[must_use]
    pub fn has_time(&self) -> bool {
        self.time.in_sample.is_some()
    }

    /// Words of one counter value, and whether values come in groups.
    #[must_use]
    pub fn read_values(&self) -> ReadValues {
        let has = |bit: u64| usize::from(self.read_format & bit != 0);
        ReadValues {
            group: has(abi::PERF_FORMAT_GROUP) != 0,
            times: has(abi::PERF_FORMAT_TOTAL_TIME_ENABLED)
                .saturating_add(has(abi::PERF_FORMAT_TOTAL_TIME_RUNNING)),
            with_value: has(abi::PERF_FORMAT_ID).saturating_add(has(FORMAT_LOST)),
        }
    }

    /// Time of a record of the kernel's.
    #[must_use]
    #[inline]
    pub fn time(&self, record_type: RecordType, body: &[u8], endian: Endian) -> Option<u64> {
        self.time.word(record_type, body, endian)
    }

    /// Event id of a record of the kernel's.
    #[must_use]
    #[inline]
    pub fn id(&self, record_type: RecordType, body: &[u8], endian: Endian) -> Option<u64> {
        self.id.word(record_type, body, endian)
    }

    /// Process a sample was taken in.
    #[must_use]
    #[inline]
    pub fn sample_pid(&self, body: &[u8], endian: Endian) -> Option<i32> {
        Cursor::new(body.get(self.pid?..)?, 0, endian).i32("pid").ok()
    }
}

/// How counter values lie in a sample.
#[derive(Clone, Copy, Debug)]
pub struct ReadValues {
    /// Whether a count of values comes first.
    pub group: bool,
    /// Words of time.
    pub times: usize,
    /// Words that come with each value.
    pub with_value: usize,
}

impl Place {
    #[inline]
    fn word(self, record_type: RecordType, body: &[u8], endian: Endian) -> Option<u64> {
        let start = match record_type {
            RecordType::SAMPLE => self.in_sample?,
            _ => body.len().checked_sub(self.from_end?)?,
        };
        Cursor::new(body.get(start..)?, 0, endian).u64("word").ok()
    }
}

/// The events of a recording; the index of one is how records refer to it here.
#[derive(Clone, Debug, Default)]
pub struct Attributes {
    list: Vec<Attribute>,
    by_id: FxHashMap<u64, usize>,
}

impl Attributes {
    /// Adds one.
    pub fn push(&mut self, attribute: Attribute) {
        for &id in &attribute.ids {
            self.by_id.insert(id, self.list.len());
        }
        self.list.push(attribute);
    }

    /// All, in the order of the file.
    #[must_use]
    pub fn list(&self) -> &[Attribute] {
        &self.list
    }

    /// Names the event that has this id.
    pub fn rename(&mut self, id: u64, name: &str) {
        if let Some(attribute) = self.by_id.get(&id).and_then(|&index| self.list.get_mut(index)) {
            name.clone_into(&mut attribute.name);
        }
    }

    /// Names the event at that index.
    pub fn rename_at(&mut self, index: usize, name: &str) {
        if let Some(attribute) = self.list.get_mut(index) {
            name.clone_into(&mut attribute.name);
        }
    }

    /// The event a record of the kernel's belongs to, and whether that is certain.
    ///
    /// perf asks every attribute of a recording for its id in the same place, so the first one says where it is. Records
    /// that perf synthesizes carry id 0 and belong to the first.
    #[must_use]
    #[inline]
    pub fn of(&self, record_type: RecordType, body: &[u8], endian: Endian) -> Option<(usize, bool)> {
        let first = self.list.first()?;
        if self.list.len() == 1 {
            return Some((0, true));
        }
        match first.shape.id(record_type, body, endian) {
            Some(id) => match self.by_id.get(&id) {
                Some(&index) => Some((index, true)),
                None => Some((0, id == 0)),
            },
            None => Some((0, record_type != RecordType::SAMPLE)),
        }
    }
}
