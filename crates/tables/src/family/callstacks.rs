//! Frames and the tree of stacks made of them.

use crate::schema::table;

table! {
    /// One row a place in a function as seen in stacks; an inlined call is a frame of its own.
    frames {
        /// Surrogate key.
        frame_id: u32,
        /// Function; null where the address could not be named.
        function_id: Opt<u32>,
        /// JIT code it is in.
        code_object_id: Opt<u32>,
        /// Mapping it is in.
        mapping_id: Opt<u32>,
        /// Address that was sampled, or returned to; null for frames an unwinder made up.
        address: Opt<u64>,
        /// Address within the module's file, or within the JIT code.
        relative_address: Opt<u64>,
        /// Source file.
        path: Opt<Str>,
        /// Line, from 1.
        line: Opt<u32>,
        /// Column, from 1.
        column: Opt<u32>,
        /// 0 for the outermost function at an address, then the calls inlined into it.
        inline_depth: u32,
        /// `jit`, `native`, `kernel`, `hypervisor`, `traced` (a function that told of its calls itself) or `unknown`.
        kind: Str,
        /// What found the frame: `sampled` (the interrupted address), `callchain` (the recorder's own walk), `trace` (the
        /// call's own events); where stacks were unwound from copies, what told how to leave the function called: `sframe`,
        /// `eh_frame`, `debug_frame`, `jitdump` (the unwinding record of JIT code) or `frame_pointer`.
        unwound_by: Str,
        /// Why the frame has no name; null where it has one.
        unnamed_because: Opt<Str>,
    }
}

table! {
    /// One row a stack: a frame on top of the stack that called it.
    stacks {
        /// Surrogate key; a parent's is always less than its children's.
        stack_id: u32,
        /// Stack of the caller; null at the root.
        parent_stack_id: Opt<u32>,
        /// Frame on top.
        frame_id: u32,
        /// 0 at the root.
        depth: u32,
    }
}
