//! The fixed fields of XRay's file formats, declared once as tables. A metadata record takes 16 bytes, independent of the
//! size of its fields.

use perfuse_wire::layout;

use super::consts::MetadataKind;

layout! {
    /// Begins a log of FDR or Basic mode: 32 bytes.
    FileHeader = "XRayFileHeader", section "Header Section" {
        /// FDR 1 to 5, Basic 1 to 3.
        version: u16,
        /// 0 Basic mode, 1 FDR mode.
        r#type: u16,
        /// Bit field: constant_tsc, nonstop_tsc. Little-endian writers use bits 0 and 1, big-endian ones bits 31 and 30; in Basic logs the rest is garbage.
        flags: u32,
        /// Frequency of the counter in ticks per second; 0 unknown, 1000000000 emulated. On Linux often the
        /// processor's highest frequency instead of the counter's.
        cycle_frequency: u64,
        /// FDR: size in bytes of one buffer as it was in memory. In version 1 also the distance of buffers in the file. Basic: garbage.
        buffer_size: u64,
        /// Not used; garbage in FDR versions 1 and 2 and in Basic logs.
        reserved: u64,
    }

    /// A function entry or exit: 8 bytes.
    FunctionRecord = "Function Record", section "Function Records" {
        /// Bit field, least significant bit first on little-endian writers, most significant first on big-endian ones: 1 bit 0, 3 bits action, 28 bits function id.
        word: u32,
        /// Ticks since the previous record with a time; from version 5 on that includes custom and typed events.
        tsc_delta: u32,
    }

    /// Starts every buffer.
    NewBuffer = "NewBuffer", section "NewBuffer Records" {
        /// Bit field: 1 bit 1, 7 bits kind 0. All metadata records start like this.
        kind: u8,
        /// Thread id of the buffer. Four bytes in all versions; the specification states two.
        tid: i32,
    }

    /// Ends a buffer of version 1; what follows in the buffer is stale memory.
    EndOfBuffer = "EndOfBuffer", section "EndOfBuffer Records" {
        /// Kind 1.
        kind: u8,
    }

    /// The thread runs on this processor from here on.
    NewCpuId = "NewCPUId", section "NewCpuId Records" {
        /// Kind 2.
        kind: u8,
        /// Processor; the runtime keeps 8 bits of it, so 256 reads as 0.
        cpu_id: u16,
        /// Counter.
        absolute_tsc: u64,
    }

    /// The absolute counter: the step was too large for a delta, or backwards.
    TscWrap = "TSCWrap", section "TSCWrap Records" {
        /// Kind 3.
        kind: u8,
        /// Counter.
        absolute_tsc: u64,
    }

    /// The time at which the buffer was started, on CLOCK_MONOTONIC.
    WallTimeMarker = "WallTimeMarker", section "WallClockTime Records" {
        /// Kind 4.
        kind: u8,
        /// Seconds.
        seconds: i64,
        /// Microseconds; LLVM's reader calls them nanoseconds.
        microseconds: i32,
    }

    /// An event with bytes of the program's choice, versions 1 to 3.
    CustomEventV1 = "CustomEventMarker (versions 1 to 3)", section "CustomEventMarker Records" {
        /// Kind 5.
        kind: u8,
        /// Number of bytes that follow the 16 of this record.
        event_size: i32,
        /// Counter; deltas continue from the previous function record.
        absolute_tsc: u64,
    } then {
        /// `event_size` bytes; LLVM 5 to 7 overwrite them with the next record.
        event: Bytes,
    }

    /// An event with bytes of the program's choice, version 4.
    CustomEventV4 = "CustomEventMarker (version 4)", section "CustomEventMarker Records" {
        /// Kind 5.
        kind: u8,
        /// Number of bytes that follow the 16 of this record.
        event_size: i32,
        /// Counter; deltas continue from the previous function record.
        absolute_tsc: u64,
        /// Processor.
        cpu_id: u16,
    } then {
        /// `event_size` bytes.
        event: Bytes,
    }

    /// An event with bytes of the program's choice, version 5.
    CustomEventV5 = "CustomEventMarker (version 5)", section "CustomEventMarker Records" {
        /// Kind 5.
        kind: u8,
        /// Number of bytes that follow the 16 of this record.
        event_size: i32,
        /// Ticks since the previous record with a time.
        tsc_delta: i32,
    } then {
        /// `event_size` bytes.
        event: Bytes,
    }

    /// The argument of the function entered before this record.
    CallArgument = "CallArgument", section "CallArgument Records" {
        /// Kind 6.
        kind: u8,
        /// The first argument as a word.
        argument: u64,
    }

    /// Precedes a buffer, from version 2 on.
    BufferExtents = "BufferExtents", section "version 2" {
        /// Kind 7.
        kind: u8,
        /// Size of the buffer in bytes, without this record.
        size: u64,
    }

    /// An event with bytes of the program's choice and an event type, versions 3 and 4.
    TypedEventV3 = "TypedEventMarker (versions 3 and 4)", section "version 3" {
        /// Kind 8.
        kind: u8,
        /// Number of bytes that follow the 16 of this record.
        event_size: i32,
        /// Counter; deltas continue from the previous function record.
        absolute_tsc: u64,
        /// Number of the event type.
        event_type: u16,
    } then {
        /// `event_size` bytes.
        event: Bytes,
    }

    /// An event with bytes of the program's choice and an event type, version 5.
    TypedEventV5 = "TypedEventMarker (version 5)", section "version 5" {
        /// Kind 8.
        kind: u8,
        /// Number of bytes that follow the 16 of this record. LLVM 8 to 22 leave the 16 out of BufferExtents, which
        /// cuts them off the end of the buffer.
        event_size: i32,
        /// Ticks since the previous record with a time.
        tsc_delta: i32,
        /// Number of the event type.
        event_type: u16,
    } then {
        /// `event_size` bytes.
        event: Bytes,
    }

    /// The process; follows WallTimeMarker from version 3 on.
    Pid = "Pid", section "version 3" {
        /// Kind 9.
        kind: u8,
        /// Process id.
        pid: i32,
    }

    /// A record of a Basic mode log: 32 bytes.
    BasicRecord = "XRayRecord (Basic mode)", section "Basic mode" {
        /// 0.
        record_type: u16,
        /// Processor, 8 bits of it.
        cpu: u8,
        /// 0 entry, 1 exit, 2 tail exit, 3 entry with an argument; 2 and 3 from version 2 on.
        kind: u8,
        /// Function id; negative for objects from 128 on.
        function_id: i32,
        /// Counter.
        tsc: u64,
        /// Thread.
        tid: u32,
        /// Process, from version 3 on.
        pid: u32,
        /// Not used.
        reserved: u64,
    }

    /// The argument of a function in a Basic mode log: 32 bytes.
    BasicArgument = "XRayArgPayload (Basic mode)", section "Basic mode" {
        /// 1.
        record_type: u16,
        /// Not used.
        padding: u16,
        /// Function id.
        function_id: i32,
        /// Thread.
        tid: u32,
        /// Process, from version 3 on.
        pid: u32,
        /// The argument as a word.
        argument: u64,
        /// Not used.
        reserved: u64,
    }

    /// Begins a profile (Profiling mode): 32 bytes.
    ProfileHeader = "XRayProfilingFileHeader", section "Profiling mode" {
        /// 0x7872617970726f66.
        magic: u64,
        /// 0x20180424.
        version: u64,
        /// When the profile was written: nanoseconds since 1970.
        timestamp: u64,
        /// Process id.
        pid: u64,
    }

    /// Begins the block of a thread in a profile.
    ProfileBlock = "BlockHeader", section "Profiling mode" {
        /// Size of the block in bytes, including this header.
        size: u32,
        /// Number of the block.
        number: u32,
        /// Thread.
        thread: u64,
    } then {
        /// One record per call path: function ids from the innermost outwards as i32, a 0, number of calls as u64,
        /// ticks in these calls, with those of the calls they made, as i64.
        records: Array,
    }
}

