//! PERF_RECORD_SAMPLE, whose fields are those its event's `sample_type` asks for.

use linux_perf_event_reader::constants as abi;
use perfuse_wire::{Cursor, Endian, ErrorKind, ParseError};

use super::attribute::Shape;

/// Words in the file's byte order.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    bytes: &'a [u8],
    endian: Endian,
}

impl<'a> Words<'a> {
    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.as_chunks::<8>().0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The word at an index.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<u64> {
        let word = *self.bytes.as_chunks::<8>().0.get(index)?;
        Some(match self.endian {
            Endian::Little => u64::from_le_bytes(word),
            Endian::Big => u64::from_be_bytes(word),
        })
    }

    /// The words, in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = u64> + use<'a> {
        let endian = self.endian;
        self.bytes.as_chunks::<8>().0.iter().map(move |word| match endian {
            Endian::Little => u64::from_le_bytes(*word),
            Endian::Big => u64::from_be_bytes(*word),
        })
    }
}

/// What nearly every sample has: the fields up to the call chain.
#[derive(Clone, Copy, Debug, Default)]
pub struct SampleHead<'a> {
    /// Event id.
    pub id: Option<u64>,
    /// Address that was interrupted.
    pub ip: Option<u64>,
    /// Process, -1 where not recorded.
    pub pid: Option<i32>,
    /// Thread.
    pub tid: Option<i32>,
    /// Time, on the recording's clock.
    pub time: Option<u64>,
    /// Address of the data the event is about.
    pub addr: Option<u64>,
    /// Stream id.
    pub stream_id: Option<u64>,
    /// Processor.
    pub cpu: Option<u32>,
    /// Events the sample stands for.
    pub period: Option<u64>,
    /// Counter values, as `read_format` has them.
    pub read: Option<Words<'a>>,
    /// Return addresses, innermost first, with the kernel's context markers in place.
    pub callchain: Option<Words<'a>>,
}

/// A set of registers.
#[derive(Clone, Copy, Debug)]
pub struct Registers<'a> {
    /// 1 for 32-bit code, 2 for 64-bit.
    pub abi: u64,
    /// One word for each bit of the attribute's mask, lowest first.
    pub values: Words<'a>,
}

/// A whole sample.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample<'a> {
    /// Fields up to the call chain.
    pub head: SampleHead<'a>,
    /// What a tracepoint or a BPF program wrote.
    pub raw: Option<&'a [u8]>,
    /// Branches: from, to and flags of each, most recent first.
    pub branch_stack: Option<Words<'a>>,
    /// User registers; none where a kernel thread was interrupted.
    pub user_regs: Option<Registers<'a>>,
    /// A copy of the user stack from its pointer up, cut to what was really copied.
    pub user_stack: Option<&'a [u8]>,
    /// Weight, or three parts of one.
    pub weight: Option<u64>,
    /// Where data came from.
    pub data_src: Option<u64>,
    /// Why a transaction was aborted.
    pub transaction: Option<u64>,
    /// Registers at the interrupt.
    pub intr_regs: Option<Registers<'a>>,
    /// Physical address of the data.
    pub phys_addr: Option<u64>,
    /// Control group.
    pub cgroup: Option<u64>,
    /// Size of the data's page.
    pub data_page_size: Option<u64>,
    /// Size of the code's page.
    pub code_page_size: Option<u64>,
    /// A piece of the AUX area.
    pub aux: Option<&'a [u8]>,
}

impl<'a> SampleHead<'a> {
    /// Reads the fields up to the call chain.
    ///
    /// # Errors
    /// Where the body ends inside a field.
    #[inline]
    pub fn read(cursor: &mut Cursor<'a>, shape: &Shape) -> Result<Self, ParseError> {
        let mut head = Self::default();
        if shape.has(abi::PERF_SAMPLE_IDENTIFIER) {
            head.id = Some(cursor.u64("identifier")?);
        }
        if shape.has(abi::PERF_SAMPLE_IP) {
            head.ip = Some(cursor.u64("ip")?);
        }
        if shape.has(abi::PERF_SAMPLE_TID) {
            head.pid = Some(cursor.i32("pid")?);
            head.tid = Some(cursor.i32("tid")?);
        }
        if shape.has(abi::PERF_SAMPLE_TIME) {
            head.time = Some(cursor.u64("time")?);
        }
        if shape.has(abi::PERF_SAMPLE_ADDR) {
            head.addr = Some(cursor.u64("addr")?);
        }
        if shape.has(abi::PERF_SAMPLE_ID) {
            head.id = Some(cursor.u64("id")?);
        }
        if shape.has(abi::PERF_SAMPLE_STREAM_ID) {
            head.stream_id = Some(cursor.u64("stream_id")?);
        }
        if shape.has(abi::PERF_SAMPLE_CPU) {
            head.cpu = Some(cursor.u32("cpu")?);
            cursor.u32("res")?;
        }
        if shape.has(abi::PERF_SAMPLE_PERIOD) {
            head.period = Some(cursor.u64("period")?);
        }
        if shape.has(abi::PERF_SAMPLE_READ) {
            head.read = Some(read_values(cursor, shape)?);
        }
        if shape.has(abi::PERF_SAMPLE_CALLCHAIN) {
            let nr = cursor.u64("nr")?;
            head.callchain = Some(words(cursor, nr, "ips")?);
        }
        Ok(head)
    }
}

