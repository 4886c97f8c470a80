//! What `llvm-xray extract --symbolize` prints.

use perfuse_binaries::xray_map::{FunctionNames, InstrumentationMap};

/// A sled, as one line has it.
#[derive(Debug)]
pub struct Line {
    pub id: u32,
    pub address: u64,
    pub function: u64,
    pub kind: String,
    pub always_instrument: bool,
    pub name: String,
    pub version: u8,
}

impl Line {
    /// Whether it is the same sled of the same function. Of templates llvm-xray's name has the type returned as well.
    pub fn agrees(&self, llvm: &Self) -> bool {
        let same_name = llvm.name == self.name || llvm.name.ends_with(&format!(" {}", self.name));
        let others =
            |line: &Self| (line.id, line.address, line.function, line.always_instrument, line.version);
        same_name && self.kind == llvm.kind && others(self) == others(llvm)
    }
}

/// The lines of its output.
pub fn lines(yaml: &str) -> Vec<Line> {
    yaml.lines().filter_map(|line| line.strip_prefix("- { ")?.strip_suffix(" }")).map(line).collect()
}

fn line(fields: &str) -> Line {
    let (_, after) = fields.split_once("function-name: ").expect("a name");
    let (name, _) = after.rsplit_once(", version: ").expect("a version");
    // YAML of the simplest kind: names with signs in them are in single quotes, doubled within.
    let name =
        name.strip_prefix('\'').and_then(|name| name.strip_suffix('\'')).unwrap_or(name).replace("''", "'");
    let field = |key: &str| {
        let (_, after) = fields.split_once(&format!("{key}: ")).expect("a field");
        after.split(',').next().unwrap_or(after).trim()
    };
    let hexadecimal = |key| u64::from_str_radix(field(key).trim_start_matches("0x"), 16).expect("an address");
    Line {
        id: field("id").parse().expect("an id"),
        address: hexadecimal("address"),
        function: hexadecimal("function"),
        kind: field("kind").to_owned(),
        always_instrument: field("always-instrument") == "true",
        name,
        version: after.rsplit_once("version: ").expect("a version").1.parse().expect("a version"),
    }
}

/// The map of a program in the same form, with its names. LLVM's demangler closes templates with `>>`, ours with `> >`.
pub fn of(map: &InstrumentationMap, names: &FunctionNames) -> Vec<Line> {
    let mut lines = Vec::new();
    for (function, frame) in map.functions.iter().zip(&names.functions) {
        let name = frame.as_ref().map(|frame| frame.name.replace("> >", ">>").replace("> >", ">>"));
        let name = name.unwrap_or_default();
        lines.extend(map.sleds[function.sleds.clone()].iter().map(|sled| Line {
            id: function.id,
            address: sled.location.expect("a location").address,
            function: sled.function.expect("a function").address,
            kind: sled.kind.to_string(),
            always_instrument: sled.always_instrument,
            name: name.clone(),
            version: sled.version,
        }));
    }
    lines
}
