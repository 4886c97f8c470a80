use super::SFrame;
use crate::Repaired;
pub fn repair(_f: &SFrame, _o: &mut std::fs::File) -> std::io::Result<Repaired> { Ok(Repaired::default()) }
