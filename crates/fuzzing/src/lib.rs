//! What perfuse promises for any bytes: no panic, no hang, memory bounded by the input, offsets inside the file; what is
//! repaired is valid, and what is written is read back as it was.
//!
//! Every target is a [`Target`] in [`targets`]. Those of formats are made from the registry, so that a new format has them
//! without a change here.

mod growing;
mod heaps;
mod machine_code;
mod open;
mod profiles;
mod programs;
mod recordings;
mod repaired;
mod saved;
mod written;

use perfuse_formats::registry::FORMATS;

/// Runs something with any bytes; panics where a promise is broken.
pub type Run = Box<dyn Fn(&[u8]) + Send + Sync>;

/// Something that is run with any bytes.
pub struct Target {
    /// Name: `records-jitdump`.
    pub name: String,
    /// Directories of the corpus whose files it starts from, with spaces between them.
    pub seeds: String,
    /// What it runs and what it compares.
    pub purpose: &'static str,
    /// Runs it.
    pub run: Run,
}

/// All targets.
#[must_use]
pub fn targets() -> Vec<Target> {
    let mut all = Vec::new();
    for &format in FORMATS {
        let name = |kind| format!("{kind}-{}", format.name);
        let seeds = || format.name.to_owned();
        all.push(Target {
            name: name("records"),
            seeds: seeds(),
            purpose: "reads every record, with its fields",
            run: Box::new(move |bytes| recordings::records(format, bytes)),
        });
        all.push(Target {
            name: name("tables"),
            seeds: seeds(),
            purpose: "summary, check and every table",
            run: Box::new(move |bytes| recordings::tables(format, bytes)),
        });
        if format.capabilities.repair {
            all.push(Target {
                name: name("repair"),
                seeds: seeds(),
                purpose: "repairs; the result has no error that is new and not reported",
                run: Box::new(move |bytes| repaired::repair(format, bytes)),
            });
        }
    }
    let all_formats = || FORMATS.iter().map(|format| format.name).collect::<Vec<_>>().join(" ");
    let mut add = |name: &str, seeds: &str, purpose, run: fn(&[u8])| {
        all.push(Target { name: name.to_owned(), seeds: seeds.to_owned(), purpose, run: Box::new(run) });
    };
    add(
        "written-sframe",
        "sframe",
        "decodes, encodes, decodes: the same functions and rows",
        written::sframe,
    );
    add(
        "written-jitdump",
        "jitdump",
        "encodes each decoded record: the same bytes; writes loads and lines in the other byte order",
        written::jitdump,
    );
    add("written-perf_data", "perf_data", "writes the file, reads it, writes it", written::perf_data);
    add("written-xray", "xray", "writes the log, reads it, writes it", written::xray);
    add("written-mono", "mono", "writes the log, reads it, writes it", written::mono);
    add("profile", &all_formats(), "a profile of one recording: every table, calls, heap", profiles::one);
    add("fused", "jitdump perf_data", "a profile of two recordings, split at their lengths", profiles::two);
    add(
        "exporters",
        &all_formats(),
        "a profile written as Chrome, Perfetto and speedscope traces",
        profiles::exported,
    );
    add(
        "growing",
        "jitdump",
        "a dump in pieces, as a program embeds it: the same code as in one piece",
        growing::in_pieces,
    );
    add("unwind", "sframe", "unwinding rows by address, as a program embeds them", growing::unwind);
    add(
        "heap",
        "mono",
        "heap snapshots of a log: sizes, dominators and paths by their definitions",
        heaps::of_log,
    );
    add("heap-graph", "", "a heap that the bytes state: as above", heaps::of_graph);
    add(
        "saved",
        "saved",
        "a saved profile, with correct checksums: its recordings and tables",
        saved::opened,
    );
    add(
        "saved-tables",
        "",
        "a table that the bytes state, written as in a saved profile and read",
        saved::tables,
    );
    add("symbols", "sframe", "ELF and DWARF of a program: symbols, lines, .eh_frame", programs::symbols);
    add("xray-map", "xray", "the instrumentation map of a program", programs::xray_map);
    add("perf-map", "", "a perf map", programs::perf_map);
    add("machine-code", "", "disassembles: every byte is of one instruction", machine_code::disassemble);
    all
}
