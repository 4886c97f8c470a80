//! Names of JIT code by address and time, for programs that embed it: profilers, debuggers, crash reporters.
//!
//! * [`GrowingDump`] reads a JITDUMP file, also while its program writes it, or bytes that are pushed. It finds which code is at an
//!   address at a time ([`GrowingDump::find_code`]), and its function, lines and inlined calls ([`GrowingDump::find`]).
//! * [`SFrameTable`] reads the SFrame sections of a program, and finds the row for a program counter.
//!
//! ```
//! use perfuse_symbolizer::{GrowingDump, LATEST};
//!
//! # fn record(id: u32, at: u64, body: &[u8]) -> Vec<u8> {
//! #     [&id.to_le_bytes()[..], &(16 + body.len() as u32).to_le_bytes(), &at.to_le_bytes(), body].concat()
//! # }
//! # let header = [b"DTiJ".as_slice(), &1u32.to_le_bytes(), &40u32.to_le_bytes(), &62u32.to_le_bytes(), &[0; 24]].concat();
//! # let fields = [0u64, 0x7000, 0x7000, 4, 1].map(u64::to_le_bytes).concat();
//! # let load = record(0, 1000, &[&fields[..], b"JS:*add /home/user/sum.js:7:13\0", &[0x90; 4]].concat());
//! let mut dump = GrowingDump::new();
//! dump.push(&header)?; // bytes arrive in pieces of any size
//! dump.push(&load)?;
//! let found = dump.find(LATEST, 0x7002).expect("code is there");
//! assert_eq!((found.code.name, found.code.tier, found.code_offset), ("add", Some("turbofan"), 2));
//! assert_eq!(found.frames[0].function, "add");
//! assert!(dump.find(999, 0x7002).is_none()); // before it was compiled
//! # Ok::<(), perfuse_symbolizer::Error>(())
//! ```
//!
//! # What it promises
//!
//! No bytes make it panic, loop or allocate more than they are long: sizes are compared with what is left, lines are decoded when
//! they are asked for, and decoded lines that are kept have a limit. There is no global state but the handler of SIGBUS that
//! files need that become shorter while they are mapped; it leaves faults of other memory to the handler before it. Look-ups take
//! `&self` and may run in several threads at once: dumps, tables and errors are `Send` and `Sync`.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::panic
    )
)]

mod bytes;
mod dump;
mod error;
mod kept_lines;
mod unwind;

pub use dump::{Code, CodeFrame, CodeKind, CodeLocation, DumpFacts, DumpProgress, GrowingDump, LATEST};
pub use error::Error;
pub use perfuse_addresses::unwinding::{Base, Expression, Recover, Recovery};
pub use perfuse_wire::{ErrorKind, ParseError};
pub use unwind::{SFrameRow, SFrameTable};
