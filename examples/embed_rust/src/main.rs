//! Names addresses of JIT code: `symbolize DUMP`, with lines `TIME ADDRESS` on standard input. TIME is a time stamp of the dump, or
//! `latest`; ADDRESS is hexadecimal. Prints what `examples/embed_c/symbolize.c` prints.

use std::env;
use std::error::Error;
use std::io::{self, BufRead, Write};

use perfuse_symbolizer::{CodeLocation, GrowingDump, LATEST};

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args_os().nth(1).ok_or("usage: symbolize DUMP < LINES")?;
    let mut dump = GrowingDump::open(path)?;
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let (time, address) = line.trim().split_once(' ').ok_or("a line is TIME ADDRESS")?;
        let at = if time == "latest" { LATEST } else { time.parse()? };
        let wanted = u64::from_str_radix(address.trim_start_matches("0x"), 16)?;
        // The code may be newer than what was read of the dump, or may have replaced what was there.
        dump.poll()?;
        match dump.find(at, wanted) {
            Some(found) => print(&mut out, address, &found)?,
            None => writeln!(out, "{address}\t?")?,
        }
        out.flush()?;
    }
    Ok(())
}

/// The functions at an address, innermost first.
fn print(out: &mut impl Write, address: &str, found: &CodeLocation<'_>) -> io::Result<()> {
    for (depth, frame) in found.frames.iter().enumerate() {
        // The outermost function is that of the code: only its name has a tier.
        let is_code = depth + 1 == found.frames.len();
        let tier = found.code.tier.filter(|_| is_code).unwrap_or_default();
        let path = frame.path.as_deref().unwrap_or_default();
        let (line, column) = (frame.line.unwrap_or(0), frame.column.unwrap_or(0));
        let inlined = if frame.is_inlined { "inlined" } else { "" };
        writeln!(out, "{address}\t{}\t{tier}\t{path}\t{line}\t{column}\t{inlined}", frame.linkage_name)?;
    }
    Ok(())
}
