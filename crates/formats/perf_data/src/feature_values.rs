//! Feature sections as text: the name of each feature of perf up to 7.2, and what its section contains.

use std::borrow::Cow;
use std::fmt::Write;

use perfuse_wire::{Cursor, ErrorKind, ParseError};

use super::consts::machine_name;
use super::features::{build_id_table, header_string, text};
use super::file_lists;
use super::layout::ClockData;

/// Names of features, by bit, in header fields.
const NAMES: [&str; 35] = [
    "HEADER_RESERVED",
    "HEADER_TRACING_DATA",
    "HEADER_BUILD_ID",
    "HEADER_HOSTNAME",
    "HEADER_OSRELEASE",
    "HEADER_VERSION",
    "HEADER_ARCH",
    "HEADER_NRCPUS",
    "HEADER_CPUDESC",
    "HEADER_CPUID",
    "HEADER_TOTAL_MEM",
    "HEADER_CMDLINE",
    "HEADER_EVENT_DESC",
    "HEADER_CPU_TOPOLOGY",
    "HEADER_NUMA_TOPOLOGY",
    "HEADER_BRANCH_STACK",
    "HEADER_PMU_MAPPINGS",
    "HEADER_GROUP_DESC",
    "HEADER_AUXTRACE",
    "HEADER_STAT",
    "HEADER_CACHE",
    "HEADER_SAMPLE_TIME",
    "HEADER_MEM_TOPOLOGY",
    "HEADER_CLOCKID",
    "HEADER_DIR_FORMAT",
    "HEADER_BPF_PROG_INFO",
    "HEADER_BPF_BTF",
    "HEADER_COMPRESSED",
    "HEADER_CPU_PMU_CAPS",
    "HEADER_CLOCK_DATA",
    "HEADER_HYBRID_TOPOLOGY",
    "HEADER_PMU_CAPS",
    "HEADER_CPU_DOMAIN_INFO",
    "HEADER_E_MACHINE",
    "HEADER_CLN_SIZE",
];
/// Features of simpleperf, from bit 128.
const SIMPLEPERF: [&str; 5] = [
    "HEADER_SIMPLEPERF_FILE",
    "HEADER_SIMPLEPERF_META_INFO",
    "HEADER_SIMPLEPERF_DEBUG_UNWIND",
    "HEADER_SIMPLEPERF_DEBUG_UNWIND_FILE",
    "HEADER_SIMPLEPERF_FILE2",
];
const SIMPLEPERF_FIRST: u32 = 128;
/// Most entries of a list in a text.
const MAX_ENTRIES: usize = 64;

/// Name of a feature's header field; `None` for one without a name.
#[must_use]
pub fn field_name(bit: u32) -> Option<&'static str> {
    let at =
        |names: &[&'static str], bit: u32| usize::try_from(bit).ok().and_then(|bit| names.get(bit).copied());
    match bit.checked_sub(SIMPLEPERF_FIRST) {
        Some(bit) => at(&SIMPLEPERF, bit),
        None => at(&NAMES, bit),
    }
}

/// Name of a feature in lists.
#[must_use]
pub fn name(bit: u32) -> Cow<'static, str> {
    match field_name(bit).and_then(|name| name.strip_prefix("HEADER_")) {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(format!("Unknown Feature {bit}")),
    }
}

/// What a section contains. A section that cannot be decoded is stated as such.
#[must_use]
pub fn describe(bit: u32, cursor: Cursor<'_>) -> String {
    let num_bytes = cursor.remaining();
    decode(bit, cursor).unwrap_or_else(|error| match num_bytes {
        0 => "no content".to_owned(),
        _ => format!("{num_bytes} bytes that cannot be decoded: {error}"),
    })
}

/// Whether a section can be decoded.
///
/// # Errors
/// The reason where it cannot; perf refuses most files with such a section.
pub fn verify(bit: u32, cursor: Cursor<'_>) -> Result<(), ParseError> {
    decode(bit, cursor).map(drop)
}

/// The value of a capability of a PMU, from a section of capabilities: the first with that name.
#[must_use]
pub fn capability(mut cursor: Cursor<'_>, wanted: &str) -> Option<String> {
    // Both sections begin with a number; that of several PMUs is followed by the number of the first one's capabilities.
    let bytes = cursor.remaining();
    for skipped in 0..2 {
        let mut list = cursor;
        let count = list.u32("nr").ok()?;
        for _ in 0..count.min(u32::try_from(bytes).unwrap_or(u32::MAX)) {
            let (Ok(name), Ok(value)) = (header_string(&mut list), header_string(&mut list)) else { break };
            if name == wanted {
                return Some(value);
            }
        }
        if skipped == 0 {
            cursor.u32("nr_pmus").ok()?;
        }
    }
    None
}

