use super::SFrame;
use perfuse_wire::Diagnostics;
pub fn check(_f: &SFrame, _s: &mut Diagnostics) {}
