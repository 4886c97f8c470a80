//! Records of perf, as in its `event.h` and `perf.data-file-format.txt`, and sections with the same layout.

use perfuse_wire::layout;

layout! {
    /// Tracepoint formats, which follow the record.
    TracingData = "PERF_RECORD_HEADER_TRACING_DATA", section "perf.data-file-format: PERF_RECORD_HEADER_TRACING_DATA" {
        /// Size of the following data in bytes.
        size: u32,
    }

    /// Name of an event. The entries of the table of event types in a header are such bodies too.
    EventType = "PERF_RECORD_HEADER_EVENT_TYPE", section "event.h: perf_record_header_event_type" {
        /// `config` of the event's attribute.
        event_id: u64,
    } then {
        /// Name.
        name: CString,
    }

    /// Build id of a file. The entries of the HEADER_BUILD_ID section are such records too.
    BuildIdEvent = "PERF_RECORD_HEADER_BUILD_ID", section "perf.data-file-format: HEADER_BUILD_ID" {
        /// Process; -1 for all.
        pid: i32,
    } then {
        /// 20 bytes of id, its length if `misc` has `BUILD_ID_SIZE`, 3 bytes of padding.
        build_id: Bytes,
        /// File.
        filename: CString,
    }

    /// Processor and task of each event id.
    IdIndex = "PERF_RECORD_ID_INDEX", section "event.h: perf_record_id_index" {
        /// Number of entries that follow.
        nr: u64,
    } then {
        /// Id, index, processor and thread of each entry.
        entries: Array,
    }

    /// Tracer of the AUX data.
    AuxtraceInfo = "PERF_RECORD_AUXTRACE_INFO", section "perf.data-file-format: PERF_RECORD_AUXTRACE_INFO" {
        /// 1 Intel PT, 2 Intel BTS, 3 Arm CoreSight, 4 Arm SPE, 5 S390 CPUMSF, 6 HiSilicon PTT.
        type_: u32,
        /// Not used.
        reserved: u32,
    } then {
        /// Data of the tracer.
        priv_: Bytes,
    }

    /// AUX data, which follows the record.
    Auxtrace = "PERF_RECORD_AUXTRACE", section "perf.data-file-format: PERF_RECORD_AUXTRACE" {
        /// Size of the following data in bytes.
        size: u64,
        /// Offset of the data in its trace.
        offset: u64,
        /// Reference number of the tracer.
        reference: u64,
        /// Index of the trace.
        idx: u32,
        /// Thread.
        tid: u32,
        /// Processor.
        cpu: u32,
        /// Not used.
        reserved: u32,
    }

    /// AUX data that could not be decoded.
    AuxtraceError = "PERF_RECORD_AUXTRACE_ERROR", section "event.h: perf_record_auxtrace_error" {
        /// Kind.
        type_: u32,
        /// Code.
        code: u32,
        /// Processor.
        cpu: u32,
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
        /// Version of this record.
        fmt: u32,
        /// Address.
        ip: u64,
        /// Time.
        time: u64,
    } then {
        /// Description of the error.
        msg: CString,
    }

    /// Recorded threads.
    ThreadMap = "PERF_RECORD_THREAD_MAP", section "event.h: perf_record_thread_map" {
        /// Number of entries that follow.
        nr: u64,
    } then {
        /// Thread and name of each entry.
        entries: Array,
    }

    /// Recorded processors.
    CpuMap = "PERF_RECORD_CPU_MAP", section "event.h: perf_record_cpu_map" {
        /// 0 a list, 1 a mask, 2 a range.
        type_: u16,
    } then {
        /// List, mask or range.
        data: Bytes,
    }

    /// Configuration of `perf stat record`.
    StatConfig = "PERF_RECORD_STAT_CONFIG", section "event.h: perf_record_stat_config" {
        /// Number of entries that follow.
        nr: u64,
    } then {
        /// Tag and value of each entry.
        data: Array,
    }

    /// A counter value.
    Stat = "PERF_RECORD_STAT", section "event.h: perf_record_stat" {
        /// Event.
        id: u64,
        /// Processor.
        cpu: u32,
        /// Thread.
        thread: u32,
        /// Value.
        val: u64,
        /// Time in which the counter was enabled, in nanoseconds.
        ena: u64,
        /// Time in which the counter was running, in nanoseconds.
        run: u64,
    }

    /// End of a round of counter values.
    StatRound = "PERF_RECORD_STAT_ROUND", section "event.h: perf_record_stat_round" {
        /// 0 interval, 1 final.
        type_: u64,
        /// Time.
        time: u64,
    }

    /// Unit, scale, name or processors of an event.
    EventUpdate = "PERF_RECORD_EVENT_UPDATE", section "event.h: perf_record_event_update" {
        /// 0 unit, 1 scale, 2 name, 3 processors.
        type_: u64,
        /// Event.
        id: u64,
    } then {
        /// Unit, scale, name or processors.
        data: Bytes,
    }

    /// Conversion of processor time stamps: nanoseconds are `time_zero + ((ticks * time_mult) >> time_shift)`.
    TimeConv = "PERF_RECORD_TIME_CONV", section "event.h: perf_record_time_conv" {
        /// Shift.
        time_shift: u64,
        /// Factor.
        time_mult: u64,
        /// Nanoseconds at tick 0.
        time_zero: u64,
    }

    /// A feature section of a pipe-mode stream.
    HeaderFeature = "PERF_RECORD_HEADER_FEATURE", section "perf.data-file-format: PERF_RECORD_HEADER_FEATURE" {
        /// Feature: its bit in the header of a file.
        feat_id: u64,
    } then {
        /// Content of the section.
        data: Bytes,
    }

    /// Records compressed with zstd, padded to 8 bytes.
    Compressed2 = "PERF_RECORD_COMPRESSED2", section "perf.data-file-format: PERF_RECORD_COMPRESSED2" {
        /// Size of the data, without its padding.
        data_size: u64,
    } then {
        /// A part of the stream.
        data: Bytes,
    }

    /// Simultaneous times of the recording's clock and of the wall clock.
    ClockData = "HEADER_CLOCK_DATA", section "perf.data-file-format: HEADER_CLOCK_DATA" {
        /// Version of this section: 1.
        version: u32,
        /// Clock of the time stamps.
        clockid: i32,
        /// Wall clock time, in nanoseconds since 1970.
        wall_clock_ns: u64,
        /// Time on the recording's clock, in nanoseconds.
        clockid_time_ns: u64,
    }

    /// simpleperf until 2016: a file that samples are in.
    SimpleperfDso = "SIMPLE_PERF_RECORD_DSO", section "simpleperf: record.h, DsoRecord" {
        /// 0 is the kernel, 1 a module of it, 2 an ELF file.
        dso_type: u64,
        /// Number of the file in records SYMBOL.
        dso_id: u64,
        /// Address of its first executable byte, at which its mapping begins.
        min_vaddr: u64,
    } then {
        /// Path of the file.
        dso_name: CString,
    }

    /// simpleperf until 2016: a function that samples are in.
    SimpleperfSymbol = "SIMPLE_PERF_RECORD_SYMBOL", section "simpleperf: record.h, SymbolRecord" {
        /// First address, in the terms of its file; of the kernel, in memory.
        addr: u64,
        /// Size in bytes.
        len: u64,
        /// Number of its file.
        dso_id: u64,
    } then {
        /// Name in the symbol table.
        name: CString,
    }
}