fn decode(bit: u32, mut cursor: Cursor<'_>) -> Result<String, ParseError> {
    let cursor = &mut cursor;
    let num_bytes = cursor.remaining();
    Ok(match field_name(bit).and_then(|name| name.strip_prefix("HEADER_")).unwrap_or_default() {
        "TRACING_DATA" => format!("{num_bytes} bytes of tracepoint formats"),
        "BUILD_ID" => match build_id_table(*cursor).count() {
            0 if num_bytes > 0 => return Err(invalid(cursor, num_bytes as u64, "a table of build ids")),
            num => counted(num as u64, "build id"),
        },
        "HOSTNAME" | "OSRELEASE" | "VERSION" | "ARCH" | "CPUDESC" | "CPUID" => header_string(cursor)?,
        "NRCPUS" => {
            let (available, online) = (cursor.u32("nr_cpus_available")?, cursor.u32("nr_cpus_online")?);
            format!("{online} of {available} processors online")
        }
        "TOTAL_MEM" => format!("{} kB", cursor.u64("total_mem")?),
        "CMDLINE" => strings(cursor, "nr")?.join(" "),
        "EVENT_DESC" => {
            let (count, attr_size) = (cursor.u32("nr")?, cursor.u32("attr_size")?);
            for _ in 0..count {
                cursor.bytes(u64::from(attr_size), "attr")?;
                let num_ids = cursor.u32("nr_ids")?;
                header_string(cursor)?;
                cursor.bytes(u64::from(num_ids).saturating_mul(8), "ids")?;
            }
            counted(u64::from(count), "event")
        }
        "CPU_TOPOLOGY" => {
            let packages = strings(cursor, "nr_cores")?;
            let threads = strings(cursor, "nr_threads")?;
            format!("packages {}; cores {}", packages.join(" "), threads.join(" "))
        }
        "NUMA_TOPOLOGY" => list(cursor, "nr", "; ", |cursor| {
            let (node, total, free) =
                (cursor.u32("node")?, cursor.u64("mem_total")?, cursor.u64("mem_free")?);
            Ok(format!("node {node}: processors {}, {total} kB, {free} kB free", header_string(cursor)?))
        })?,
        "BRANCH_STACK" => "samples have branch stacks".to_owned(),
        "PMU_MAPPINGS" => list(cursor, "nr", ", ", |cursor| {
            let type_ = cursor.u32("type")?;
            Ok(format!("{} = {type_}", header_string(cursor)?))
        })?,
        "GROUP_DESC" => list(cursor, "nr", "; ", |cursor| {
            let name = header_string(cursor)?;
            let (leader, members) = (cursor.u32("leader_idx")?, cursor.u32("nr_members")?);
            Ok(format!("{name}: event {leader} leads {members}"))
        })?,
        "AUXTRACE" => format!("an index of {}", counted(cursor.u64("nr")?, "record")),
        "STAT" => "recorded by perf stat".to_owned(),
        "CACHE" => {
            cursor.u32("version")?;
            list(cursor, "nr", "; ", |cursor| {
                let (level, line, sets, ways) = (
                    cursor.u32("level")?,
                    cursor.u32("line_size")?,
                    cursor.u32("sets")?,
                    cursor.u32("ways")?,
                );
                let (kind, size, processors) =
                    (header_string(cursor)?, header_string(cursor)?, header_string(cursor)?);
                Ok(format!(
                    "L{level} {kind} {size}, {sets} sets, {ways} ways, {line}-byte lines, processors {processors}"
                ))
            })?
        }
        "SAMPLE_TIME" => format!("{} ns to {} ns", cursor.u64("first")?, cursor.u64("last")?),
        "MEM_TOPOLOGY" => {
            let (_, block_bytes, count) =
                (cursor.u64("version")?, cursor.u64("block_size")?, cursor.u64("nr")?);
            for _ in 0..count {
                cursor.bytes(16, "node")?;
                let num_bits = cursor.u64("bitmap")?;
                cursor.bytes(num_bits.div_ceil(64).saturating_mul(8), "bitmap")?;
            }
            format!("{} of memory blocks of {block_bytes} bytes", counted(count, "node"))
        }
        "CLOCKID" => format!("resolution {} ns", cursor.u64("resolution")?),
        "DIR_FORMAT" => format!("a directory, version {}", cursor.u64("version")?),
        "BPF_PROG_INFO" => {
            let count = cursor.u32("nr")?;
            for _ in 0..count {
                let (info_bytes, data_bytes) = (cursor.u32("info_len")?, cursor.u32("data_len")?);
                cursor.u64("arrays")?;
                cursor.bytes(u64::from(info_bytes), "info")?;
                cursor.bytes(u64::from(data_bytes), "data")?;
            }
            counted(u64::from(count), "BPF program")
        }
        "BPF_BTF" => {
            let count = cursor.u32("nr")?;
            for _ in 0..count {
                cursor.u32("id")?;
                let data_bytes = cursor.u32("data_size")?;
                cursor.bytes(u64::from(data_bytes), "data")?;
            }
            format!("types of {}", counted(u64::from(count), "BPF object"))
        }
        "COMPRESSED" => {
            cursor.u32("version")?;
            let (kind, level, ratio) = (cursor.u32("type")?, cursor.u32("level")?, cursor.u32("ratio")?);
            let kind = if kind == 1 { "zstd".to_owned() } else { format!("method {kind}") };
            format!("{kind} level {level}, {ratio} times smaller")
        }
        "CPU_PMU_CAPS" => capabilities(cursor)?,
        "CLOCK_DATA" => {
            let data = ClockData::read(cursor)?;
            // perf refuses a file with another version.
            if data.version != 1 {
                return Err(invalid(cursor, u64::from(data.version), "version 1"));
            }
            let (clock, wall) = (data.clockid_time_ns, data.wall_clock_ns);
            format!("clock {}: {clock} ns at {wall} ns since 1970", data.clockid)
        }
        "HYBRID_TOPOLOGY" => list(cursor, "nr", "; ", |cursor| {
            let name = header_string(cursor)?;
            Ok(format!("{name}: processors {}", header_string(cursor)?))
        })?,
        "PMU_CAPS" if num_bytes > 0 && cursor.rest().iter().all(|&byte| byte == 0) => {
            "no capabilities".to_owned()
        }
        "PMU_CAPS" => list(cursor, "nr_pmus", "; ", |cursor| {
            let caps = capabilities(cursor)?;
            Ok(format!("{}: {caps}", header_string(cursor)?))
        })?,
        "CPU_DOMAIN_INFO" => {
            let (version, domains) = (cursor.u32("schedstat_version")?, cursor.u32("max_sched_domains")?);
            format!("schedstat version {version}, at most {domains} scheduling domains a processor")
        }
        "E_MACHINE" => {
            let (machine, flags) = (cursor.u32("e_machine")?, cursor.u32("e_flags")?);
            let name = machine_name(machine).map_or_else(String::new, |(name, _)| format!(" ({name})"));
            format!("{machine}{name}, flags {flags:#x}")
        }
        "CLN_SIZE" => format!("cache lines of {} bytes", cursor.u32("cln_size")?),
        "SIMPLEPERF_FILE" | "SIMPLEPERF_FILE2" => file_lists::describe(bit, *cursor)?,
        "SIMPLEPERF_META_INFO" => {
            let pairs = meta_info(cursor.rest()).take(MAX_ENTRIES);
            pairs.map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ")
        }
        _ => format!("{num_bytes} bytes"),
    })
}

