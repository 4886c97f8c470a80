//! The fields of every event with the data versions of each: the tables of the documentation. A test compares them
//! with the decoder, event by event and version by version.

use std::ops::RangeInclusive;

use perfuse_wire::{Field, FieldType, Layout};

/// An event and the data versions of its fields.
#[derive(Debug)]
pub struct EventLayout {
    /// The documented layout.
    pub layout: Layout,
    /// The event bytes it describes.
    pub bytes: &'static [u8],
    /// The `mtype` of METADATA events; 0 for other events.
    pub mtype: u64,
    /// Data versions of each field after the event byte, in the order of the layout.
    pub versions: &'static [RangeInclusive<u8>],
}

/// The encoding of a field, as the documentation names it.
macro_rules! encoded {
    (byte) => {
        FieldType::U8
    };
    (text) => {
        FieldType::CString
    };
    (list) => {
        FieldType::Array
    };
    ($kind:ident) => {
        FieldType::Encoded(stringify!($kind))
    };
}

macro_rules! events {
    ($(
        $spec:literal [$($byte:literal)+] $(mtype $mtype:literal)? $doc:literal {
            $($field:ident: $kind:ident $first:literal to $last:literal $fdoc:literal;)*
        }
    )+) => {
        /// Every event.
        pub static EVENTS: &[EventLayout] = &[$(EventLayout {
            layout: events!(@layout $spec, $doc, $($byte)+, $($field $kind $first $last $fdoc)*),
            bytes: &[$($byte),+],
            mtype: 0 $(+ $mtype)?,
            versions: &[$($first..=$last),*],
        }),+];

        /// The layouts of the file header, the buffer header and every event.
        pub static LAYOUTS: &[&Layout] = &[
            &$crate::layout::FileHeader::LAYOUT,
            &$crate::layout::BufferHeader::LAYOUT,
            $(&events!(@layout $spec, $doc, $($byte)+, $($field $kind $first $last $fdoc)*)),+
        ];
    };
    (@layout $spec:literal, $doc:literal, $($byte:literal)+, $($field:ident $kind:ident $first:literal $last:literal $fdoc:literal)*) => {
        Layout {
            name: $spec,
            section: "event format",
            doc: $doc,
            fixed_bytes: 1,
            fields: &[Field { name: "event", ty: FieldType::U8, doc: concat!($(stringify!($byte), " "),+) }, $(Field {
                name: stringify!($field),
                ty: encoded!($kind),
                doc: concat!("(", $first, "-", $last, ") ", $fdoc),
            }),*],
        }
    };
}

