//! PERF_RECORD_SAMPLE, whose fields depend on the `sample_type` of its event.

use linux_perf_event_reader::constants as abi;
use perfuse_wire::{Cursor, Endian, ErrorKind, ParseError};

use super::attribute::{BranchLayout, EventRecordLayout};

/// 64-bit words in the byte order of the file.
#[derive(Clone, Copy, Debug)]
pub struct EventWords<'a> {
    bytes: &'a [u8],
    endian: Endian,
}

impl<'a> EventWords<'a> {
    /// Reads a number of words.
    ///
    /// # Errors
    /// When the bytes end before.
    pub fn read(cursor: &mut Cursor<'a>, count: u64, field: &'static str) -> Result<Self, ParseError> {
        let endian = cursor.endian();
        // A count whose size in bytes overflows is larger than any body, so the saturated size fails.
        Ok(Self { bytes: cursor.bytes(count.saturating_mul(8), field)?, endian })
    }

    /// Number of words.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.as_chunks::<8>().0.len()
    }

    /// Whether there are no words.
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

/// The fields of a sample up to the call chain, which nearly every sample has.
#[derive(Clone, Copy, Debug, Default)]
pub struct SampleHead<'a> {
    /// Event id.
    pub id: Option<u64>,
    /// Interrupted address.
    pub ip: Option<u64>,
    /// Process; -1 where not recorded.
    pub pid: Option<i32>,
    /// Thread.
    pub tid: Option<i32>,
    /// Time on the recording's clock.
    pub time: Option<u64>,
    /// Address of the data of the event.
    pub addr: Option<u64>,
    /// Stream id.
    pub stream_id: Option<u64>,
    /// Number of the processor.
    pub cpu: Option<u32>,
    /// Number of events that the sample represents.
    pub period: Option<u64>,
    /// Counter values, in the layout of `read_format`.
    pub read: Option<EventWords<'a>>,
    /// Return addresses, innermost first, with the context markers of the kernel.
    pub callchain: Option<EventWords<'a>>,
}

/// A set of registers.
#[derive(Clone, Copy, Debug)]
pub struct SampleRegisters<'a> {
    /// 1 for 32-bit code, 2 for 64-bit.
    pub abi: u64,
    /// One word for each bit of the attribute's mask, lowest first.
    pub values: EventWords<'a>,
}

/// What a sample has of its thread in user mode.
#[derive(Clone, Copy, Debug, Default)]
pub struct UserState<'a> {
    /// Registers; `None` for a kernel thread.
    pub registers: Option<SampleRegisters<'a>>,
    /// A copy of the stack from the stack pointer upwards; only bytes that were copied.
    pub stack: Option<&'a [u8]>,
}

/// All fields of a sample.
#[derive(Clone, Copy, Debug, Default)]
pub struct SampleRecord<'a> {
    /// Fields up to the call chain.
    pub head: SampleHead<'a>,
    /// Data of a tracepoint or a BPF program.
    pub raw: Option<&'a [u8]>,
    /// Branches: origin, target and flags of each, most recent first.
    pub branch_stack: Option<EventWords<'a>>,
    /// Counts since the branch before, one word for each branch.
    pub branch_counters: Option<EventWords<'a>>,
    /// Number of the processor's entry for the most recent branch.
    pub branch_hw_index: Option<u64>,
    /// Registers and stack of user mode.
    pub user: UserState<'a>,
    /// Weight, or three parts of a weight.
    pub weight: Option<u64>,
    /// Source of the data in the memory hierarchy.
    pub data_src: Option<u64>,
    /// Reason why a transaction was aborted.
    pub transaction: Option<u64>,
    /// Registers at the interrupt.
    pub intr_regs: Option<SampleRegisters<'a>>,
    /// Physical address of the data.
    pub phys_addr: Option<u64>,
    /// Control group.
    pub cgroup: Option<u64>,
    /// Size of the data's page.
    pub data_page_size: Option<u64>,
    /// Size of the code's page.
    pub code_page_size: Option<u64>,
    /// A part of the AUX area.
    pub aux: Option<&'a [u8]>,
}

