//! The fields of every event with the data versions each is in: the tables of the documentation. A test holds them against what
//! [`shape`](crate::records::shape) says, event by event and version by version.

use perfuse_wire::{Field, FieldType, Layout};

use super::declaration::{EventLayout, encoded, events};

events! {
    "ALLOC" [0x00] "An object was allocated." {
        time: time 1 to 17 "When.";
        class: pointer 1 to 14 "Its class.";
        vtable: pointer 15 to 17 "Its vtable.";
        object: object 1 to 17 "Its address.";
        size: value 1 to 17 "Its size in bytes: exact from profiler 0.1, rounded up to 8 since.";
    }
    "ALLOC_BT" [0x10] "The same with a backtrace." {
        time: time 1 to 17 "When.";
        class: pointer 1 to 14 "Its class.";
        vtable: pointer 15 to 17 "Its vtable.";
        object: object 1 to 17 "Its address.";
        size: value 1 to 17 "Its size in bytes.";
        flags: value 1 to 12 "0.";
        frames: list 1 to 17 "How many frames, then the frames, outermost first:";
        method: pointer 1 to 12 "method of a frame.";
        method: method 13 to 17 "method of a frame.";
    }
    "GC_EVENT" [0x11] "A phase of a garbage collection." {
        time: time 1 to 17 "When.";
        event: value 1 to 12 "0 start, 1 to 4 mark and reclaim, 5 end, 6 about to stop the world, 7 stopped, 8 about to start it, 9 started.";
        generation: value 1 to 12 "0 nursery, 1 major.";
        event: byte 13 to 17 "The same without 1 to 4 since 14; 10 about to stop with the lock held, 11 started and the lock released.";
        generation: byte 13 to 17 "0 nursery, 1 major.";
    }
    "GC_RESIZE" [0x21] "The heap has another size." {
        time: time 1 to 17 "When.";
        size: value 1 to 17 "Bytes.";
    }
    "GC_MOVE" [0x31] "Objects were moved." {
        time: time 1 to 17 "When.";
        objects: list 1 to 17 "How many addresses, then the addresses, old and new in turn:";
        object: object 1 to 17 "an address.";
    }
    "GC_HANDLE_CREATED" [0x41] "A handle was made; not from profiler 0.1." {
        time: time 1 to 17 "When.";
        type: value 1 to 17 "0 weak, 1 weak with resurrection tracked, 2 normal, 3 pinned.";
        handle: value 1 to 17 "Its number.";
        object: object 1 to 17 "What it holds.";
    }
    "GC_HANDLE_DESTROYED" [0x51] "A handle was freed; not from profiler 0.1." {
        time: time 1 to 17 "When.";
        type: value 1 to 17 "As when created.";
        handle: value 1 to 17 "Its number.";
    }
    "GC_HANDLE_CREATED_BT" [0x61] "A handle was made, with a backtrace." {
        time: time 11 to 17 "When.";
        type: value 11 to 17 "Its type.";
        handle: value 11 to 17 "Its number.";
        object: object 11 to 17 "What it holds.";
        flags: value 11 to 12 "0.";
        frames: list 11 to 17 "As in ALLOC_BT:";
        method: pointer 11 to 12 "method of a frame.";
        method: method 13 to 17 "method of a frame.";
    }
    "GC_HANDLE_DESTROYED_BT" [0x71] "A handle was freed, with a backtrace." {
        time: time 11 to 17 "When.";
        type: value 11 to 17 "Its type.";
        handle: value 11 to 17 "Its number.";
        flags: value 11 to 12 "0.";
        frames: list 11 to 17 "As in ALLOC_BT:";
        method: pointer 11 to 12 "method of a frame.";
        method: method 13 to 17 "method of a frame.";
    }
    "GC_FINALIZE_START, GC_FINALIZE_END" [0x81 0x91] "The finalizer thread begins and ends a round." {
        time: time 13 to 17 "When.";
    }
    "GC_FINALIZE_OBJECT_START, GC_FINALIZE_OBJECT_END" [0xa1 0xb1] "A finalizer begins and ends." {
        time: time 13 to 17 "When.";
        object: object 13 to 17 "Whose it is.";
    }
    "METADATA: class" [0x22 0x42] mtype 1 "A class was loaded. Unloading is documented for 11 to 13 and never written." {
        time: time 1 to 17 "When.";
        mtype: byte 1 to 17 "1.";
        pointer: pointer 1 to 17 "The class.";
        image: pointer 1 to 17 "Its image.";
        flags: value 1 to 12 "0.";
        name: text 1 to 17 "Its full name.";
    }
    "METADATA: image loaded" [0x22] mtype 2 "An image was loaded." {
        time: time 1 to 17 "When.";
        mtype: byte 1 to 17 "2.";
        pointer: pointer 1 to 17 "The image.";
        flags: value 1 to 12 "0.";
        name: text 1 to 17 "Its file.";
        mvid: text 16 to 17 "Its module version id; empty for images made at run time. Not with profiler 2.";
    }
    "METADATA: image unloaded" [0x42] mtype 2 "An image was unloaded: without mvid, whatever the header file says." {
        time: time 11 to 17 "When.";
        mtype: byte 11 to 17 "2.";
        pointer: pointer 11 to 17 "The image.";
        flags: value 11 to 12 "0.";
        name: text 11 to 17 "Its file.";
    }
    "METADATA: assembly" [0x22 0x42] mtype 3 "An assembly was loaded or unloaded." {
        time: time 11 to 17 "When.";
        mtype: byte 11 to 17 "3.";
        pointer: pointer 11 to 17 "The assembly.";
        image: pointer 14 to 17 "Its image.";
        flags: value 11 to 12 "0.";
        name: text 11 to 17 "Its full name.";
    }
    "METADATA: domain" [0x22 0x42] mtype 4 "An application domain was loaded or unloaded." {
        time: time 11 to 17 "When.";
        mtype: byte 11 to 17 "4.";
        pointer: pointer 11 to 17 "Its id.";
        flags: value 11 to 12 "0.";
    }
    "METADATA: domain named" [0x02] mtype 4 "An application domain has a name." {
        time: time 11 to 17 "When.";
        mtype: byte 11 to 17 "4.";
        pointer: pointer 11 to 17 "Its id.";
        flags: value 11 to 12 "0.";
        name: text 11 to 17 "Its name.";
    }
    "METADATA: thread" [0x22 0x42] mtype 5 "A thread has started or ended." {
        time: time 11 to 17 "When.";
        mtype: byte 11 to 17 "5.";
        pointer: pointer 11 to 17 "Its id.";
        flags: value 11 to 12 "0.";
    }
    "METADATA: thread named" [0x02] mtype 5 "A thread has a name; not from profiler 0.1." {
        time: time 1 to 17 "When.";
        mtype: byte 1 to 17 "5.";
        pointer: pointer 1 to 17 "Its id.";
        flags: value 1 to 12 "0.";
        name: text 1 to 17 "Its name.";
    }
    "METADATA: context" [0x22 0x42] mtype 6 "A remoting context was loaded or unloaded." {
        time: time 11 to 17 "When.";
        mtype: byte 11 to 17 "6.";
        pointer: pointer 11 to 17 "Its id.";
        flags: value 11 to 12 "0.";
        domain: pointer 11 to 17 "Its domain.";
    }
    "METADATA: vtable" [0x22] mtype 7 "A vtable was loaded." {
        time: time 15 to 17 "When.";
        mtype: byte 15 to 17 "7.";
        pointer: pointer 15 to 17 "The vtable.";
        domain: pointer 15 to 17 "Its domain; 0 for a proxy's.";
        class: pointer 15 to 17 "Its class.";
    }
    "METHOD_LEAVE, METHOD_ENTER, METHOD_EXC_LEAVE" [0x13 0x23 0x33] "A method is left, entered, left by an exception." {
        time: time 1 to 17 "When.";
        method: method 1 to 17 "The method.";
    }
    "METHOD_JIT" [0x43] "A method was compiled." {
        time: time 1 to 17 "When.";
        method: method 1 to 17 "The method.";
        code: pointer 1 to 17 "Its machine code; 0 and all ones where it has none of its own.";
        size: value 1 to 17 "Size of the code in bytes; 0 and all ones as well.";
        name: text 1 to 17 "Its full name.";
    }
    "THROW" [0x04] "An exception was thrown." {
        time: time 1 to 17 "When.";
        object: object 1 to 17 "The exception.";
    }
    "THROW_BT" [0x84] "The same with a backtrace." {
        time: time 1 to 17 "When.";
        object: object 1 to 17 "The exception.";
        flags: value 1 to 12 "0.";
        frames: list 1 to 17 "As in ALLOC_BT:";
        method: pointer 1 to 12 "method of a frame.";
        method: method 13 to 17 "method of a frame.";
    }
    "CLAUSE" [0x14] "A handler runs." {
        time: time 1 to 17 "When.";
        type: value 1 to 12 "0 catch, 1 filter, 2 finally, 4 fault.";
        type: byte 13 to 17 "0 catch, 1 filter, 2 finally, 4 fault.";
        index: value 1 to 17 "Its number in the method.";
        method: method 1 to 17 "The method.";
        object: object 14 to 17 "The exception.";
    }
    "MONITOR_ev1, MONITOR_ev2, MONITOR_ev3" [0x15 0x25 0x35] "A lock is waited for, was taken, was given up." {
        time: time 1 to 13 "When.";
        object: object 1 to 13 "Object that is locked.";
    }
    "MONITOR_ev1_BT" [0x95] "A lock is waited for, with a backtrace." {
        time: time 1 to 13 "When.";
        object: object 1 to 13 "Object that is locked.";
        flags: value 1 to 12 "0.";
        frames: list 1 to 13 "As in ALLOC_BT:";
        method: pointer 1 to 12 "method of a frame.";
        method: method 13 to 13 "method of a frame.";
    }
    "MONITOR" [0x05] "Something happened to a lock." {
        time: time 14 to 17 "When.";
        event: byte 14 to 17 "1 it is waited for, 2 it was taken, 3 it was given up.";
        object: object 14 to 17 "Object that is locked.";
    }
    "MONITOR_BT" [0x85] "The same with a backtrace." {
        time: time 14 to 17 "When.";
        event: byte 14 to 17 "As in MONITOR.";
        object: object 14 to 17 "Object that is locked.";
        frames: list 14 to 17 "As in ALLOC_BT:";
        method: method 14 to 17 "method of a frame.";
    }
    "HEAP_START, HEAP_END" [0x06 0x16] "A heap shot begins and ends." {
        time: time 1 to 17 "When.";
    }
    "HEAP_OBJECT" [0x26] "An object that is alive." {
        time: time 13 to 17 "When.";
        object: object 1 to 17 "Its address.";
        class: pointer 1 to 14 "Its class.";
        vtable: pointer 15 to 17 "Its vtable.";
        size: value 1 to 17 "Its size in bytes; 0 where the record goes on with references of the object before.";
        generation: byte 16 to 17 "0 nursery, 1 major. Not with profiler 2.";
        references: list 1 to 17 "How many references, then the references:";
        offset: value 2 to 17 "where in the object the reference lies, less where the one before does;";
        object: object 1 to 17 "what it refers to.";
    }
    "HEAP_ROOT" [0x36] "Roots." {
        time: time 13 to 17 "When.";
        num_roots: value 3 to 14 "How many.";
        collections: value 3 to 14 "Major collections so far.";
        roots: list 3 to 17 "The roots, since 15 behind their number:";
        slot: pointer 15 to 17 "where the root lies;";
        object: object 3 to 17 "what it refers to;";
        type: value 3 to 12 "0 stack, 1 finalizer, 2 handle, 3 other, 4 misc; 0x100 pinning, 0x200 weak, 0x400 interior;";
        type: byte 13 to 13 "the same without the flags;";
        type: value 14 to 14 "1 stack, 2 finalizer, 4 handle, 8 other, 16 misc, and the flags; a byte before 2017-09-13;";
        extra: value 3 to 14 "more about it.";
    }
    "HEAP_ROOT_REGISTER" [0x46] "Memory that holds roots was registered." {
        time: time 15 to 17 "When.";
        start: pointer 15 to 17 "Its first address.";
        size: value 15 to 17 "Its size in bytes.";
        source: byte 15 to 17 "0 external, 1 stack, 2 finalizer queue, 3 static, 4 thread static, 5 context static, 6 GC handle, 7 JIT, 8 threading, 9 domain, 10 reflection, 11 marshal, 12 thread pool, 13 debugger, 14 handle, 15 ephemeron, 16 toggle reference.";
        key: pointer 15 to 17 "Whose it is: a vtable for statics, a thread for stacks and thread statics, a domain; else 0.";
        name: text 15 to 17 "What it is, in words.";
    }
    "HEAP_ROOT_UNREGISTER" [0x56] "Memory that held roots was given back." {
        time: time 15 to 17 "When.";
        start: pointer 15 to 17 "Its first address.";
    }
    "SAMPLE_HIT" [0x07] "A sample of what a thread runs." {
        time: time 13 to 17 "When.";
        type: value 4 to 12 "1 cycles, 2 instructions, 3 cache misses, 4 cache references, 5 branches, 6 branch misses.";
        timestamp: value 4 to 12 "When, in ns of the events' clock: absolute, though documented as a difference.";
        type: byte 13 to 13 "The same type; also in 14 before 2017-07-08.";
        thread: pointer 11 to 17 "Thread that was sampled.";
        ips: list 4 to 17 "How many instruction pointers, then these, innermost first:";
        ip: pointer 4 to 17 "an address.";
        frames: list 6 to 17 "How many managed frames, then these, innermost first:";
        method: method 6 to 17 "method of a frame;";
        il_offset: signed 6 to 12 "where in its IL, -1 unknown;";
        native_offset: signed 6 to 12 "where in its machine code.";
    }
    "SAMPLE_USYM" [0x17] "A native symbol." {
        time: time 13 to 17 "When.";
        address: pointer 4 to 17 "Its address.";
        size: value 4 to 17 "Its size in bytes; 0 unknown.";
        name: text 4 to 17 "Its name.";
    }
    "SAMPLE_UBIN" [0x27] "A native binary that is mapped; gone with profiler 3." {
        time: time 4 to 15 "When.";
        address: absolute 4 to 13 "Where.";
        address: pointer 14 to 15 "Where.";
        offset: value 4 to 15 "Offset in the file.";
        size: value 4 to 15 "Size in bytes.";
        name: text 4 to 15 "Its path.";
    }
    "COUNTERS_DESC" [0x37] "Counters that will be told. In section 0x8000 (since 7) the category stands before the name as a text of its own, and type, unit and variance are bytes." {
        time: time 13 to 17 "When.";
        counters: list 5 to 17 "How many, then these:";
        section: value 5 to 17 "0x100 JIT, 0x200 GC, 0x400 metadata, 0x800 generics, 0x1000 security, 0x2000 runtime, 0x4000 system, 0x8000 performance counters, 0x10000 profiler, 0x20000 interpreter.";
        name: text 5 to 17 "Its name.";
        type: value 5 to 12 "0 int, 1 unsigned int, 2 word, 3 long, 4 unsigned long, 5 double, 6 string, 7 time interval in microseconds.";
        unit: value 5 to 12 "0 raw, 1 bytes, 2 time, 3 count, 4 percentage; in bits 24 to 27.";
        variance: value 5 to 12 "Bit 28 monotonic, 29 constant, 30 variable.";
        type: byte 13 to 14 "The same type.";
        unit: byte 13 to 14 "0: what a byte has of it.";
        variance: byte 13 to 14 "0: what a byte has of it.";
        type: value 15 to 17 "As before 13.";
        unit: value 15 to 17 "As before 13.";
        variance: value 15 to 17 "As before 13.";
        index: value 5 to 17 "Its number, from 1.";
    }
    "COUNTERS" [0x47] "Values of counters that have changed. Whole numbers are differences to the value before, of performance counters the value itself." {
        time: time 13 to 17 "When.";
        ms: value 5 to 12 "When, in milliseconds since the first.";
        values: list 5 to 17 "Values, each behind the number of its counter, up to the number 0:";
        type: value 5 to 12 "as in COUNTERS_DESC;";
        type: byte 13 to 14 "as in COUNTERS_DESC;";
        type: value 15 to 17 "as in COUNTERS_DESC;";
        value: signed 5 to 17 "by type: signed for 0, 2, 3 and 7; a value for 1 and 4; 8 bytes for 5; for 6 a byte 0, or a byte 1 and the text.";
    }
    "JITHELPER" [0x18] "The runtime made code for itself." {
        time: time 8 to 17 "When.";
        type: value 8 to 12 "0 unknown, then 1 higher than since 14.";
        type: byte 13 to 17 "Since 14: 0 method, 1 method trampoline, 2 unbox trampoline, 3 IMT trampoline, 4 generics trampoline, 5 specific trampoline, 6 helper, 7 monitor, 8 delegate invoke, 9 exception handling.";
        code: pointer 8 to 17 "Its address.";
        size: value 8 to 17 "Its size in bytes. The name of a specific trampoline follows.";
    }
    "COVERAGE_ASSEMBLY" [0x09] "How much of an assembly was executed." {
        time: time 13 to 15 "When.";
        assembly: text 10 to 15 "Its name.";
        guid: text 10 to 15 "Its module version id.";
        file: text 10 to 15 "Its file.";
        num_methods: value 10 to 15 "Its methods.";
        num_fully_covered: value 10 to 15 "Those executed whole.";
        num_partially_covered: value 10 to 15 "Those executed in part.";
    }
    "COVERAGE_METHOD" [0x19] "A method whose statements follow." {
        time: time 13 to 15 "When.";
        assembly: text 10 to 15 "Its assembly.";
        class: text 10 to 15 "Its class.";
        method: text 10 to 15 "Its name.";
        signature: text 10 to 15 "Its signature.";
        file: text 10 to 15 "Its source file.";
        token: value 10 to 15 "Its metadata token.";
        method_id: value 10 to 15 "Its number in the log.";
        num_entries: value 10 to 15 "Statements that follow.";
    }
    "COVERAGE_STATEMENT" [0x29] "How often a statement was executed." {
        time: time 13 to 15 "When.";
        method_id: value 10 to 15 "The method's number.";
        il_offset: value 10 to 15 "Where in its IL.";
        count: value 10 to 15 "How often.";
        line: value 10 to 15 "Source line.";
        column: value 10 to 15 "Source column.";
    }
    "COVERAGE_CLASS" [0x39] "How much of a class was executed." {
        time: time 13 to 15 "When.";
        assembly: text 10 to 15 "Its assembly.";
        class: text 10 to 15 "Its name.";
        num_methods: value 10 to 15 "Its methods.";
        num_fully_covered: value 10 to 15 "Those executed whole.";
        num_partially_covered: value 10 to 15 "Those executed in part.";
    }
    "SYNC_POINT" [0x0a] "Events of buffers before this one are earlier than it, but for METHOD_JIT and SAMPLE_HIT." {
        time: time 13 to 17 "When.";
        type: byte 13 to 17 "0 periodic, 1 the world was stopped, 2 it was started.";
    }
    "AOT_ID" [0x1a] "The runtime's id for ahead-of-time compiled code; since profiler 3." {
        time: time 16 to 17 "When.";
        id: text 16 to 17 "The id.";
    }
}
