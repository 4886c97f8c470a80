//! Numbers of the fields that are written, by message.

/// `Trace`
pub mod trace {
    pub const PACKET: u32 = 1;
}

/// `TracePacket`
pub mod trace_packet {
    pub const CLOCK_SNAPSHOT: u32 = 6;
    pub const TIMESTAMP: u32 = 8;
    pub const TRUSTED_PACKET_SEQUENCE_ID: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const INTERNED_DATA: u32 = 12;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const PROFILE_PACKET: u32 = 37;
    pub const HEAP_GRAPH: u32 = 56;
    pub const TRACE_PACKET_DEFAULTS: u32 = 59;
    pub const TRACK_DESCRIPTOR: u32 = 60;
    pub const PERF_SAMPLE: u32 = 66;
    pub const STACK_SAMPLE: u32 = 135;

    pub const SEQ_INCREMENTAL_STATE_CLEARED: u64 = 1;
    pub const SEQ_NEEDS_INCREMENTAL_STATE: u64 = 2;
}

/// `TracePacketDefaults`
pub mod trace_packet_defaults {
    pub const PERF_SAMPLE_DEFAULTS: u32 = 12;
    pub const TIMESTAMP_CLOCK_ID: u32 = 58;
    pub const STACK_SAMPLE_DEFAULTS: u32 = 100;
}

/// `ClockSnapshot`
pub mod clock_snapshot {
    pub const CLOCKS: u32 = 1;
    pub const PRIMARY_TRACE_CLOCK: u32 = 2;
    /// `ClockSnapshot.Clock.clock_id`
    pub const CLOCK_ID: u32 = 1;
    /// `ClockSnapshot.Clock.timestamp`
    pub const TIMESTAMP: u32 = 2;
}

/// `TrackDescriptor`
pub mod track_descriptor {
    pub const UUID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const PROCESS: u32 = 3;
    pub const THREAD: u32 = 4;
    pub const PARENT_UUID: u32 = 5;
    pub const COUNTER: u32 = 8;
}

/// `ProcessDescriptor`
pub mod process_descriptor {
    pub const PID: u32 = 1;
    pub const PROCESS_NAME: u32 = 6;
}

/// `ThreadDescriptor`
pub mod thread_descriptor {
    pub const PID: u32 = 1;
    pub const TID: u32 = 2;
    pub const THREAD_NAME: u32 = 5;
}

/// `CounterDescriptor`
pub mod counter_descriptor {
    pub const UNIT: u32 = 3;
    pub const UNIT_NAME: u32 = 6;

    pub const UNIT_COUNT: u64 = 2;
    pub const UNIT_SIZE_BYTES: u64 = 3;
}

/// `TrackEvent`
pub mod track_event {
    pub const CATEGORY_IIDS: u32 = 3;
    pub const DEBUG_ANNOTATIONS: u32 = 4;
    pub const TYPE: u32 = 9;
    pub const NAME_IID: u32 = 10;
    pub const TRACK_UUID: u32 = 11;
    pub const NAME: u32 = 23;
    pub const COUNTER_VALUE: u32 = 30;
    pub const DOUBLE_COUNTER_VALUE: u32 = 44;

    pub const TYPE_SLICE_BEGIN: u64 = 1;
    pub const TYPE_SLICE_END: u64 = 2;
    pub const TYPE_INSTANT: u64 = 3;
    pub const TYPE_COUNTER: u64 = 4;
}

/// `DebugAnnotation`
pub mod debug_annotation {
    pub const NAME_IID: u32 = 1;
    pub const UINT_VALUE: u32 = 3;
    pub const STRING_VALUE: u32 = 6;
    /// `legacy_json_value`
    pub const JSON_VALUE: u32 = 9;
    pub const ARRAY_VALUES: u32 = 12;
}

/// `InternedData`
pub mod interned_data {
    pub const EVENT_CATEGORIES: u32 = 1;
    pub const EVENT_NAMES: u32 = 2;
    pub const DEBUG_ANNOTATION_NAMES: u32 = 3;
    pub const FUNCTION_NAMES: u32 = 5;
    pub const FRAMES: u32 = 6;
    pub const CALLSTACKS: u32 = 7;
    pub const BUILD_IDS: u32 = 16;
    pub const MAPPING_PATHS: u32 = 17;
    pub const SOURCE_PATHS: u32 = 18;
    pub const MAPPINGS: u32 = 19;
    /// `iid` of categories, event names and annotation names
    pub const IID: u32 = 1;
    /// `name` of those
    pub const NAME: u32 = 2;
}

/// `PerfSampleDefaults`, and of `PerfEvents.Timebase` in it
pub mod perf_sample_defaults {
    pub const TIMEBASE: u32 = 1;
    /// `PerfEvents.Timebase.counter`
    pub const COUNTER: u32 = 4;
    /// `PerfEvents.Timebase.name`
    pub const NAME: u32 = 10;

    pub const SW_CPU_CLOCK: u64 = 1;
}

/// `PerfSample`
pub mod perf_sample {
    pub const CPU: u32 = 1;
    pub const PID: u32 = 2;
    pub const TID: u32 = 3;
    pub const CALLSTACK_IID: u32 = 4;
    pub const CPU_MODE: u32 = 5;
    pub const TIMEBASE_COUNT: u32 = 6;

