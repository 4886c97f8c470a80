pub static RULES: &[&perfuse_wire::Rule] = &[];
pub fn check(_dump: &super::JitDump, _sink: &mut perfuse_wire::Diagnostics) {}
