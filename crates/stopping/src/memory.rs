//! Memory of this process: how much it uses, and its limit.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Default limit, in percent of the memory that the machine or the control group has.
const DEFAULT_PERCENT: u64 = 60;

/// A call that took less than this is not stopped: what fills memory is something else. See [`count_from_here`].
const LEAST_BYTES: u64 = 64 << 20;

/// The same where address space is limited: that of the interpreter and its libraries is most of a small limit.
const LEAST_ADDRESSES: u64 = 16 << 20;

/// The limit that was set, in bytes; 0 where none was.
static LIMIT: AtomicU64 = AtomicU64::new(0);

/// Memory of a process that is a command, in bytes, when it had done nothing; 0 in other processes.
static AT_START: AtomicU64 = AtomicU64::new(0);

/// States that the process is a command: all memory that it takes from now on is that of its calls, also what one call
/// leaves for the next, and what is read before the first.
pub fn count_from_here() {
    AT_START.store(Usage::of_process().memory, Ordering::Relaxed);
}

/// Limits the memory of this process; `None` for the default.
pub fn set_limit(bytes: Option<u64>) {
    LIMIT.store(bytes.unwrap_or(0), Ordering::Relaxed);
}

/// The limit in bytes: the one that was set, else a share of what the machine or the control group has.
#[must_use]
pub fn limit() -> u64 {
    static DEFAULT: OnceLock<u64> = OnceLock::new();
    match LIMIT.load(Ordering::Relaxed) {
        0 => *DEFAULT.get_or_init(|| {
            let available = available_bytes(Path::new("/")).unwrap_or(u64::MAX);
            (available / 100).saturating_mul(DEFAULT_PERCENT)
        }),
        limit => limit,
    }
}

/// Memory that the machine or the control group of this process has; `None` where the system does not state it.
///
/// `root` is the directory in which `proc` and `sys` are.
#[must_use]
pub fn available_bytes(root: &Path) -> Option<u64> {
    let meminfo = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let machine = field(&meminfo, "MemTotal:")?.saturating_mul(1024);
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().filter_map(|line| {
        // `number:controllers:path`; version 2 has the number 0 and no controllers.
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
        let (base, name) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|one| one == "memory") => {
                ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        // A group has the limits of those that it is in; in a container, its path may be that outside.
        let base = root.join(base);
        let group = base.join(path);
        let groups = group.ancestors().take_while(|group| group.starts_with(&base));
        groups.filter_map(|group| fs::read_to_string(group.join(name)).ok()?.trim().parse().ok()).min()
    });
    Some(limits.fold(machine, u64::min))
}

/// What a process uses, in bytes; 0 where the system does not state it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Memory that is not a mapped file.
    pub memory: u64,
    /// Address space.
    pub addresses: u64,
}

impl Usage {
    /// That of this process.
    #[must_use]
    pub fn of_process() -> Self {
        // Pages: address space, resident ones, and those of these that belong to files. Half as expensive as `status`.
        let mut text = [0; 128];
        let len = File::open("/proc/self/statm").and_then(|mut file| file.read(&mut text)).unwrap_or(0);
        let text = str::from_utf8(text.get(..len).unwrap_or_default()).unwrap_or_default();
        let mut fields = text.split_ascii_whitespace().map(|field| field.parse::<u64>().unwrap_or(0));
        let mut bytes = || fields.next().unwrap_or(0).saturating_mul(page_bytes());
        let (addresses, resident, of_files) = (bytes(), bytes(), bytes());
        Self { memory: resident.saturating_sub(of_files), addresses }
    }
}

