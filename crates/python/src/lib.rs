//! Python bindings of the core; the only crate that names pyo3.
//!
//! Tables are passed as Arrow streams through PyCapsules, single values as plain Python objects; work runs with the GIL
//! released.

#[macro_use]
mod dict;

mod allocations;
mod arrow;
mod call;
mod calls;
mod choice;
mod clock;
mod errors;
mod heap;
mod images;
mod inputs;
mod jitdump;
mod machine_code;
mod mono_logs;
mod output;
mod permutation;
mod profile;
mod profile_output;
mod recording;
mod registry;
mod saved;
mod selected_rows;
mod sframe;
mod stack_transform;
mod stacks;
mod streams;
mod timeline;
mod trace_output;
mod xray_logs;
mod xray_map;

use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict};

#[global_allocator]
static ALLOCATOR: perfuse_allocator::Allocator = perfuse_allocator::Allocator;

/// Lets threads in the background end before each fork of this process.
fn settle_before_forks(py: Python<'_>) -> PyResult<()> {
    let settle = PyCFunction::new_closure(py, None, None, |arguments, _| {
        arguments.py().detach(perfuse_workers::settle);
    })?;
    let hooks = PyDict::new(py);
    hooks.set_item("before", settle)?;
    py.import("os")?.call_method("register_at_fork", (), Some(&hooks))?;
    Ok(())
}

#[pymodule]
mod _core {
    use pyo3::panic::PanicException;
    use pyo3::prelude::*;

    use super::errors::{internal_error, record_panics};
    use super::settle_before_forks;

    #[pymodule_export]
    use super::allocations::{allocation_sums, event_objects, object_origins};
    #[pymodule_export]
    use super::arrow::{ArrowStream, ScannedTable};
    #[pymodule_export]
    use super::call::{exit_when_out_of_memory, memory_limit, set_memory_limit, take_stop};
    #[pymodule_export]
    use super::calls::{PyCallStatistics, call_statistics, selected_samples};
    #[pymodule_export]
    use super::errors::take_panic;
    #[pymodule_export]
    use super::heap::{PyHeapSnapshot, heap_sums};
    #[pymodule_export]
    use super::images::{Images, code_pids, inject_images, write_images};
    #[pymodule_export]
    use super::inputs::take_unreadable;
    #[pymodule_export]
    use super::jitdump::JitdumpEncoder;
    #[pymodule_export]
    use super::machine_code::{
        NativeModule, code_rows, code_targets, code_targets_at, disassemble, instruction_set, py_code_samples,
    };
    #[pymodule_export]
    use super::mono_logs::{MonoLogWriter, convert_mono, mono_kinds, mono_unsupported_items};
    #[pymodule_export]
    use super::output::{compress_zstd, write_arrow};
    #[pymodule_export]
    use super::permutation::largest_statistics;
    #[pymodule_export]
    use super::profile::{PyDefinedLines, PyPlaced, PyProfile, process_numbers};
    #[pymodule_export]
    use super::profile_output::{write_perfetto_stacks, write_pprof};
    #[pymodule_export]
    use super::recording::{PyRecording, RecordIterator, diagnostics_table, read_early};
    #[pymodule_export]
    use super::registry::{directory_format, file_head, formats, rules, sniff, tables};
    #[pymodule_export]
    use super::saved::{
        empty_table, placements, resolved_sums, saved_facts, saved_member, saved_members, saved_profile,
        saved_range, saved_recording, saved_table, saved_tables_profile, slices_of_range, write_call_events,
        write_copy_of, write_table,
    };
    #[pymodule_export]
    use super::selected_rows::{count_rows, handle_sums, py_backtraces, row_counts, selected_rows};
    #[pymodule_export]
    use super::sframe::{
        SFrameSection, SFrameText, sframe_at, sframe_coverage, sframe_find, sframe_from_eh_frame,
        sframe_into, sframe_pieces, sframe_put_back, sframe_unwind,
    };
    #[pymodule_export]
    use super::stack_transform::PyStackTransform;
    #[pymodule_export]
    use super::stacks::{PyCallTree, call_tree, frame_names, sampled_events, tiers_of_origins};
    #[pymodule_export]
    use super::timeline::PyTimeline;
    #[pymodule_export]
    use super::trace_output::{CallTrace, shown_processes};
    #[pymodule_export]
    use super::xray_logs::{XRayLogWriter, convert_xray, write_xray};
    #[pymodule_export]
    use super::xray_map::{PyInstrumentationMap, elf_dependencies};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        record_panics();
        perfuse_allocator::set_aside();
        settle_before_forks(module.py())?;
        let internal_error = wrap_pyfunction!(internal_error, module)?;
        module.py().get_type::<PanicException>().setattr("__new__", internal_error)?;
        if std::env::var_os("PERFUSE_PANIC_FOR_TEST").is_some() {
            module.add_function(wrap_pyfunction!(super::arrow::panic_for_test, module)?)?;
        }
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