    pub const MODE_UNKNOWN: u64 = 0;
    pub const MODE_KERNEL: u64 = 1;
    pub const MODE_USER: u64 = 2;
    pub const MODE_HYPERVISOR: u64 = 3;
}

/// `ProfilePacket`
pub mod profile_packet {
    pub const PROCESS_DUMPS: u32 = 5;
    pub const CONTINUED: u32 = 6;
    pub const INDEX: u32 = 7;
}

/// `ProfilePacket.ProcessHeapSamples`
pub mod process_heap_samples {
    pub const PID: u32 = 1;
    pub const SAMPLES: u32 = 2;
    pub const TIMESTAMP: u32 = 9;
    pub const HEAP_NAME: u32 = 11;
    pub const SAMPLING_INTERVAL_BYTES: u32 = 12;
}

/// `ProfilePacket.HeapSample`
pub mod heap_sample {
    pub const CALLSTACK_ID: u32 = 1;
    pub const SELF_ALLOCATED: u32 = 2;
    pub const ALLOC_COUNT: u32 = 5;
}

/// `InternedString`
pub mod interned_string {
    pub const IID: u32 = 1;
    pub const STR: u32 = 2;
}

/// `Callstack`
pub mod callstack {
    pub const IID: u32 = 1;
    pub const FRAME_IDS: u32 = 2;
}

/// `Mapping`
pub mod mapping {
    pub const IID: u32 = 1;
    pub const BUILD_ID: u32 = 2;
    pub const PATH_STRING_IDS: u32 = 7;
}

/// `Frame`
pub mod frame {
    pub const IID: u32 = 1;
    pub const FUNCTION_NAME_ID: u32 = 2;
    pub const MAPPING_ID: u32 = 3;
    pub const REL_PC: u32 = 4;
    pub const SOURCE_PATH_IID: u32 = 5;
    pub const LINE_NUMBER: u32 = 6;
    pub const KIND: u32 = 7;

    pub const KIND_UNKNOWN: u64 = 0;
    pub const KIND_NATIVE: u64 = 1;
    pub const KIND_KERNEL: u64 = 2;
    pub const KIND_JIT: u64 = 4;
}

/// `HeapGraph`
pub mod heap_graph {
    pub const PID: u32 = 1;
    pub const OBJECTS: u32 = 2;
    pub const FIELD_NAMES: u32 = 4;
    pub const CONTINUED: u32 = 5;
    pub const INDEX: u32 = 6;
    pub const ROOTS: u32 = 7;
    pub const TYPES: u32 = 9;
}

/// `HeapGraphType`
pub mod heap_graph_type {
    pub const ID: u32 = 1;
    pub const CLASS_NAME: u32 = 3;
}

/// `HeapGraphObject`
pub mod heap_graph_object {
    pub const ID: u32 = 1;
    pub const TYPE_ID: u32 = 2;
    pub const SELF_SIZE: u32 = 3;
    pub const REFERENCE_FIELD_ID: u32 = 4;
    pub const REFERENCE_OBJECT_ID: u32 = 5;
    pub const ID_DELTA: u32 = 7;
}

/// `HeapGraphRoot`
pub mod heap_graph_root {
    pub const OBJECT_IDS: u32 = 1;
    pub const ROOT_TYPE: u32 = 2;

    pub const ROOT_UNKNOWN: u64 = 0;
    pub const ROOT_JNI_GLOBAL: u64 = 1;
    pub const ROOT_JAVA_FRAME: u64 = 3;
    pub const ROOT_STICKY_CLASS: u64 = 5;
    pub const ROOT_THREAD_OBJECT: u64 = 8;
    pub const ROOT_FINALIZING: u64 = 10;
    pub const ROOT_DEBUGGER: u64 = 11;
    pub const ROOT_VM_INTERNAL: u64 = 13;
}

/// `StackSample`
pub mod stack_sample {
    pub const TASK_CONTEXT: u32 = 1;
    pub const EXECUTION_CONTEXT: u32 = 3;
    pub const CALLSTACK_IID: u32 = 6;
    pub const PRIMARY_WEIGHT: u32 = 11;

    /// `StackSample.TaskContext.pid`
    pub const PID: u32 = 2;
    /// `StackSample.TaskContext.tid`
    pub const TID: u32 = 3;
    /// `StackSample.ExecutionContext.cpu`
    pub const CPU: u32 = 2;
    /// `StackSample.ExecutionContext.mode`
    pub const MODE: u32 = 3;
}

/// `StackSampleDefaults`
pub mod stack_sample_defaults {
    pub const SOURCE: u32 = 1;
    pub const PRIMARY_DESCRIPTOR: u32 = 2;

    /// `StackSample.CounterDescriptor.name`
    pub const NAME: u32 = 2;
    /// `StackSample.CounterDescriptor.unit`
    pub const UNIT: u32 = 3;

    pub const UNIT_NANOSECONDS: u64 = 1;
    pub const UNIT_CPU_CYCLES: u64 = 2;
    pub const UNIT_INSTRUCTIONS: u64 = 3;
    pub const UNIT_BYTES: u64 = 4;
    pub const UNIT_COUNT: u64 = 9;
}