/// Size of a page.
fn page_bytes() -> u64 {
    // SAFETY: `sysconf` has no preconditions.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// The number after a name at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// Limit of the address space of this process (`ulimit -v`); `None` where there is none.
#[must_use]
pub fn address_limit() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the pointer is to a structure that the call fills.
    let answer = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
    (answer == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// Address space that this process may still use, in bytes; `None` where it is not limited.
#[must_use]
pub fn addresses_left() -> Option<u64> {
    Some(address_limit()?.saturating_sub(Usage::of_process().addresses))
}

/// The memory of the process while one call runs.
#[derive(Debug)]
pub struct MemoryWatch {
    /// Memory that is not the call's, in bytes.
    before: u64,
    start: Usage,
    limit: u64,
    address_limit: Option<u64>,
}

impl MemoryWatch {
    /// At the start of the call.
    #[must_use]
    pub fn new() -> Self {
        let of_command = Some(AT_START.load(Ordering::Relaxed)).filter(|&bytes| bytes > 0);
        let address_limit = address_limit();
        // The system's file is read only where its numbers are compared: a small report makes hundreds of calls.
        let is_compared = of_command.is_none() || address_limit.is_some();
        let start = if is_compared { Usage::of_process() } else { Usage::default() };
        Self { before: of_command.unwrap_or(start.memory), start, limit: limit(), address_limit }
    }

    /// Whether the process uses more than its limit, and the call is a cause.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over_with(Usage::of_process())
    }

    fn is_over_with(&self, now: Usage) -> bool {
        if now.memory > self.limit && now.memory.saturating_sub(self.before) > LEAST_BYTES {
            return true;
        }
        let taken = now.memory.saturating_sub(self.start.memory);
        // A vector that grows needs twice its size beside itself; where that is not to be had, the process would end.
        self.address_limit.is_some_and(|limit| {
            taken > LEAST_ADDRESSES && limit.saturating_sub(now.addresses) < taken.saturating_mul(2)
        })
    }
}

impl Default for MemoryWatch {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    /// A directory with files in place of those of the kernel.
    fn system(name: &str, files: &[(&str, &str)]) -> std::path::PathBuf {
        let root = std::env::temp_dir().join(format!("perfuse-memory-{name}-{}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal:       16384 kB\nMemFree:  1 kB\n");

    #[test]
    fn the_smallest_limit_of_the_groups_around_a_process_holds() {
        let groups = |name, more: &[(&str, &str)]| {
            let root = system(name, &[&[MEMINFO], more].concat());
            let bytes = available_bytes(&root);
            fs::remove_dir_all(root).unwrap();
            bytes
        };
        assert_eq!(groups("none", &[]), Some(16 * MB));
        let v2 = ("proc/self/cgroup", "0::/a.slice/b.scope\n");
        let outer = ("sys/fs/cgroup/a.slice/memory.max", "4194304\n");
        let inner = ("sys/fs/cgroup/a.slice/b.scope/memory.max", "max\n");
        assert_eq!(groups("v2", &[v2, outer, inner]), Some(4 * MB));
        // In a container the path is that outside, and only the topmost group is visible.
        let top = ("sys/fs/cgroup/memory.max", "2097152\n");
        assert_eq!(groups("container", &[v2, top]), Some(2 * MB));
        let v1 = ("proc/self/cgroup", "11:cpu,cpuacct:/c\n9:memory:/d\n0::/\n");
        let limit = ("sys/fs/cgroup/memory/d/memory.limit_in_bytes", "8388608\n");
        let unlimited = ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(groups("v1", &[v1, limit, unlimited]), Some(8 * MB));
    }

    /// A watch of a call that starts with this use, in a process that is not a command.
    fn call_from(start: Usage, limit: u64, address_limit: Option<u64>) -> MemoryWatch {
        MemoryWatch { before: start.memory, start, limit, address_limit }
    }

    #[test]
    fn only_a_call_that_takes_memory_is_over_the_limit() {
        let usage = |memory, addresses| Usage { memory: memory * MB, addresses: addresses * MB };
        let watch = call_from(usage(900, 2000), 1000 * MB, None);
        assert!(!watch.is_over_with(usage(990, 9000)));
        assert!(watch.is_over_with(usage(1001, 2000)));
        // The process was over its limit before.
        let later = call_from(usage(1500, 2000), 1000 * MB, None);
        assert!(!later.is_over_with(usage(1560, 2000)));
        assert!(later.is_over_with(usage(1600, 2000)));
        // In a command, what earlier calls left counts.
        let of_command = MemoryWatch { before: 30 * MB, ..later };
        assert!(of_command.is_over_with(usage(1501, 2000)));
        assert!(!of_command.is_over_with(usage(999, 2000)));
    }

    #[test]
    fn a_call_ends_before_its_largest_vector_has_no_room_to_grow() {
        let usage = |memory, addresses| Usage { memory: memory * MB, addresses: addresses * MB };
        let watch = call_from(usage(100, 500), u64::MAX, Some(2000 * MB));
        assert!(!watch.is_over_with(usage(400, 1300)));
        assert!(watch.is_over_with(usage(600, 1100)));
        assert!(!watch.is_over_with(usage(110, 1999)));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_in_use_is_counted() {
        let before = Usage::of_process();
        let filled = vec![1u8; 64 << 20];
        let after = Usage::of_process();
        assert!(after.memory >= before.memory + 32 * MB, "{before:?} {after:?}");
        assert_eq!(filled.iter().map(|&byte| u64::from(byte)).sum::<u64>(), 64 * MB);
    }
}
