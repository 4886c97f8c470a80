use std::collections::{BTreeMap, BTreeSet};

use super::findings::{ALIASED_OBJECTS, Finding, UNKNOWN_FUNCTION, UNMAPPED_OBJECT};
use super::map_file::MapFile;
use super::native_ids::{Candidates, NativeIds};
use super::object_maps::ObjectMaps;

/// How the ids of a log fit the maps.
#[derive(Debug, Default)]
pub(super) struct Fit {
    /// Ids of objects that no map was given for, by object.
    unmapped: BTreeMap<u8, BTreeSet<u32>>,
    /// Ids that no map of their object has, by object.
    unknown: BTreeMap<u8, BTreeSet<u32>>,
    /// Ids that may be functions of several objects, by the object's number in the log.
    ambiguous: BTreeMap<u8, BTreeSet<u32>>,
    /// Objects in the log.
    seen: BTreeSet<u8>,
}

impl Fit {
    pub(super) fn count(&mut self, candidates: &Candidates<'_>) {
        let (object, id) = (candidates.object, candidates.function);
        self.seen.insert(object);
        let ids = match (candidates.objects.len(), candidates.functions().count()) {
            (0, _) => self.unmapped.entry(object),
            (_, 0) => self.unknown.entry(object),
            (_, 1) => return,
            _ => self.ambiguous.entry(object),
        };
        ids.or_default().insert(id);
    }

    /// What does not fit, each with the file it is about; none for objects without one.
    pub(super) fn findings(&self, ids: NativeIds, maps: &ObjectMaps) -> Vec<(String, Finding)> {
        let mut found = Vec::new();
        let mut push = |file: Option<&MapFile>, code, message| {
            let path = file.map(MapFile::display).unwrap_or_default();
            found.push((path, Finding { code, message, offset: None, count: 1 }));
        };
        for (object, functions) in &self.unmapped {
            let text = functions_text(functions);
            push(
                None,
                UNMAPPED_OBJECT,
                format!("no map was given for object {object}, which has {text} in the log"),
            );
        }
        for (object, functions) in &self.unknown {
            let files =
                maps.iter().filter(|(number, _)| ids.may_mean(*object, *number)).map(|(_, file)| file);
            if let Some(largest) = files.max_by_key(|file| file.map().functions.len()) {
                let most = largest.map().functions.len();
                let last = functions.last().copied().unwrap_or_default();
                let text = functions_text(functions);
                let message = format!(
                    "the map ends at id {most}, and the log has {text} beyond, up to id {last}: the file is another \
                     build, or another program"
                );
                push(Some(largest), UNKNOWN_FUNCTION, message);
            }
        }
        for &object in &self.seen {
            let meant: Vec<(u8, &MapFile)> =
                maps.iter().filter(|(number, _)| ids.may_mean(object, *number)).collect();
            let numbers: Vec<String> = meant.iter().map(|(number, _)| number.to_string()).collect();
            let file = meant.first().map(|(_, file)| *file);
            match (&meant[..], self.ambiguous.get(&object)) {
                (_, Some(functions)) => {
                    let (text, objects) = (functions_text(functions), numbers.join(" and "));
                    let message = format!(
                        "{text} may be of any of objects {objects}, whose ids are the same in an FDR log"
                    );
                    push(file, ALIASED_OBJECTS, message);
                }
                ([(only, _)], None) if *only != object => {
                    let message = format!(
                        "object {only} has the ids of object {object} in an FDR log, and only of the former a map was given"
                    );
                    push(file, ALIASED_OBJECTS, message);
                }
                _ => {}
            }
        }
        found
    }
}

fn functions_text(functions: &BTreeSet<u32>) -> String {
    match functions.len() {
        1 => "1 function".to_owned(),
        many => format!("{many} functions"),
    }
}