impl<'a> Sample<'a> {
    /// Reads a whole body.
    ///
    /// # Errors
    /// Where the body ends inside a field.
    pub fn read(cursor: &mut Cursor<'a>, shape: &Shape) -> Result<Self, ParseError> {
        let mut sample = Self { head: SampleHead::read(cursor, shape)?, ..Self::default() };
        let word = |cursor: &mut Cursor<'a>, bit: u64, field: &'static str| {
            shape.has(bit).then(|| cursor.u64(field)).transpose()
        };
        if shape.has(abi::PERF_SAMPLE_RAW) {
            let size = cursor.u32("raw.size")?;
            sample.raw = Some(cursor.bytes(u64::from(size), "raw.data")?);
        }
        if shape.has(abi::PERF_SAMPLE_BRANCH_STACK) {
            let nr = cursor.u64("bnr")?;
            let (index, counters) = shape.branch;
            if index {
                cursor.u64("hw_idx")?;
            }
            sample.branch_stack = Some(words(cursor, nr.saturating_mul(3), "lbr")?);
            if counters {
                words(cursor, nr, "counters")?;
            }
        }
        if shape.has(abi::PERF_SAMPLE_REGS_USER) {
            sample.user_regs = registers(cursor, shape.num_regs.0, "user_regs")?;
        }
        if shape.has(abi::PERF_SAMPLE_STACK_USER) {
            sample.user_stack = Some(user_stack(cursor)?);
        }
        sample.weight = word(cursor, abi::PERF_SAMPLE_WEIGHT | abi::PERF_SAMPLE_WEIGHT_STRUCT, "weight")?;
        sample.data_src = word(cursor, abi::PERF_SAMPLE_DATA_SRC, "data_src")?;
        sample.transaction = word(cursor, abi::PERF_SAMPLE_TRANSACTION, "transaction")?;
        if shape.has(abi::PERF_SAMPLE_REGS_INTR) {
            sample.intr_regs = registers(cursor, shape.num_regs.1, "intr_regs")?;
        }
        sample.phys_addr = word(cursor, abi::PERF_SAMPLE_PHYS_ADDR, "phys_addr")?;
        sample.cgroup = word(cursor, abi::PERF_SAMPLE_CGROUP, "cgroup")?;
        sample.data_page_size = word(cursor, abi::PERF_SAMPLE_DATA_PAGE_SIZE, "data_page_size")?;
        sample.code_page_size = word(cursor, abi::PERF_SAMPLE_CODE_PAGE_SIZE, "code_page_size")?;
        if shape.has(abi::PERF_SAMPLE_AUX) {
            let size = cursor.u64("aux.size")?;
            sample.aux = Some(cursor.bytes(size, "aux.data")?);
        }
        Ok(sample)
    }
}

fn words<'a>(cursor: &mut Cursor<'a>, count: u64, field: &'static str) -> Result<Words<'a>, ParseError> {
    let endian = cursor.endian();
    // A count whose bytes overflow is more than any body has, and fails as such.
    Ok(Words { bytes: cursor.bytes(count.saturating_mul(8), field)?, endian })
}

/// Counter values: a value with its times, or a count, the times, and that many values.
fn read_values<'a>(cursor: &mut Cursor<'a>, shape: &Shape) -> Result<Words<'a>, ParseError> {
    let layout = shape.read_values();
    let each = layout.with_value.saturating_add(1) as u64;
    let count = if layout.group {
        let mut ahead = *cursor;
        let values = ahead.u64("read.nr")?;
        values.saturating_mul(each).saturating_add(layout.times as u64).saturating_add(1)
    } else {
        each.saturating_add(layout.times as u64)
    };
    words(cursor, count, "read")
}

fn registers<'a>(
    cursor: &mut Cursor<'a>,
    count: u32,
    field: &'static str,
) -> Result<Option<Registers<'a>>, ParseError> {
    match cursor.u64(field)? {
        0 => Ok(None),
        abi => Ok(Some(Registers { abi, values: words(cursor, u64::from(count), field)? })),
    }
}

fn user_stack<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], ParseError> {
    let size = cursor.u64("stack_user.size")?;
    let bytes = cursor.bytes(size, "stack_user.data")?;
    if size == 0 {
        return Ok(bytes);
    }
    let offset = cursor.offset();
    let copied = cursor.u64("stack_user.dyn_size")?;
    let cut = usize::try_from(copied).ok().and_then(|copied| bytes.get(..copied));
    cut.ok_or_else(|| {
        let expected = "no more than stack_user.size";
        ParseError::new(ErrorKind::Invalid { value: copied, expected }, offset, "stack_user.dyn_size")
    })
}