events! {
    "ALLOC" [0x00] "The allocation of an object." {
        time: time 1 to 17 "When.";
        class: pointer 1 to 14 "Its class.";
        vtable: pointer 15 to 17 "Its vtable.";
        object: object 1 to 17 "Its address.";
        size: value 1 to 17 "Its size in bytes: exact in profiler 0.1, rounded up to a multiple of 8 since.";
    }
    "ALLOC_BT" [0x10] "An allocation with a backtrace." {
        time: time 1 to 17 "When.";
        class: pointer 1 to 14 "Its class.";
        vtable: pointer 15 to 17 "Its vtable.";
        object: object 1 to 17 "Its address.";
        size: value 1 to 17 "Its size in bytes.";
        flags: value 1 to 12 "0.";
        frames: list 1 to 17 "Number of frames, then the frames, outermost first:";
        method: pointer 1 to 12 "method of a frame.";
        method: method 13 to 17 "method of a frame.";
    }
    "GC_EVENT" [0x11] "A phase of a garbage collection." {
        time: time 1 to 17 "When.";
        event: value 1 to 12 "0 start, 1 to 4 mark and reclaim, 5 end, 6 before the world stops, 7 stopped, 8 before it starts, 9 started.";
        generation: value 1 to 12 "0 nursery, 1 major.";
        event: byte 13 to 17 "As before, without 1 to 4 since 14; 10 before the stop with the GC lock held, 11 started and the lock released.";
        generation: byte 13 to 17 "0 nursery, 1 major.";
    }
    "GC_RESIZE" [0x21] "The size of the heap has changed." {
        time: time 1 to 17 "When.";
        size: value 1 to 17 "New size in bytes.";
    }
    "GC_MOVE" [0x31] "The moves of objects." {
        time: time 1 to 17 "When.";
        objects: list 1 to 17 "Number of addresses, then the addresses, old and new in turn:";
        object: object 1 to 17 "an address.";
    }
    "GC_HANDLE_CREATED" [0x41] "The creation of a GC handle; not in profiler 0.1." {
        time: time 1 to 17 "When.";
        type: value 1 to 17 "0 weak, 1 weak with resurrection tracked, 2 normal, 3 pinned.";
        handle: value 1 to 17 "Its number.";
        object: object 1 to 17 "The object it refers to.";
    }
    "GC_HANDLE_DESTROYED" [0x51] "The destruction of a GC handle; not in profiler 0.1." {
        time: time 1 to 17 "When.";
        type: value 1 to 17 "As in GC_HANDLE_CREATED.";
        handle: value 1 to 17 "Its number.";
    }
    "GC_HANDLE_CREATED_BT" [0x61] "The creation of a GC handle, with a backtrace." {
        time: time 11 to 17 "When.";
        type: value 11 to 17 "Its type.";
        handle: value 11 to 17 "Its number.";
        object: object 11 to 17 "The object it refers to.";
        flags: value 11 to 12 "0.";
        frames: list 11 to 17 "As in ALLOC_BT:";
        method: pointer 11 to 12 "method of a frame.";
        method: method 13 to 17 "method of a frame.";
    }
    "GC_HANDLE_DESTROYED_BT" [0x71] "The destruction of a GC handle, with a backtrace." {
        time: time 11 to 17 "When.";
        type: value 11 to 17 "Its type.";
        handle: value 11 to 17 "Its number.";
        flags: value 11 to 12 "0.";
        frames: list 11 to 17 "As in ALLOC_BT:";
        method: pointer 11 to 12 "method of a frame.";
        method: method 13 to 17 "method of a frame.";
    }
    "GC_FINALIZE_START, GC_FINALIZE_END" [0x81 0x91] "The start and end of a round of the finalizer thread." {
        time: time 13 to 17 "When.";
    }
    "GC_FINALIZE_OBJECT_START, GC_FINALIZE_OBJECT_END" [0xa1 0xb1] "The start and end of a finalizer." {
        time: time 13 to 17 "When.";
        object: object 13 to 17 "The object that is finalized.";
    }
    "METADATA: class" [0x22 0x42 0xa2] mtype 1 "The load of a class; METADATA_LOAD_ERR (1-10) is one that failed. Unloading is documented for 11 to 13 and never written." {
        time: time 1 to 17 "When.";
        mtype: byte 1 to 17 "1.";
        pointer: pointer 1 to 17 "The class.";
        image: pointer 1 to 17 "Its image.";
        flags: value 1 to 12 "0.";
        name: text 1 to 17 "Its full name.";
    }
    "METADATA: image loaded" [0x22 0xa2] mtype 2 "The load of an image; METADATA_LOAD_ERR (1-10) is one that failed." {
        time: time 1 to 17 "When.";
        mtype: byte 1 to 17 "2.";
        pointer: pointer 1 to 17 "The image.";
        flags: value 1 to 12 "0.";
        name: text 1 to 17 "Its file.";
        mvid: text 16 to 17 "Its module version id; empty for images created at run time. Not in profiler 2.";
    }
    "METADATA: image unloaded" [0x42] mtype 2 "The unload of an image. There is no mvid, contrary to the header file." {
        time: time 11 to 17 "When.";
        mtype: byte 11 to 17 "2.";
        pointer: pointer 11 to 17 "The image.";
        flags: value 11 to 12 "0.";
        name: text 11 to 17 "Its file.";
    }
    "METADATA: assembly" [0x22 0x42 0xa2] mtype 3 "The load or unload of an assembly. Until 10 it is specified without a name and never written; flags and a name are read where they follow." {
        time: time 1 to 17 "When.";
        mtype: byte 1 to 17 "3.";
        pointer: pointer 1 to 17 "The assembly.";
        image: pointer 14 to 17 "Its image.";
        flags: value 11 to 12 "0.";
        name: text 11 to 17 "Its full name.";
    }
    "METADATA: domain" [0x22 0x42 0xa2] mtype 4 "The load or unload of an application domain; until 10 specified and never written." {
        time: time 1 to 17 "When.";
        mtype: byte 1 to 17 "4.";
        pointer: pointer 1 to 17 "Its id.";
        flags: value 11 to 12 "0.";
    }
    "METADATA: domain named" [0x02] mtype 4 "The name of an application domain." {
        time: time 11 to 17 "When.";
        mtype: byte 11 to 17 "4.";
        pointer: pointer 11 to 17 "Its id.";
        flags: value 11 to 12 "0.";
        name: text 11 to 17 "Its name.";
    }
    "METADATA: thread" [0x22 0x42] mtype 5 "The start or end of a thread." {
        time: time 11 to 17 "When.";
        mtype: byte 11 to 17 "5.";
        pointer: pointer 11 to 17 "Its id.";
        flags: value 11 to 12 "0.";
    }
    "METADATA: thread named" [0x02] mtype 5 "The name of a thread; not in profiler 0.1." {
        time: time 1 to 17 "When.";
        mtype: byte 1 to 17 "5.";
        pointer: pointer 1 to 17 "Its id.";
        flags: value 1 to 12 "0.";
        name: text 1 to 17 "Its name.";
    }
    "METADATA: context" [0x22 0x42] mtype 6 "The load or unload of a remoting context." {
        time: time 11 to 17 "When.";
        mtype: byte 11 to 17 "6.";
        pointer: pointer 11 to 17 "Its id.";
        flags: value 11 to 12 "0.";
        domain: pointer 11 to 17 "Its domain.";
    }
    "METADATA: vtable" [0x22] mtype 7 "The load of a vtable." {
        time: time 15 to 17 "When.";
        mtype: byte 15 to 17 "7.";
        pointer: pointer 15 to 17 "The vtable.";
        domain: pointer 15 to 17 "Its domain; 0 for the vtable of a proxy.";
        class: pointer 15 to 17 "Its class.";
    }
    "METHOD_LEAVE, METHOD_ENTER, METHOD_EXC_LEAVE" [0x13 0x23 0x33] "A method is left, entered, or left by an exception." {
        time: time 1 to 17 "When.";
        method: method 1 to 17 "The method.";
    }
    "METHOD_JIT" [0x43] "The compilation of a method." {
        time: time 1 to 17 "When.";
        method: method 1 to 17 "The method.";
        code: pointer 1 to 17 "Address of its machine code; 0 or all ones if it has none of its own.";
        size: value 1 to 17 "Size of the code in bytes; 0 or all ones if it has none.";
        name: text 1 to 17 "Its full name.";
    }
    "THROW" [0x04] "The throw of an exception." {
        time: time 1 to 17 "When.";
        object: object 1 to 17 "The exception object.";
    }
    "THROW_BT" [0x84] "The throw of an exception, with a backtrace." {
        time: time 1 to 17 "When.";
        object: object 1 to 17 "The exception object.";
        flags: value 1 to 12 "0.";
        frames: list 1 to 17 "As in ALLOC_BT:";
        method: pointer 1 to 12 "method of a frame.";
        method: method 13 to 17 "method of a frame.";
    }
    "CLAUSE" [0x14] "The run of an exception clause." {
        time: time 1 to 17 "When.";
        type: value 1 to 12 "0 catch, 1 filter, 2 finally, 4 fault.";
        type: byte 13 to 17 "0 catch, 1 filter, 2 finally, 4 fault.";
        index: value 1 to 17 "Index of the clause in the method.";
        method: method 1 to 17 "The method.";
        object: object 14 to 17 "The exception object.";
    }
    "MONITOR_ev1, MONITOR_ev2, MONITOR_ev3" [0x15 0x25 0x35] "A thread waits for a lock, has acquired it, or has given up." {
        time: time 1 to 13 "When.";
        object: object 1 to 13 "The locked object.";
    }
    "MONITOR_ev1_BT" [0x95] "A thread waits for a lock, with a backtrace." {
        time: time 1 to 13 "When.";
        object: object 1 to 13 "The locked object.";
        flags: value 1 to 12 "0.";
        frames: list 1 to 13 "As in ALLOC_BT:";
        method: pointer 1 to 12 "method of a frame.";
        method: method 13 to 13 "method of a frame.";
    }
    "MONITOR" [0x05] "A lock event." {
        time: time 14 to 17 "When.";
        event: byte 14 to 17 "1 the thread waits for the lock, 2 it has acquired it, 3 it has given up.";
        object: object 14 to 17 "The locked object.";
    }
    "MONITOR_BT" [0x85] "A lock event with a backtrace." {
        time: time 14 to 17 "When.";
        event: byte 14 to 17 "As in MONITOR.";
        object: object 14 to 17 "The locked object.";
        frames: list 14 to 17 "As in ALLOC_BT:";
        method: method 14 to 17 "method of a frame.";
    }
    "HEAP_START, HEAP_END" [0x06 0x16] "The start and end of a heapshot." {
        time: time 1 to 17 "When.";
    }
    "HEAP_OBJECT" [0x26] "A live object." {
        time: time 13 to 17 "When.";
        object: object 1 to 17 "Its address.";
        class: pointer 1 to 14 "Its class.";
        vtable: pointer 15 to 17 "Its vtable.";
        size: value 1 to 17 "Its size in bytes; 0 if the record continues the references of the previous object.";
        generation: byte 16 to 17 "0 nursery, 1 major. Not in profiler 2.";
        references: list 1 to 17 "Number of references, then the references:";
        offset: value 2 to 17 "offset of the reference in the object, as the difference to the previous reference;";
        object: object 1 to 17 "the object it refers to.";
    }
    "HEAP_ROOT" [0x36] "Roots of live objects." {
        time: time 13 to 17 "When.";
        num_roots: value 3 to 14 "Number of roots.";
        collections: value 3 to 14 "Major collections so far.";
        roots: list 3 to 17 "The roots; since 15 their number precedes them:";
        slot: pointer 15 to 17 "address of the root;";
        object: object 3 to 17 "the object it refers to;";
        type: value 3 to 12 "0 stack, 1 finalizer, 2 handle, 3 other, 4 misc; 0x100 pinning, 0x200 weak, 0x400 interior;";
        type: byte 13 to 13 "as before, without the flags;";
        type: value 14 to 14 "1 stack, 2 finalizer, 4 handle, 8 other, 16 misc, and the flags; a byte before 2017-09-13;";
        extra: value 3 to 14 "additional information.";
    }
    "HEAP_ROOT_REGISTER" [0x46] "The registration of memory that contains roots." {
        time: time 15 to 17 "When.";
        start: pointer 15 to 17 "Its first address.";
        size: value 15 to 17 "Its size in bytes.";
        source: byte 15 to 17 "0 external, 1 stack, 2 finalizer queue, 3 static, 4 thread static, 5 context static, 6 GC handle, 7 JIT, 8 threading, 9 domain, 10 reflection, 11 marshal, 12 thread pool, 13 debugger, 14 handle, 15 ephemeron, 16 toggle reference.";
        key: pointer 15 to 17 "Its owner: a vtable for statics, a thread for stacks and thread statics, a domain; otherwise 0.";
        name: text 15 to 17 "Description in words.";
    }
    "HEAP_ROOT_UNREGISTER" [0x56] "The end of a registration of memory that contains roots." {
        time: time 15 to 17 "When.";
        start: pointer 15 to 17 "Its first address.";
    }
    "SAMPLE_HIT" [0x07] "A sample of a running thread." {
        time: time 13 to 17 "When.";
        type: value 4 to 12 "1 cycles, 2 instructions, 3 cache misses, 4 cache references, 5 branches, 6 branch misses.";
        timestamp: value 4 to 12 "Time in nanoseconds on the clock of the events: absolute, though documented as a difference.";
        type: byte 13 to 13 "The same type; also in 14 before 2017-07-08.";
        thread: pointer 11 to 17 "The sampled thread.";
        ips: list 4 to 17 "Number of instruction pointers, then these, innermost first:";
        ip: pointer 4 to 17 "an address.";
        frames: list 6 to 17 "Number of managed frames, then these, innermost first:";
        method: method 6 to 17 "method of a frame;";
        il_offset: signed 6 to 12 "offset in its IL, -1 if unknown;";
        native_offset: signed 6 to 12 "offset in its machine code.";
    }
    "SAMPLE_USYM" [0x17] "A native symbol." {
        time: time 13 to 17 "When.";
        address: pointer 4 to 17 "Its address.";
        size: value 4 to 17 "Its size in bytes; 0 if unknown.";
        name: text 4 to 17 "Its name.";
    }
    "SAMPLE_UBIN" [0x27] "A mapped native binary; not in profiler 3." {
        time: time 4 to 15 "When.";
        address: absolute 4 to 13 "Address of the mapping.";
        address: pointer 14 to 15 "Address of the mapping.";
        offset: value 4 to 15 "Offset in the file.";
        size: value 4 to 15 "Size in bytes.";
        name: text 4 to 15 "Its path.";
    }
    "COUNTERS_DESC" [0x37] "Descriptions of counters. In section 0x8000 (since 7) the category precedes the name as a separate text, and type, unit and variance are bytes." {
        time: time 13 to 17 "When.";
        counters: list 5 to 17 "Number of counters, then these:";
        section: value 5 to 17 "0x100 JIT, 0x200 GC, 0x400 metadata, 0x800 generics, 0x1000 security, 0x2000 runtime, 0x4000 system, 0x8000 performance counters, 0x10000 profiler, 0x20000 interpreter.";
        name: text 5 to 17 "Its name.";
        type: value 5 to 12 "0 int, 1 unsigned int, 2 word, 3 long, 4 unsigned long, 5 double, 6 string, 7 time interval in microseconds.";
        unit: value 5 to 12 "0 raw, 1 bytes, 2 time, 3 count, 4 percentage; in bits 24 to 27.";
        variance: value 5 to 12 "Bit 28 monotonic, 29 constant, 30 variable.";
        type: byte 13 to 14 "The same type.";
        unit: byte 13 to 14 "0, because a byte does not contain bits 24 to 27.";
        variance: byte 13 to 14 "0, because a byte does not contain bits 28 to 30.";
        type: value 15 to 17 "As before 13.";
        unit: value 15 to 17 "As before 13.";
        variance: value 15 to 17 "As before 13.";
        index: value 5 to 17 "Its index, starting at 1.";
    }
    "COUNTERS" [0x47] "Values of counters that have changed. Integers are differences to the previous value; of performance counters, the values themselves." {
        time: time 13 to 17 "When.";
        ms: value 5 to 12 "Time in milliseconds since the first values.";
        values: list 5 to 17 "Values, each preceded by the index of its counter; index 0 ends the list:";
        type: value 5 to 12 "as in COUNTERS_DESC;";
        type: byte 13 to 14 "as in COUNTERS_DESC;";
        type: value 15 to 17 "as in COUNTERS_DESC;";
        value: signed 5 to 17 "by type: signed for 0, 2, 3 and 7; unsigned for 1 and 4; 8 bytes for 5; for 6 a byte 0, or a byte 1 and the text.";
    }
    "JITHELPER" [0x18] "Code that the runtime generated for itself." {
        time: time 8 to 17 "When.";
        type: value 8 to 12 "0 unknown, then 1 higher than since 14.";
        type: byte 13 to 17 "Since 14: 0 method, 1 method trampoline, 2 unbox trampoline, 3 IMT trampoline, 4 generics trampoline, 5 specific trampoline, 6 helper, 7 monitor, 8 delegate invoke, 9 exception handling.";
        code: pointer 8 to 17 "Its address.";
        size: value 8 to 17 "Its size in bytes. For a specific trampoline, its name follows.";
    }
    "COVERAGE_ASSEMBLY" [0x09] "Coverage of an assembly." {
        time: time 13 to 15 "When.";
        assembly: text 10 to 15 "Its name.";
        guid: text 10 to 15 "Its module version id.";
        file: text 10 to 15 "Its file.";
        num_methods: value 10 to 15 "Number of its methods.";
        num_fully_covered: value 10 to 15 "Number of completely executed methods.";
        num_partially_covered: value 10 to 15 "Number of partly executed methods.";
    }
    "COVERAGE_METHOD" [0x19] "A method whose statements follow." {
        time: time 13 to 15 "When.";
        assembly: text 10 to 15 "Its assembly.";
        class: text 10 to 15 "Its class.";
        method: text 10 to 15 "Its name.";
        signature: text 10 to 15 "Its signature.";
        file: text 10 to 15 "Its source file.";
        token: value 10 to 15 "Its metadata token.";
        method_id: value 10 to 15 "Its id in the log.";
        num_entries: value 10 to 15 "Number of statements that follow.";
    }
    "COVERAGE_STATEMENT" [0x29] "How often a statement was executed." {
        time: time 13 to 15 "When.";
        method_id: value 10 to 15 "Id of the method.";
        il_offset: value 10 to 15 "Offset in its IL.";
        count: value 10 to 15 "Number of executions.";
        line: value 10 to 15 "Source line.";
        column: value 10 to 15 "Source column.";
    }
    "COVERAGE_CLASS" [0x39] "Coverage of a class." {
        time: time 13 to 15 "When.";
        assembly: text 10 to 15 "Its assembly.";
        class: text 10 to 15 "Its name.";
        num_methods: value 10 to 15 "Number of its methods.";
        num_fully_covered: value 10 to 15 "Number of completely executed methods.";
        num_partially_covered: value 10 to 15 "Number of partly executed methods.";
    }
    "SYNC_POINT" [0x0a] "A synchronization point: all events of earlier buffers are earlier, except METHOD_JIT and SAMPLE_HIT." {
        time: time 13 to 17 "When.";
        type: byte 13 to 17 "0 periodic, 1 the world has stopped, 2 it has started.";
    }
    "AOT_ID" [0x1a] "The runtime's id of ahead-of-time compiled code; since profiler 3." {
        time: time 16 to 17 "When.";
        id: text 16 to 17 "The id.";
    }
}
