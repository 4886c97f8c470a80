//! i
use std::sync::Arc;
use perfuse_tables::Offsets;
use super::Shared;
use crate::{BatchStream, Placement};
pub fn extent(_log: &Shared) -> Offsets { Offsets{source:1,..Offsets::default()} }
pub fn table(_log: &Arc<Shared>, _name: &str, _p: &Placement) -> Option<BatchStream> { None }
