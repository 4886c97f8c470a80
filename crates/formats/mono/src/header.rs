//! The file header. Its length depends on its content.

use perfuse_wire::{Cursor, Endian, ErrorKind, ParseError, Put};

use crate::consts::{HEADER_ID, NEWEST};
use crate::dialect::LogDialect;
use crate::layout::FileHeader;

/// Maximum accepted length of a header text: longer than any command line.
const MAX_TEXT: u32 = 1 << 20;

/// The file header of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The fields with the same position in every version.
    pub fixed: FileHeader,
    /// Start of the program in nanoseconds on the clock of the events; 0 before profiler 3.
    pub startup_ns: u64,
    /// Duration of one reading of the clock, in nanoseconds.
    pub timer_overhead: u32,
    /// Always 0.
    pub flags: u32,
    /// Process id.
    pub pid: u32,
    /// TCP port of the command server.
    pub port: u16,
    /// Always 0; only in headers of 32 bytes.
    pub sysid: u16,
    /// Options, architecture and operating system as stored, including their NULs; `None` before profiler 1.
    pub texts: Option<[Vec<u8>; 3]>,
    /// Size of the header in bytes: the offset of the first buffer.
    pub size: u64,
}

impl Header {
    /// The header of a new log. `startup` is the start of the program in milliseconds of the wall clock and in nanoseconds on
    /// the clock of the events; `process` is the process id and the port of the command server; `texts` are options,
    /// architecture and operating system.
    #[must_use]
    pub fn of_dialect(
        dialect: &LogDialect,
        startup: (u64, u64),
        timer_overhead: u32,
        process: (u32, u16),
        texts: [String; 3],
    ) -> Self {
        let with_nul = |text: String| [text.into_bytes(), vec![0]].concat();
        let fixed = FileHeader {
            id: HEADER_ID,
            major: dialect.major,
            minor: dialect.minor,
            format: dialect.version,
            ptrsize: dialect.pointer_bytes,
            startup_time: startup.0,
        };
        Self {
            fixed,
            startup_ns: startup.1,
            timer_overhead,
            flags: 0,
            pid: process.0,
            port: process.1,
            sysid: 0,
            texts: (dialect.major >= 1).then(|| texts.map(with_nul)),
            size: 0,
        }
    }

    /// Reads the header.
    ///
    /// # Errors
    /// `BadMagic`, short data, an unknown data version, or an invalid pointer size.
    pub fn read(data: &[u8]) -> Result<Self, ParseError> {
        let mut at = Cursor::new(data, 0, Endian::Little);
        let found = data.first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        if found != HEADER_ID {
            return Err(ParseError::new(ErrorKind::BadMagic { found: found.swap_bytes() }, 0, "id"));
        }
        let fixed = FileHeader::read(&mut at)?;
        if fixed.format > NEWEST {
            let kind = ErrorKind::Invalid { value: fixed.format.into(), expected: "a data version up to 17" };
            return Err(ParseError::new(kind, 6, "format"));
        }
        if ![4, 8].contains(&fixed.ptrsize) {
            let kind = ErrorKind::Invalid { value: fixed.ptrsize.into(), expected: "4 or 8" };
            return Err(ParseError::new(kind, 7, "ptrsize"));
        }
        let startup_ns = if fixed.major >= 3 { at.u64("startup_ns")? } else { 0 };
        let (timer_overhead, flags) = (at.u32("timer_overhead")?, at.u32("flags")?);
        let (pid, port) = (at.u32("pid")?, at.u16("port")?);
        // Another producer writes data version 0 with major version 1 and a header of 32 bytes.
        let bare = fixed.major == 0 || fixed.format == 0;
        let sysid = if bare { at.u16("sysid")? } else { 0 };
        let texts = if bare {
            None
        } else {
            Some([text(&mut at, "args")?, text(&mut at, "arch")?, text(&mut at, "os")?])
        };
        let size = at.offset();
        Ok(Self { fixed, startup_ns, timer_overhead, flags, pid, port, sysid, texts, size })
    }

    /// Appends the header to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        let endian = Endian::Little;
        self.fixed.write(out, endian);
        if self.fixed.major >= 3 {
            out.put_u64(self.startup_ns, endian);
        }
        out.put_u32(self.timer_overhead, endian);
        out.put_u32(self.flags, endian);
        out.put_u32(self.pid, endian);
        out.put_u16(self.port, endian);
        if self.fixed.major == 0 || self.fixed.format == 0 {
            out.put_u16(self.sysid, endian);
            return;
        }
        for text in self.texts.as_ref().unwrap_or(&Default::default()) {
            out.put_u32(u32::try_from(text.len()).unwrap_or(u32::MAX), endian);
            out.extend_from_slice(text);
        }
    }

    /// The header for another encoding. Fields that it does not have become 0.
    #[must_use]
    pub fn converted(&self, to: &LogDialect) -> Self {
        let mut fixed = FileHeader { format: to.version, major: to.major, minor: to.minor, ..self.fixed };
        fixed.ptrsize = to.pointer_bytes;
        let empty = || [vec![0], vec![0], vec![0]];
        Self {
            fixed,
            startup_ns: if to.major >= 3 { self.startup_ns } else { 0 },
            port: if to.version >= 4 { self.port } else { 0 },
            texts: (to.major >= 1).then(|| self.texts.clone().unwrap_or_else(empty)),
            ..self.clone()
        }
    }

    /// The encoding of the events.
    #[must_use]
    pub fn dialect(&self) -> LogDialect {
        LogDialect::of(&self.fixed)
    }

    /// One of the three texts without its NUL: 0 args, 1 arch, 2 os.
    #[must_use]
    pub fn text(&self, which: usize) -> Option<String> {
        let bytes = self.texts.as_ref()?.get(which)?;
        let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
        Some(String::from_utf8_lossy(bytes.get(..end)?).into_owned())
    }
}

/// Reads a text with its length.
fn text(at: &mut Cursor<'_>, field: &'static str) -> Result<Vec<u8>, ParseError> {
    let start = at.offset();
    let len = at.u32(field)?;
    if len > MAX_TEXT {
        let kind = ErrorKind::Invalid { value: len.into(), expected: "the length of a text" };
        return Err(ParseError::new(kind, start, field));
    }
    Ok(at.bytes(len.into(), field)?.to_vec())
}
