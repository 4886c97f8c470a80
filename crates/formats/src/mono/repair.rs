//! r
use std::fs::File; use std::io;
use super::MonoLog; use crate::Repaired;
pub fn repair(_log: &MonoLog, _out: &mut File) -> io::Result<Repaired> { Ok(Repaired::default()) }