impl<'a> SampleHead<'a> {
    /// Reads the fields up to the call chain.
    ///
    /// # Errors
    /// When the body ends inside a field.
    #[inline]
    pub fn read(cursor: &mut Cursor<'a>, layout: &EventRecordLayout) -> Result<Self, ParseError> {
        let mut head = Self::default();
        if layout.has(abi::PERF_SAMPLE_IDENTIFIER) {
            head.id = Some(cursor.u64("identifier")?);
        }
        if layout.has(abi::PERF_SAMPLE_IP) {
            head.ip = Some(cursor.u64("ip")?);
        }
        if layout.has(abi::PERF_SAMPLE_TID) {
            head.pid = Some(cursor.i32("pid")?);
            head.tid = Some(cursor.i32("tid")?);
        }
        if layout.has(abi::PERF_SAMPLE_TIME) {
            head.time = Some(cursor.u64("time")?);
        }
        if layout.has(abi::PERF_SAMPLE_ADDR) {
            head.addr = Some(cursor.u64("addr")?);
        }
        if layout.has(abi::PERF_SAMPLE_ID) {
            head.id = Some(cursor.u64("id")?);
        }
        if layout.has(abi::PERF_SAMPLE_STREAM_ID) {
            head.stream_id = Some(cursor.u64("stream_id")?);
        }
        if layout.has(abi::PERF_SAMPLE_CPU) {
            head.cpu = Some(cursor.u32("cpu")?);
            cursor.u32("res")?;
        }
        if layout.has(abi::PERF_SAMPLE_PERIOD) {
            head.period = Some(cursor.u64("period")?);
        }
        if layout.has(abi::PERF_SAMPLE_READ) {
            head.read = Some(read_counters(cursor, layout)?);
        }
        if layout.has(abi::PERF_SAMPLE_CALLCHAIN) {
            let nr = cursor.u64("nr")?;
            head.callchain = Some(EventWords::read(cursor, nr, "ips")?);
        }
        Ok(head)
    }
}

impl<'a> SampleRecord<'a> {
    /// The weight; where it has three parts, each of them.
    #[must_use]
    pub fn weight_parts(&self, layout: &EventRecordLayout) -> [Option<u64>; 3] {
        match self.weight {
            Some(word) if layout.has(abi::PERF_SAMPLE_WEIGHT_STRUCT) => {
                // The parts have the same bits in both byte orders.
                [Some(word & 0xffff_ffff), Some((word >> 32) & 0xffff), Some(word >> 48)]
            }
            weight => [weight, None, None],
        }
    }

    /// Reads a body.
    ///
    /// # Errors
    /// When the body ends inside a field.
    pub fn read(cursor: &mut Cursor<'a>, layout: &EventRecordLayout) -> Result<Self, ParseError> {
        let mut sample = Self { head: SampleHead::read(cursor, layout)?, ..Self::default() };
        let word = |cursor: &mut Cursor<'a>, bit: u64, field: &'static str| {
            layout.has(bit).then(|| cursor.u64(field)).transpose()
        };
        sample.raw = raw_data(cursor, layout)?;
        sample.read_branches(cursor, layout)?;
        sample.user = UserState::read_fields(cursor, layout)?;
        sample.weight = word(cursor, abi::PERF_SAMPLE_WEIGHT | abi::PERF_SAMPLE_WEIGHT_STRUCT, "weight")?;
        sample.data_src = word(cursor, abi::PERF_SAMPLE_DATA_SRC, "data_src")?;
        sample.transaction = word(cursor, abi::PERF_SAMPLE_TRANSACTION, "transaction")?;
        if layout.has(abi::PERF_SAMPLE_REGS_INTR) {
            sample.intr_regs = registers(cursor, layout.num_regs.1, "intr_regs")?;
        }
        sample.phys_addr = word(cursor, abi::PERF_SAMPLE_PHYS_ADDR, "phys_addr")?;
        sample.cgroup = word(cursor, abi::PERF_SAMPLE_CGROUP, "cgroup")?;
        sample.data_page_size = word(cursor, abi::PERF_SAMPLE_DATA_PAGE_SIZE, "data_page_size")?;
        sample.code_page_size = word(cursor, abi::PERF_SAMPLE_CODE_PAGE_SIZE, "code_page_size")?;
        if layout.has(abi::PERF_SAMPLE_AUX) {
            let size = cursor.u64("aux.size")?;
            sample.aux = Some(cursor.bytes(size, "aux.data")?);
        }
        Ok(sample)
    }

    fn read_branches(
        &mut self,
        cursor: &mut Cursor<'a>,
        layout: &EventRecordLayout,
    ) -> Result<(), ParseError> {
        if layout.has(abi::PERF_SAMPLE_BRANCH_STACK) {
            let nr = cursor.u64("bnr")?;
            let BranchLayout { has_hw_index, has_counters, .. } = layout.branches;
            if has_hw_index {
                self.branch_hw_index = Some(cursor.u64("hw_idx")?);
            }
            self.branch_stack = Some(EventWords::read(cursor, nr.saturating_mul(3), "lbr")?);
            if has_counters {
                self.branch_counters = Some(EventWords::read(cursor, nr, "counters")?);
            }
        }
        Ok(())
    }
}

/// Fields of one word each, before the first field whose size varies.
const FIRST_WORDS: u64 = abi::PERF_SAMPLE_IDENTIFIER
    | abi::PERF_SAMPLE_IP
    | abi::PERF_SAMPLE_TID
    | abi::PERF_SAMPLE_TIME
    | abi::PERF_SAMPLE_ADDR
    | abi::PERF_SAMPLE_ID
    | abi::PERF_SAMPLE_STREAM_ID
    | abi::PERF_SAMPLE_CPU
    | abi::PERF_SAMPLE_PERIOD;