/// Names and values in the facts that simpleperf notes.
pub fn meta_info(section: &[u8]) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    let mut words = section.split(|&byte| byte == 0).map(String::from_utf8_lossy);
    std::iter::from_fn(move || Some((words.next()?, words.next()?))).filter(|(name, _)| !name.is_empty())
}

fn invalid(cursor: &Cursor<'_>, value: u64, expected: &'static str) -> ParseError {
    ParseError::new(ErrorKind::Invalid { value, expected }, cursor.offset(), "features")
}

fn counted(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// A number, then that many strings.
fn strings(cursor: &mut Cursor<'_>, field: &'static str) -> Result<Vec<String>, ParseError> {
    let count = cursor.u32(field)?;
    let mut out = Vec::new();
    // A count larger than the section fails at its end: every string has at least four bytes.
    for _ in 0..count {
        out.push(header_string(cursor)?);
    }
    Ok(out)
}

/// A number, then that many entries, as text.
fn list(
    cursor: &mut Cursor<'_>,
    field: &'static str,
    separator: &str,
    mut entry: impl FnMut(&mut Cursor<'_>) -> Result<String, ParseError>,
) -> Result<String, ParseError> {
    let count = cursor.u32(field)?;
    let mut out = Vec::new();
    for _ in 0..count {
        let text = entry(cursor)?;
        if out.len() < MAX_ENTRIES {
            out.push(text);
        }
    }
    let left_out = (count as usize).saturating_sub(out.len());
    let mut text = out.join(separator);
    if left_out > 0 {
        let _ = write!(text, "{separator}{left_out} more");
    }
    Ok(text)
}

fn capabilities(cursor: &mut Cursor<'_>) -> Result<String, ParseError> {
    list(cursor, "nr_caps", ", ", |cursor| {
        let name = header_string(cursor)?;
        Ok(format!("{name} = {}", header_string(cursor)?))
    })
}

/// Metadata of BPF programs in a BPF_METADATA record: a name, then pairs of keys and values of fixed sizes.
pub const BPF_METADATA_ENTRY_BYTES: u64 = 320;
/// Size of a key in them.
const BPF_METADATA_KEY_BYTES: u64 = 64;

/// A key and its value in a BPF_METADATA record.
///
/// # Errors
/// When the record ends inside it.
pub fn bpf_metadata_entry<'a>(cursor: &mut Cursor<'a>) -> Result<(Cow<'a, str>, Cow<'a, str>), ParseError> {
    let key = text(cursor.bytes(BPF_METADATA_KEY_BYTES, "key")?);
    let value = cursor.bytes(BPF_METADATA_ENTRY_BYTES.saturating_sub(BPF_METADATA_KEY_BYTES), "value")?;
    Ok((key, text(value)))
}
