//! What processors record with samples: branches and accesses to memory.

use crate::schema::table;

table! {
    /// One row for each branch that the processor recorded with a sample (`perf record -b`, `-j`).
    branches {
        /// Sample.
        sample_id: u64,
        /// Number of the branch in its sample; 0 is the most recent one.
        position: u32,
        /// Time of the sample on the profile's clock, in nanoseconds.
        ts_ns: i64,
        /// Process of the sample.
        process_id: u32,
        /// Address of the branch.
        from_address: u64,
        /// Address of its target.
        to_address: u64,
        /// Frame of the branch, with its function and its line.
        from_frame_id: Opt<u32>,
        /// Frame of its target.
        to_frame_id: Opt<u32>,
        /// `conditional`, `unconditional`, `indirect`, `call`, `indirect_call`, `return`, `syscall`, `syscall_return`, `conditional_call`,
        /// `conditional_return`, `exception_return`, `interrupt`, `system_error`, `no_transaction`, or a fault; null where not recorded.
        kind: Opt<Str>,
        /// Whether it was predicted wrongly; null where not recorded.
        mispredicted: Opt<bool>,
        /// Whether it was in a transaction.
        in_transaction: bool,
        /// Whether it aborted a transaction.
        aborted: bool,
        /// Processor cycles since the branch before it; null where not recorded.
        cycles: Opt<u32>,
        /// `wrong_path`, `correct_path` or `correct_path_not_speculated`; null where not recorded.
        speculation: Opt<Str>,
        /// Privilege level of the target: `user`, `kernel` or `hypervisor`; null where not recorded.
        privilege: Opt<Str>,
        /// Counts of the group's events since the branch before it, in the order of the events; empty where not recorded. One number
        /// where the recording does not state how many counters it consists of.
        counters: List,
        /// Number of the processor's entry for the most recent branch of the sample; null where not recorded.
        hw_index: Opt<u64>,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}

table! {
    /// One row for each sample that states which data its instruction accessed (`perf mem record`, `perf record -d`).
    memory_accesses {
        /// Sample.
        sample_id: u64,
        /// Time of the sample on the profile's clock, in nanoseconds.
        ts_ns: i64,
        /// Process of the sample.
        process_id: u32,
        /// Address of the data; null where not recorded.
        address: Opt<u64>,
        /// Frame whose mapping contains the data.
        data_frame_id: Opt<u32>,
        /// Physical address; null where not recorded.
        physical_address: Opt<u64>,
        /// `load`, `store`, `prefetch` or `execute`; null where not recorded.
        operation: Opt<Str>,
        /// Level of the memory hierarchy: `L0` to `L4`, `L2 MHB`, `MSC`, `LFB` (line fill buffer), `RAM`, `PMEM`, `CXL`, `IO`, `uncached` or `any cache`;
        /// null where not recorded.
        level: Opt<Str>,
        /// Whether the access hit that level; null where not recorded.
        level_hit: Opt<bool>,
        /// Whether that level is of another processor or node.
        remote: bool,
        /// How far away it is: `core`, `node`, `socket` or `board`; null where not recorded.
        hops: Opt<Str>,
        /// Answer of other caches: `none`, `hit`, `miss`, `hit_modified`, `forwarded` or `peer`; null where not recorded.
        snoop: Opt<Str>,
        /// Whether the instruction was locked; null where not recorded.
        locked: Opt<bool>,
        /// Where the address was translated: `L1`, `L2`, `walker` or `OS`; null where not recorded.
        tlb: Opt<Str>,
        /// Whether the access hit the TLB; null where not recorded.
        tlb_hit: Opt<bool>,
        /// Why the access was blocked: `data` or `address`; null where it was not, or this was not recorded.
        blocked: Opt<Str>,
        /// Region of the memory; null where not recorded.
        region: Opt<Str>,
        /// Latency of the access in processor cycles: the weight of the sample; null where not recorded.
        latency_cycles: Opt<u64>,
        /// Second part of the weight: on x86 the latency of the instruction, in cycles; null where not recorded.
        instruction_latency_cycles: Opt<u64>,
        /// Third part of the weight: on x86 the cycles until the instruction retired; null where not recorded.
        retire_latency_cycles: Opt<u64>,
        /// Size of the data's page in bytes; null where not recorded.
        page_size_bytes: Opt<u64>,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}
