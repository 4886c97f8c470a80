//! Frames and call stacks, which form a tree.

use crate::schema::table;

table! {
    /// One row for each distinct position in a function that occurs in stacks. An inlined call is a separate frame.
    frames {
        /// Surrogate key.
        frame_id: u32,
        /// Function; null where the address has no known function.
        function_id: Opt<u32>,
        /// JIT code that contains it; null for other code.
        code_object_id: Opt<u32>,
        /// Mapping that contains it; null where there is none.
        mapping_id: Opt<u32>,
        /// Sampled address, or return address; null for frames without an address.
        address: Opt<u64>,
        /// `address` relative to the module's file, as `nm` and `objdump` print addresses, or to the start of the JIT code.
        relative_address: Opt<u64>,
        /// Source file.
        path: Opt<Str>,
        /// Line, from 1.
        line: Opt<u32>,
        /// Column, from 1.
        column: Opt<u32>,
        /// 0 for the outermost function at an address, 1 and more for calls inlined into it.
        inline_depth: u32,
        /// `jit`, `native`, `kernel`, `hypervisor`, `traced` (a function of a call trace, without known code), `type` (the innermost
        /// frame of an allocation: the type of the object) or `unknown`.
        kind: Str,
        /// How the frame was found: `sampled` (the interrupted address), `callchain` (unwound by the recorder), `trace` (events of
        /// a call trace) or `type` (an allocation). For stacks unwound from copies, the unwinding information of the called function: `sframe`, `eh_frame`,
        /// `debug_frame`, `jitdump` (the unwinding record of JIT code) or `frame_pointer`.
        unwound_by: Str,
        /// Reason why the frame has no name; null where it has one.
        unnamed_because: Opt<Str>,
    }
}

table! {
    /// One row for each stack: a frame on top of the stack of its caller.
    stacks {
        /// Surrogate key; the key of a parent is less than those of its children.
        stack_id: u32,
        /// Stack of the caller; null for an outermost frame.
        parent_stack_id: Opt<u32>,
        /// Innermost frame of the stack.
        frame_id: u32,
        /// Number of frames below the innermost one; 0 for an outermost frame.
        depth: u32,
    }
}