/// Size in bytes of the fields of a metadata record in a version; the rest of its 16 bytes is reserved. `None` for an
/// unknown kind.
#[must_use]
pub fn field_bytes(kind: MetadataKind, version: u16) -> Option<u64> {
    Some(match kind {
        MetadataKind::NEW_BUFFER => NewBuffer::SIZE,
        MetadataKind::END_OF_BUFFER => EndOfBuffer::SIZE,
        MetadataKind::NEW_CPU_ID => NewCpuId::SIZE,
        MetadataKind::TSC_WRAP => TscWrap::SIZE,
        MetadataKind::WALL_TIME_MARKER => WallTimeMarker::SIZE,
        MetadataKind::CUSTOM_EVENT_MARKER if version < 4 => CustomEventV1::SIZE,
        MetadataKind::CUSTOM_EVENT_MARKER if version == 4 => CustomEventV4::SIZE,
        MetadataKind::CUSTOM_EVENT_MARKER => CustomEventV5::SIZE,
        MetadataKind::CALL_ARGUMENT => CallArgument::SIZE,
        MetadataKind::BUFFER_EXTENTS => BufferExtents::SIZE,
        MetadataKind::TYPED_EVENT_MARKER if version < 5 => TypedEventV3::SIZE,
        MetadataKind::TYPED_EVENT_MARKER => TypedEventV5::SIZE,
        MetadataKind::PID => Pid::SIZE,
        _ => return None,
    })
}
