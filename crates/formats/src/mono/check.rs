//! c
use perfuse_wire::Diagnostics;
pub use super::rules::RULES;
use super::MonoLog;
/// c
pub fn check(_log: &MonoLog, _sink: &mut Diagnostics) {}
/// c
pub fn findings(log: &MonoLog, sink: &mut Diagnostics) {check(log,sink)}