impl<'a> UserState<'a> {
    /// Whether there are registers or bytes of a stack.
    #[must_use]
    pub fn has_stack(&self) -> bool {
        self.registers.is_some() || self.stack.is_some_and(|stack| !stack.is_empty())
    }

    /// Reads these fields of a body, and no others.
    ///
    /// # Errors
    /// When the body ends inside one of them or a field before them.
    pub fn read(cursor: &mut Cursor<'a>, layout: &EventRecordLayout) -> Result<Self, ParseError> {
        skip_to_user_state(cursor, layout)?;
        Self::read_fields(cursor, layout)
    }

    /// Whether a body [has a stack](Self::has_stack). Of a body with registers no page of the stack is read.
    ///
    /// # Errors
    /// When the body ends before.
    pub fn is_in(cursor: &mut Cursor<'a>, layout: &EventRecordLayout) -> Result<bool, ParseError> {
        skip_to_user_state(cursor, layout)?;
        let has_registers = layout.has(abi::PERF_SAMPLE_REGS_USER)
            && registers(cursor, layout.num_regs.0, "user_regs")?.is_some();
        Ok(has_registers || (layout.has(abi::PERF_SAMPLE_STACK_USER) && !user_stack(cursor)?.is_empty()))
    }

    fn read_fields(cursor: &mut Cursor<'a>, layout: &EventRecordLayout) -> Result<Self, ParseError> {
        let mut user = Self::default();
        if layout.has(abi::PERF_SAMPLE_REGS_USER) {
            user.registers = registers(cursor, layout.num_regs.0, "user_regs")?;
        }
        if layout.has(abi::PERF_SAMPLE_STACK_USER) {
            user.stack = Some(user_stack(cursor)?);
        }
        Ok(user)
    }
}

/// Reads the fields before [`UserState`].
fn skip_to_user_state(cursor: &mut Cursor<'_>, layout: &EventRecordLayout) -> Result<(), ParseError> {
    let num_words = (layout.sample_type & FIRST_WORDS).count_ones();
    EventWords::read(cursor, num_words.into(), "ip")?;
    if layout.has(abi::PERF_SAMPLE_READ) {
        read_counters(cursor, layout)?;
    }
    if layout.has(abi::PERF_SAMPLE_CALLCHAIN) {
        let nr = cursor.u64("nr")?;
        EventWords::read(cursor, nr, "ips")?;
    }
    raw_data(cursor, layout)?;
    if layout.has(abi::PERF_SAMPLE_BRANCH_STACK) {
        SampleRecord::default().read_branches(cursor, layout)?;
    }
    Ok(())
}

/// Reads the data of a tracepoint or a BPF program.
fn raw_data<'a>(cursor: &mut Cursor<'a>, layout: &EventRecordLayout) -> Result<Option<&'a [u8]>, ParseError> {
    if !layout.has(abi::PERF_SAMPLE_RAW) {
        return Ok(None);
    }
    let size = cursor.u32("raw.size")?;
    cursor.bytes(u64::from(size), "raw.data").map(Some)
}

/// Reads counter values: a value with its times, or a count, the times, and that number of values.
fn read_counters<'a>(
    cursor: &mut Cursor<'a>,
    layout: &EventRecordLayout,
) -> Result<EventWords<'a>, ParseError> {
    let counters = layout.counters();
    let each = counters.num_extra_words.saturating_add(1) as u64;
    let count = if counters.group {
        let mut lookahead = *cursor;
        let values = lookahead.u64("read.nr")?;
        values.saturating_mul(each).saturating_add(counters.num_times as u64).saturating_add(1)
    } else {
        each.saturating_add(counters.num_times as u64)
    };
    EventWords::read(cursor, count, "read")
}

/// Reads a set of registers; `None` where it is empty.
fn registers<'a>(
    cursor: &mut Cursor<'a>,
    count: u32,
    field: &'static str,
) -> Result<Option<SampleRegisters<'a>>, ParseError> {
    match cursor.u64(field)? {
        0 => Ok(None),
        abi => Ok(Some(SampleRegisters { abi, values: EventWords::read(cursor, u64::from(count), field)? })),
    }
}

/// Reads the copy of the user stack.
fn user_stack<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], ParseError> {
    let size = cursor.u64("stack_user.size")?;
    let bytes = cursor.bytes(size, "stack_user.data")?;
    if size == 0 {
        return Ok(bytes);
    }
    let offset = cursor.offset();
    let copied = cursor.u64("stack_user.dyn_size")?;
    let stack = usize::try_from(copied).ok().and_then(|copied| bytes.get(..copied));
    stack.ok_or_else(|| {
        let expected = "no more than stack_user.size";
        ParseError::new(ErrorKind::Invalid { value: copied, expected }, offset, "stack_user.dyn_size")
    })
}
